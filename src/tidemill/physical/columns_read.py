"""Which columns of an input are read: by the operators where its rows come in, and behind them.

Law: a graph gives the same with any values in the other columns, or without these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import used_columns
from tidemill.physical.operators.rows.filter import Filter
from tidemill.physical.operators.rows.project import Project

if TYPE_CHECKING:
    from tidemill.physical.fragments import Fragment
    from tidemill.physical.operator import Operator

__all__ = ["columns_read"]


def columns_read(intake: Fragment) -> frozenset[str]:
    """The columns of an input that something reads.

    Args:
        intake: What is done with the rows of the input where they come in.
    """
    (rows,) = intake.reads
    needed: dict[str, frozenset[str]] = {}

    def ask(name: str, columns: frozenset[str]) -> None:
        needed[name] = needed.get(name, frozenset()) | columns

    for channel in intake.writes:
        ask(channel.source, frozenset(channel.schema.names))
    for node in reversed(intake.nodes):
        asked = _asked(node.apply.operator, needed.get(node.name, frozenset()))
        (below,) = node.apply.inputs
        (read,) = node.reads
        ask(read, frozenset(below.schema.names) if asked is None else asked)
    return needed.get(rows, frozenset())


def _asked(operator: Operator, needed: frozenset[str]) -> frozenset[str] | None:
    """The columns that an operator reads, given what is read of it; ``None`` for all."""
    match operator:
        case Filter(predicate=predicate):
            return needed | used_columns(predicate)
        case Project(columns=columns):
            # It computes all of its columns, whether they are read or not.
            return frozenset(name for one in columns for name in used_columns(one.expr))
        case _:
            return None
