"""Tidemill: continuous SQL queries with sliding windows, exact at every instant."""

from tidemill.connect import connect
from tidemill.errors import BindError, ParseError, PlanError, RunError, TidemillError
from tidemill.session import Query, Session

__all__ = [
    "BindError",
    "ParseError",
    "PlanError",
    "Query",
    "RunError",
    "Session",
    "TidemillError",
    "connect",
]
