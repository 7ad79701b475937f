"""Wanted: which rows of its streams a plan can be made of, by their values.

A filter that stands above a stream, with nothing between that looks at more than one row, says that
other rows do not matter. A window over the last rows of groups looks at more than one, but of one
group: of a group without a row that passes a filter above it, no row matters.

    Filter dir = 1                               of report the rows of cars that have
      Window partition by carid rows=4    ->     a report in direction 1
        Source report

Law: the answer of the plan is the same without the rows that it does not want.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import (
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    chained,
    conjunction,
    conjuncts,
    replace_columns,
    used_columns,
    walk_expr,
)
from tidemill.algebra.plan import (
    Filter,
    Plan,
    Project,
    RowWindow,
    SessionWindow,
    Source,
    TimeWindow,
    Unbounded,
    Window,
)
from tidemill.algebra.tree import children
from tidemill.model.types import Kind
from tidemill.physical.eval import compile_predicate

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from tidemill.model.batch import Batch

__all__ = ["Groups", "Part", "choice", "either", "is_all", "rows_wanted", "within"]

_SAFE = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "and", "or", "is_null", "is_not_null", "is_not_distinct"}
)
"""What can be asked of any row, also of one that the plan would not have come to."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of rows, of which one at least meets all of some conditions.

    Attributes:
        keys: The columns whose values make a group.
        conditions: The conditions.
    """

    keys: tuple[str, ...]
    conditions: frozenset[Expr]


@dataclass(frozen=True, slots=True)
class Part:
    """The rows that one place of a plan can be made of.

    Attributes:
        conditions: What is true of each of them.
        groups: In which groups they are; ``None`` for all.
    """

    conditions: frozenset[Expr] = frozenset()
    groups: Groups | None = None

    @property
    def is_all(self) -> bool:
        """Whether it is all rows."""
        return not self.conditions and self.groups is None


def is_all(parts: frozenset[Part]) -> bool:
    """Whether some place of the plan wants all rows."""
    return any(part.is_all for part in parts)


def within(parts: frozenset[Part], others: frozenset[Part]) -> bool:
    """Whether all rows of some parts are rows of others, as far as one can see."""
    return all(
        any(
            other.conditions <= part.conditions and _has_groups(other.groups, part.groups)
            for other in others
        )
        for part in parts
    )


def _has_groups(groups: Groups | None, others: Groups | None) -> bool:
    """Whether all groups of others are among some groups, as far as one can see."""
    if groups is None or others is None:
        return groups is None
    return groups.keys == others.keys and groups.conditions <= others.conditions


def either(parts: frozenset[Part], columns: Container[str]) -> Expr:
    """What is true of all rows of some parts, as far as some columns say it."""
    told: list[Expr] = []
    for part in sorted(parts, key=repr):
        usable = (one for one in part.conditions if all(n in columns for n in used_columns(one)))
        told.append(conjunction(*sorted(usable, key=repr)))
    return chained("or", told) if told and TRUE not in told else TRUE


def rows_wanted(plan: Plan) -> dict[str, frozenset[Part]]:
    """Which rows of each stream a plan can be made of, place by place.

    Args:
        plan: The plan; after rules that push filters down it says more.
    """
    walked = _Walk()
    walked.visit(plan, Part())
    return {name: frozenset(parts) for name, parts in walked.found.items()}


@dataclass(slots=True)
class _Walk:
    """A walk through a plan, with what is wanted of the rows of each node."""

    found: dict[str, set[Part]] = field(default_factory=dict)
    _seen: set[tuple[int, Part]] = field(default_factory=set)

    def visit(self, node: Plan, part: Part) -> None:
        if (id(node), part) in self._seen:
            return
        self._seen.add((id(node), part))
        match node:
            case Source(name):
                self.found.setdefault(name, set()).add(part)
            case Filter(below, predicate):
                more = {_plain(one) for one in conjuncts(predicate) if _is_safe(one)}
                self.visit(below, Part(part.conditions | more, part.groups))
            case Project(below):
                self.visit(below, _below(node, part))
            case Window(below, TimeWindow() | Unbounded()):
                self.visit(below, part)
            case Window(below, RowWindow() | SessionWindow() as spec):
                self.visit(below, _of_groups(spec.partition_by, part))
            case _:
                for child in children(node):
                    self.visit(child, Part())


def _is_safe(condition: Expr) -> bool:
    return all(
        isinstance(one, Column | Literal) or (isinstance(one, Call) and one.function in _SAFE)
        for one in walk_expr(condition)
    )


def _plain(condition: Expr) -> Expr:
    """The same condition, written as others are that say the same."""
    match condition:
        case Call("is_not_distinct", (Column(_, type_) as column, Literal(value)), boolean) if (
            value is not None and type_.kind is not Kind.DOUBLE
        ):
            return Call("=", (column, Literal(value, type_)), boolean)
        case _:
            return condition


def _of_groups(keys: tuple[str, ...], part: Part) -> Part:
    """What is wanted below a window over groups."""
    if not keys or part.groups is not None or not part.conditions:
        return Part()
    own = frozenset(one for one in part.conditions if used_columns(one) <= {*keys})
    return Part(own, Groups(keys, part.conditions))


def _below(project: Project, part: Part) -> Part:
    """The same in the columns below a projection, as far as they are columns there."""
    known = {one.name: one.expr for one in project.columns if isinstance(one.expr, Column)}

    def said(conditions: Iterable[Expr]) -> frozenset[Expr]:
        usable = (one for one in conditions if used_columns(one) <= known.keys())
        return frozenset(replace_columns(one, lambda column: known[column.name]) for one in usable)

    groups = part.groups
    if groups is not None:
        told = said(groups.conditions)
        is_said = told and known.keys() >= {*groups.keys}
        keys = tuple(known[key].name for key in groups.keys) if is_said else ()
        groups = Groups(keys, told) if keys else None
    return Part(said(part.conditions), groups)


def choice(
    parts: frozenset[Part], batches: Callable[[], Iterable[Batch]]
) -> Callable[[Batch], Batch]:
    """What leaves in a batch the rows that are wanted.

    Args:
        parts: Which rows are wanted, at one place or another.
        batches: Gives all rows, to find out which groups are wanted.
    """
    asked = {part.groups for part in parts if part.groups is not None}
    keys = _keys_of(asked, batches()) if asked else {}

    def chosen(batch: Batch) -> Batch:
        masks = [_mask(part, keys, batch) for part in sorted(parts, key=repr)]
        return batch.filter(reduce(or_, masks))

    return chosen


def _keys_of(asked: set[Groups], batches: Iterable[Batch]) -> Mapping[Groups, pl.DataFrame]:
    """The values of the keys of groups that are wanted."""
    found: dict[Groups, list[pl.DataFrame]] = {groups: [] for groups in asked}
    for batch in batches:
        for groups, some in found.items():
            meets = batch.filter(_predicate(groups.conditions))
            some.append(meets.select(groups.keys).unique())
    return {groups: pl.concat(some).unique() for groups, some in found.items() if some}


def _mask(part: Part, keys: Mapping[Groups, pl.DataFrame], batch: Batch) -> pl.Series:
    everything = pl.repeat(value=True, n=batch.height, dtype=pl.Boolean, eager=True)
    mask = everything
    if part.conditions:
        mask &= batch.select(_predicate(part.conditions).alias("@mask"))["@mask"]
    if part.groups is not None:
        wanted = keys.get(part.groups)
        if wanted is None:
            return ~everything
        names = list(part.groups.keys)
        marked = wanted.with_columns(pl.lit(value=True).alias("@mask"))
        there = batch.select(names).join(
            marked, on=names, how="left", nulls_equal=True, maintain_order="left"
        )
        mask &= there["@mask"].fill_null(value=False)
    return mask.fill_null(value=False)


def _predicate(conditions: frozenset[Expr]) -> pl.Expr:
    return compile_predicate(conjunction(*sorted(conditions, key=repr)))
