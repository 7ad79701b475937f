"""Which rows of an input are read: those that meet the filters where its rows come in.

Law: a graph gives the same with any rows in place of those that are not read, if these are not read
either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import Column, conjuncts, replace_columns, used_columns
from tidemill.physical.operators.rows.filter import Filter
from tidemill.physical.operators.rows.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.expr import Expr
    from tidemill.physical.fragments import Fragment
    from tidemill.physical.operator import Operator

    _Meaning: TypeAlias = Mapping[str, Expr]

__all__ = ["Conditions", "rows_read"]

Conditions: TypeAlias = "tuple[Expr, ...]"
"""What must be true of a row, all of it."""


def rows_read(intake: Fragment) -> frozenset[Conditions] | None:
    """What rows of an input meet that something reads, one at least; ``None`` if all are read.

    Args:
        intake: What is done with the rows of the input where they come in.
    """
    (rows,) = intake.reads
    met: dict[str, Conditions] = {rows: ()}
    meanings: dict[str, _Meaning | None] = {rows: None}
    for node in intake.nodes:
        (read,) = node.reads
        operator, meaning = node.apply.operator, meanings[read]
        met[node.name], meanings[node.name] = met[read], meaning
        match operator:
            case Filter(predicate=predicate):
                met[node.name] += _of_input(predicate, meaning)
            case _:
                meanings[node.name] = _meaning(operator, meaning)
    found = frozenset(met[channel.source] for channel in intake.writes)
    return None if () in found else found


def _of_input(predicate: Expr, meaning: _Meaning | None) -> Conditions:
    """A predicate as conditions on columns of the input; what is about others is left out."""
    parts = conjuncts(predicate)
    if meaning is None:
        return parts
    known = (part for part in parts if used_columns(part) <= meaning.keys())
    return tuple(_put_in(part, meaning) for part in known)


def _meaning(operator: Operator, below: _Meaning | None) -> _Meaning | None:
    """What the columns of an operator are of those of the input, as far as they are columns of it.

    Args:
        operator: The operator.
        below: That of what it reads; ``None`` where columns are those of the input.
    """
    match operator:
        case Project(columns=columns):
            plain = {one.name: one.expr for one in columns if isinstance(one.expr, Column)}
            if below is None:
                return dict(plain)
            return {name: below[one.name] for name, one in plain.items() if one.name in below}
        case _:
            return {}


def _put_in(condition: Expr, meaning: _Meaning) -> Expr:
    return replace_columns(condition, lambda column: meaning[column.name])
