"""An aggregate above a join that is taken before it: of one side, by what the join looks at.

What is said here is used, and argued for, in ``rules/push_aggregate_below_join.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import (
    AggregateCall,
    Call,
    Column,
    Expr,
    Literal,
    Named,
    conjuncts,
    replace_columns,
    used_columns,
)
from tidemill.algebra.keys import keys
from tidemill.algebra.plan import Aggregate, Distinct, Join, JoinKind, NamedAggregate, Project
from tidemill.model.types import BIGINT
from tidemill.optimizer.logical.duplicates import EXTREMES, counts_no_copies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidemill.algebra.plan import Plan

__all__ = ["EagerAggregate", "eager_aggregate", "named_expr", "with_exprs"]


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join.

    Attributes:
        plan: The input.
        names: Its columns in the names of the join.
    """

    plan: Plan
    names: tuple[str, ...]

    def own(self, expr: Expr) -> Expr:
        """An expression in the input's own names."""
        own = dict(zip(self.names, self.plan.schema.names, strict=True))
        return replace_columns(expr, lambda column: Column(own[column.name], column.type))

    def has_key_in(self, known: Iterable[str]) -> bool:
        """Whether a key of the input is among some columns, in the names of the join."""
        own = dict(zip(self.names, self.plan.schema.names, strict=True))
        found = {own[name] for name in known if name in own}
        return any(key <= found for key in keys(self.plan))

    def distinct(self, read: frozenset[str]) -> Side:
        """The columns that are read, each combination once."""
        fields = zip(self.plan.schema, self.names, strict=True)
        kept = [(field, name) for field, name in fields if name in read]
        plan = self.plan
        if len(kept) < len(self.names):
            plan = Project(plan, tuple(Named(f.name, Column(f.name, f.type)) for f, _ in kept))
        return Side(Distinct(plan), tuple(name for _, name in kept))


@dataclass(frozen=True, slots=True)
class EagerAggregate:
    """An aggregate directly above an inner join, and how it is taken of one side first.

    Attributes:
        whole: The aggregate.
        join: The join below it.
        is_left: Whether it is taken of the left side.
        by: What the side is grouped by, in the names of the join.
        values: The aggregates, under names that are not taken.
        keys: The keys of the answer, of what the side is grouped by and of the other side.
    """

    whole: Aggregate
    join: Join
    is_left: bool
    by: tuple[Named, ...]
    values: tuple[NamedAggregate, ...]
    keys: tuple[Named, ...]

    def at_once(self) -> Plan | None:
        """The plan in which each group meets one row; ``None`` where it may meet several."""
        known = _determined(self.whole, self.join)
        own, other = _sides(self.join, is_left=self.is_left)
        read = used_columns(self.join.condition)
        if not read & {*own.names} <= known:
            return None
        if not other.has_key_in(known) and counts_no_copies(self.whole):
            read = read.union(*(used_columns(key.expr) for key in self.keys))
            other = other.distinct(read) if read & {*other.names} else other
        if not other.has_key_in(known):
            return None
        made = zip(self.whole.aggregates, self.values, strict=True)
        values = (Named(a.name, Column(value.name, a.call.type)) for a, value in made)
        return Project(self._joined(other), (*self.keys, *values))

    def in_two_steps(self) -> Plan | None:
        """The plan in which groups are put together that belong to one group of the answer."""
        above: list[NamedAggregate] = []
        for a, value in zip(self.whole.aggregates, self.values, strict=True):
            function = _put_together(a.call)
            if function is None:
                return None
            part = Column(value.name, a.call.type)
            above.append(NamedAggregate(a.name, AggregateCall(function, part, a.call.type)))
        _, other = _sides(self.join, is_left=self.is_left)
        together = Aggregate(self._joined(other), self.keys, tuple(above))
        # A sum may be NULL where no count is, so a project says that this one is not.
        counts = {a.name for a in self.whole.aggregates if a.call.function == "count"}
        columns = tuple(
            Named(f.name, _or_zero(f.name) if f.name in counts else Column(f.name, f.type))
            for f in together.schema
        )
        return Project(together, columns) if counts else together

    def _joined(self, other: Side) -> Join:
        """The groups of one side, joined with the rows of the other."""
        own, _ = _sides(self.join, is_left=self.is_left)
        groups = Aggregate(
            own.plan,
            tuple(named_expr(key, own.own) for key in self.by),
            tuple(NamedAggregate(a.name, with_exprs(a.call, own.own)) for a in self.values),
        )
        sides = [(groups, groups.schema.names), (other.plan, other.names)]
        (left, names), (right, others) = sides if self.is_left else reversed(sides)
        return Join(left, right, JoinKind.INNER, self.join.condition, (*names, *others))


def eager_aggregate(whole: Aggregate, *, is_left: bool) -> EagerAggregate | None:
    """How an aggregate directly above a join is taken of a side first; ``None`` if it cannot be."""
    join = whole.input
    assert isinstance(join, Join), "the aggregate is directly above a join"
    own, other = _sides(join, is_left=is_left)
    of_own, of_other = frozenset(own.names), frozenset(other.names)
    read = [expr for a in whole.aggregates for expr in _exprs(a.call)]
    if not all(used_columns(expr) <= of_own for expr in read) or not all(
        used_columns(key.expr) <= of_own or used_columns(key.expr) <= of_other for key in whole.keys
    ):
        return None
    fresh = _Fresh(join.names)
    met = used_columns(join.condition) & of_own
    by = {name: Named(name, Column(name, join.schema[name].type)) for name in own.names}
    by = {name: key for name, key in by.items() if name in met}
    above = []
    for key in whole.keys:
        expr = key.expr
        if used_columns(expr) <= of_own:
            name = expr.name if isinstance(expr, Column) else fresh.name(key.name)
            by.setdefault(name, Named(name, expr))
            expr = Column(name, expr.type)
        above.append(Named(key.name, expr))
    values = tuple(NamedAggregate(fresh.name(a.name), a.call) for a in whole.aggregates)
    if not (by or values) or own.has_key_in(by):
        return None  # each group has one row
    return EagerAggregate(whole, join, is_left, tuple(by.values()), values, tuple(above))


def named_expr(named: Named, change: Callable[[Expr], Expr]) -> Named:
    """The same name for another expression."""
    return Named(named.name, change(named.expr))


def with_exprs(call: AggregateCall, change: Callable[[Expr], Expr]) -> AggregateCall:
    """The same aggregate of other expressions."""
    argument, condition = (
        None if expr is None else change(expr) for expr in (call.argument, call.condition)
    )
    return replace(call, argument=argument, condition=condition)


class _Fresh:
    """Names that are not taken."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {name.lower() for name in taken}

    def name(self, wanted: str) -> str:
        """The name, with a number if it is taken; it is taken from now on."""
        found, number = wanted, 1
        while found.lower() in self._taken:
            number += 1
            found = f"{wanted}_{number}"
        self._taken.add(found.lower())
        return found


def _sides(join: Join, *, is_left: bool) -> tuple[Side, Side]:
    """The side that is aggregated, and the other one."""
    width = len(join.left.schema)
    left, right = Side(join.left, join.names[:width]), Side(join.right, join.names[width:])
    return (left, right) if is_left else (right, left)


def _exprs(call: AggregateCall) -> list[Expr]:
    return [expr for expr in (call.argument, call.condition) if expr is not None]


def _determined(whole: Aggregate, join: Join) -> frozenset[str]:
    """The columns of a join that have one value in each group of the aggregate above it."""
    known = {key.expr.name for key in whole.keys if isinstance(key.expr, Column)}
    equal = [
        {one.name, other.name}
        for part in conjuncts(join.condition)
        if isinstance(part, Call) and part.function in ("=", "is_not_distinct")
        for one, other in [part.arguments]
        if isinstance(one, Column) and isinstance(other, Column)
    ]
    while more := [pair for pair in equal if len(pair & known) == 1]:
        known.update(*more)
    return frozenset(known)


def _put_together(call: AggregateCall) -> str | None:
    """The aggregate that makes one value of those of several groups; ``None`` if there is none."""
    if call.function == "count":
        return None if call.distinct else "sum"
    return call.function if call.function in EXTREMES else None


def _or_zero(name: str) -> Expr:
    return Call("coalesce", (Column(name, BIGINT), Literal(0, BIGINT)), BIGINT)
