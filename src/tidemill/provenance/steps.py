"""Steps: what the rows of an operator were made of, where hidden columns end.

For each such operator there are plans over its inputs, annotated, whose first columns are compared
with those of its rows:

    operator                         input                     a row is made of the rows that
    Aggregate                        its input                 have its keys, when it is there
    Distinct                         its input                 are equal to it
    Difference, Intersect, MaxUnion  both inputs               are equal to it
    StrictDifference                 the left one              are equal to it
    Istream, Dstream                 its input                 are equal to it, then or before
    SemiJoin                         partners on the right     meet the condition with it

What is not there is no row: that no partner has kept it back is said by ``via``, which names the
operators between. Only where it is asked why a row came or went, partners of AntiJoin and equal
rows on the right of StrictDifference are looked for, since they may have gone, or come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.algebra.explain import describe
from tidemill.algebra.expr import Call, Column, Expr, Literal, Named, chained, conjunction
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    Plan,
    Project,
    Relation,
    SemiJoin,
    StrictDifference,
)
from tidemill.model.types import BOOLEAN, Kind
from tidemill.provenance.annotate import annotate
from tidemill.provenance.leaves import Annotated

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tidemill.model.schema import Field, Schema
    from tidemill.model.types import Value
    from tidemill.provenance.leaves import Ends

__all__ = ["SOUGHT", "Step", "among", "steps_of"]

SOUGHT = "@sought"
"""The relation of the rows that are asked about, in a step that joins them."""

_FEW = 32
"""So many rows, at most, are sought by conditions that can be pushed down to the sources."""


@dataclass(frozen=True, slots=True)
class Step:
    """An input of an operator, annotated, behind what its rows are found by.

    Attributes:
        annotated: The plan; its own columns are those that are compared.
        columns: The columns of the operator that these are compared with.
        before: How many instants before a row is there its makers may have gone.
        sought: The columns of the relation ``SOUGHT`` that it reads; ``None`` if it reads none.
    """

    annotated: Annotated
    columns: tuple[str, ...]
    before: int = 0
    sought: Schema | None = None


def steps_of(
    node: Plan, ends: Ends, *, against: bool = False, values: bool = False
) -> tuple[Step, ...]:
    """What the rows of an operator are made of.

    Args:
        node: The operator.
        ends: Nodes of the plan whose rows are not explained further.
        against: Whether rows that would keep them back are asked for, too.
        values: Whether rows of streams and relations bring their values with their ids.
    """

    def input_(plan: Plan) -> Annotated:
        return annotate(plan, ends, against=against, values=values)

    match node:
        case _ if id(node) in ends:
            return ()
        case Aggregate(below, keys):
            found = tuple(key.expr for key in keys)
            made = _behind(input_(below), found, describe(node))
            return (Step(made, tuple(key.name for key in keys)),)
        case Distinct(below):
            return (_equal(node, input_(below)),)
        case Istream(below) | Dstream(below):
            return (replace(_equal(node, input_(below)), before=1),)
        case StrictDifference(left, right):
            kept_back = (_equal(node, input_(right)),) if against else ()
            return (_equal(node, input_(left)), *kept_back)
        case Difference(left, right) | Intersect(left, right) | MaxUnion(left, right):
            return _equal(node, input_(left)), _equal(node, input_(right))
        case SemiJoin() | AntiJoin():
            return (_partners(node, input_(node.right)),)
        case _:
            raise AssertionError(f"{describe(node)} passes on what is hidden")


def _equal(node: Plan, below: Annotated) -> Step:
    """The rows of an input that are equal to rows of the operator."""
    own = [below.plan.schema[name] for name in below.columns]
    found = tuple(Column(one.name, one.type) for one in own)
    return Step(_behind(below, found, describe(node)), node.schema.names)


def _behind(below: Annotated, found: Sequence[Expr], via: str) -> Annotated:
    """An annotated plan with what its rows are found by in the place of its own columns."""
    own = set(below.columns)
    names = tuple(f"@by{number}" for number in range(len(found)))
    columns = tuple(Named(name, expr) for name, expr in zip(names, found, strict=True))
    hidden = tuple(
        Named(one.name, Column(one.name, one.type))
        for one in below.plan.schema
        if one.name not in own
    )
    leaves = tuple(leaf.below(via) for leaf in below.leaves)
    return Annotated(Project(below.plan, (*columns, *hidden)), names, leaves, below.cuts)


def _partners(node: SemiJoin | AntiJoin, below: Annotated) -> Step:
    """The partners of the rows of the left input, which are a relation here."""
    width = len(node.left.schema)
    hidden = below.plan.schema.names[len(below.columns) :]
    names = (*node.names, *hidden)
    sought = Relation(SOUGHT, node.left.schema)
    joined = Join(sought, below.plan, JoinKind.INNER, node.condition, names)
    left = zip(node.names[:width], node.left.schema, strict=True)
    found = tuple(Column(name, one.type) for name, one in left)
    met = Annotated(joined, node.names, below.leaves, below.cuts)
    made = _behind(met, found, describe(node))
    return Step(made, node.schema.names, sought=node.left.schema)


def among(plan: Plan, rows: pl.DataFrame) -> Plan:
    """The rows of a plan that have values of some rows in their columns, and perhaps others.

    A condition on one column goes further down than one on several, of which one may be a sum.
    """
    # What equals what is decided by a comparison later; here rows need only be left in.
    named = (one for one in plan.schema if one.name in rows.columns)
    fields = [one for one in named if one.type.kind is not Kind.DOUBLE]
    if rows.is_empty() or not fields:
        return plan
    told = [part for one in fields for part in _in_column(one, rows[one.name])]
    once = rows.select([one.name for one in fields]).unique()
    if len(fields) > 1 and 1 < once.height <= _FEW:
        told.append(
            chained(
                "or",
                [
                    conjunction(
                        *(
                            _is(Column(one.name, one.type), value)
                            for one, value in zip(fields, values, strict=True)
                        )
                    )
                    for values in sorted(once.iter_rows(), key=repr)
                ],
            )
        )
    return Filter(plan, conjunction(*told)) if told else plan


def _in_column(field: Field, values: pl.Series) -> list[Expr]:
    """What is true of a column that has some values."""
    column = Column(field.name, field.type)
    distinct = values.unique()
    if distinct.len() <= _FEW:
        return [chained("or", [_is(column, value) for value in sorted(distinct, key=repr)])]
    if distinct.null_count() or field.type.kind is not Kind.BIGINT:
        return []
    least, greatest = distinct.min(), distinct.max()
    assert isinstance(least, int), "they are whole numbers"
    assert isinstance(greatest, int), "they are whole numbers"
    bounds = ((">=", least), ("<=", greatest))
    return [Call(sign, (column, Literal(bound, field.type)), BOOLEAN) for sign, bound in bounds]


def _is(column: Column, value: Value) -> Expr:
    if value is None:
        return Call("is_null", (column,), BOOLEAN)
    return Call("=", (column, Literal(value, column.type)), BOOLEAN)
