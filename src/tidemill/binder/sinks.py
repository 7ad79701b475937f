"""Sinks: whether the answer of a query can go where its statement says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.keys import least_key
from tidemill.connectors.check import check
from tidemill.connectors.connector import Use
from tidemill.connectors.forms import FORM, Delivered
from tidemill.errors import BindError

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.connectors.connector import Engine
    from tidemill.lang.statements import ConnectorCall

__all__ = ["check_sink"]


def check_sink(
    sink: ConnectorCall, query: str, plan: Plan, engine: Engine | None, *, looks_up: bool = True
) -> None:
    """Refuse a sink that is not described rightly, or cannot take the answer.

    Args:
        sink: The sink.
        query: The name of the query.
        plan: What it asks.
        engine: Where it is to run; ``None`` for anywhere.
        looks_up: Whether what is in the environment must be there now.

    Raises:
        BindError: An option is missing, wrong or not known, or rows without a key are to be
            upserts.
    """
    arguments = check(sink, Use.SINK, engine=engine, looks_up=looks_up)
    if arguments.given.get(FORM.name) == Delivered.UPSERTS and least_key(plan) is None:
        raise BindError(
            f'the rows of "{query}" have no key by which one could replace another',
            span=arguments.places.get(FORM.name),
            hint="write form => 'changes', or GROUP BY what they are to be known by",
        )
