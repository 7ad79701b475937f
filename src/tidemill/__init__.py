"""Tidemill: continuous SQL queries with sliding windows, exact at every instant."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.connecting import connect
    from tidemill.errors import (
        BindError,
        ParseError,
        PlanError,
        RunError,
        TidemillError,
        TidemillWarning,
    )
    from tidemill.planning import Planning
    from tidemill.runtime.one_time import OneTimeAnswer
    from tidemill.runtime.query import Query
    from tidemill.runtime.table import Table
    from tidemill.runtime.why import Why
    from tidemill.session import Session

__all__ = [
    "BindError",
    "OneTimeAnswer",
    "ParseError",
    "PlanError",
    "Planning",
    "Query",
    "RunError",
    "Session",
    "Table",
    "TidemillError",
    "TidemillWarning",
    "Why",
    "connect",
]

_HOMES = {
    "connect": "connecting",
    "OneTimeAnswer": "runtime.one_time",
    "Planning": "planning",
    "Query": "runtime.query",
    "Session": "session",
    "Table": "runtime.table",
    "Why": "runtime.why",
}


def __getattr__(name: str) -> object:
    # Imported when asked for: Spark starts processes that need only a small part of all this.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = found
    return found
