"""Selections: what filters and projections make of an input, whatever their order.

Law:    the rows of a part are those rows of the input for which all conditions are true, each with
        the columns computed from it; both are said in the columns of the input.

Parts that are said so can be computed together, and what they have in common once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, Literal, Named, conjuncts, replace_columns, walk_expr
from tidemill.model.types import Kind
from tidemill.physical.operators.rows.filter import Filter
from tidemill.physical.operators.rows.project import Project
from tidemill.physical.plan import Apply, Exchange, Input

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Selection", "selection_of", "stays_small"]

_LARGEST = 256
"""Expressions do not grow larger than this when they are said in other columns."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Some rows of an input, with some columns.

    Attributes:
        input: The input.
        conditions: What must be true of a row, in its columns.
        columns: The columns, of those of the input.
        before: The operators below the filter, by the fingerprints of their parts.
        filters: The filter, if there is one.
        after: The operators above it.
    """

    input: Input
    conditions: tuple[Expr, ...]
    columns: tuple[Named, ...]
    before: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def selection_of(part: PhysicalPlan) -> Selection | None:
    """What a part is; ``None`` if it has another operator, two filters, or would grow too large."""
    chain: list[Apply] = []
    while isinstance(part, Apply):
        if not isinstance(part.operator, Filter | Project):
            return None
        chain.append(part)
        (part,) = part.inputs
    if isinstance(part, Exchange):
        return None
    columns = tuple(Named(f.name, Column(f.name, f.type)) for f in part.schema)
    found: Selection | None = Selection(part, (), columns)
    for apply in reversed(chain):
        found = None if found is None else _with(found, apply)
    return found


def _with(below: Selection, apply: Apply) -> Selection | None:
    """The selection with one more operator."""
    meaning = {column.name: column.expr for column in below.columns}
    name = apply.fingerprint

    def said(expr: Expr) -> Expr:
        return replace_columns(expr, lambda column: meaning[column.name])

    match apply.operator:
        case Filter(_, predicate) if not below.filters:
            conditions = conjuncts(said(predicate))
            made = Selection(below.input, conditions, below.columns, below.before, (name,))
            exprs: tuple[Expr, ...] = conditions
        case Project(_, columns):
            named = tuple(Named(column.name, said(column.expr)) for column in columns)
            before = below.before if below.filters else (*below.before, name)
            after = (*below.after, name) if below.filters else ()
            made = Selection(below.input, below.conditions, named, before, below.filters, after)
            exprs = tuple(column.expr for column in named)
        case _:
            return None
    return made if sum(1 for e in exprs for _ in walk_expr(e)) <= _LARGEST else None


def stays_small(expr: Expr) -> bool:
    """Whether it makes no texts, which might be too large for rows that a condition leaves out."""
    made = (part for part in walk_expr(expr) if not isinstance(part, Column | Literal))
    return not any(part.type.kind is Kind.VARCHAR for part in made)
