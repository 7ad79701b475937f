"""Join blocks: inner joins that stand directly above each other, and the orders they can have.

Law: a block gives the same snapshots in every shape. A join of intersected intervals depends on the
order of its inputs as little as a product does, and every part of the condition is met at the first
join where all its columns are there.

Equalities hold together: of a = b and b = c follows a = c. So expressions that must be equal form
classes, and two sides of a join that both have a part in a class are joined by it, whichever two
the query has written.

Filters between the joins belong to the condition, and projects that choose columns are looked
through. A join that is used in several places is not taken apart: it would be computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import (
    Call,
    Column,
    Expr,
    Named,
    conjunction,
    conjuncts,
    replace_columns,
)
from tidemill.algebra.plan import Filter, Join, JoinKind, Plan, Project
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.logical.predicates import filtered
from tidemill.physical.joining.condition_parts import ConditionParts, EqualClass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["JoinBlock", "Shape", "join_block", "leaves"]

Shape: TypeAlias = "int | tuple[Shape, Shape]"
"""In which order inputs are joined: the number of an input, or what is joined with what."""


def leaves(shape: Shape) -> tuple[int, ...]:
    """The inputs of a shape, from left to right.

    >>> leaves((0, (2, 1)))
    (0, 2, 1)
    """
    if isinstance(shape, int):
        return (shape,)
    return (*leaves(shape[0]), *leaves(shape[1]))


@dataclass(frozen=True)
class JoinBlock:
    """Inner joins as one join of many inputs.

    Attributes:
        inputs: What is joined.
        names: For each input, a name for each of its columns that no other column of any has.
        condition: What must be true of a combination of rows, in these names.
        columns: The columns of the answer, in these names.
        written: The shape that the query has.
        inside: The identities of the plan's parts that are not inputs.
    """

    inputs: tuple[Plan, ...]
    names: tuple[tuple[str, ...], ...]
    condition: Expr
    columns: tuple[Named, ...]
    written: Shape
    inside: frozenset[int]

    @cached_property
    def parts(self) -> ConditionParts:
        """The condition, taken apart by what its parts read."""
        return ConditionParts(self.names, self.condition)

    def shaped(self, shape: Shape, inputs: Sequence[Plan] | None = None) -> Plan:
        """The plan that joins the inputs in an order.

        Args:
            shape: The order.
            inputs: Plans with the same rows to be joined instead; ``None`` for the block's own.
        """
        plans = self.inputs if inputs is None else inputs
        plan, names, _ = self._joined(shape, plans)
        back = dict(zip(names, plan.schema.names, strict=True))
        columns = (
            Named(c.name, replace_columns(c.expr, lambda u: Column(back[u.name], u.type)))
            for c in self.columns
        )
        return Project(plan, tuple(columns))

    def _joined(
        self, shape: Shape, plans: Sequence[Plan]
    ) -> tuple[Plan, tuple[str, ...], frozenset[int]]:
        """The plan of a shape, the unique names of its columns, and the inputs it has."""
        if isinstance(shape, int):
            own, plan = self.names[shape], plans[shape]
            back = dict(zip(own, plan.schema.names, strict=True))
            alone = replace_columns(
                self.parts.entry(shape), lambda column: Column(back[column.name], column.type)
            )
            return filtered(plan, conjuncts(alone)), own, frozenset({shape})
        left, left_names, lefts = self._joined(shape[0], plans)
        right, right_names, rights = self._joined(shape[1], plans)
        names = (*left_names, *right_names)
        join = Join(left, right, JoinKind.INNER, self._due(lefts, rights), names)
        return join, names, lefts | rights

    def _due(self, left: frozenset[int], right: frozenset[int]) -> Expr:
        """What must be true where two sides meet, and could not be told before."""
        equal = [
            Call("=", (one, other), BOOLEAN)
            for class_ in self.parts.classes
            if (one := _member(class_, left)) is not None
            and (other := _member(class_, right)) is not None
        ]
        both = left | right
        rest = [
            part
            for part in self.parts.rest
            if (reads := self.parts.reads(part)) <= both and not (reads <= left or reads <= right)
        ]
        return conjunction(*equal, *rest)


def _member(class_: EqualClass, inputs: frozenset[int]) -> Expr | None:
    return next((expr for expr, owner in class_.items() if owner in inputs), None)


def join_block(plan: Plan, is_shared: Callable[[Plan], bool]) -> JoinBlock | None:
    """The block whose topmost join a node is; ``None`` if it is none.

    Args:
        plan: The node.
        is_shared: Whether a part of the plan is used in several places.
    """
    if not _is_inner(plan):
        return None
    found = _Collector(is_shared)
    columns, written = found.collect(plan)
    names = tuple(Named(name, columns[name]) for name in plan.schema.names)
    return JoinBlock(
        tuple(found.inputs),
        tuple(found.names),
        conjunction(*found.parts),
        names,
        written,
        frozenset(found.inside),
    )


def _is_inner(plan: Plan) -> bool:
    return isinstance(plan, Join) and plan.kind is JoinKind.INNER


class _Collector:
    """Takes a block apart, from the left to the right."""

    def __init__(self, is_shared: Callable[[Plan], bool]) -> None:
        self._is_shared = is_shared
        self._taken: set[str] = set()
        self.inputs: list[Plan] = []
        self.names: list[tuple[str, ...]] = []
        self.parts: list[Expr] = []
        self.inside: set[int] = set()

    def collect(self, plan: Plan) -> tuple[Mapping[str, Column], Shape]:
        """What each column of a part of the block is called, and the part's shape."""
        self.inside.add(id(plan))
        match plan:
            case Join(left, right, JoinKind.INNER, condition, names):
                lefts, left_shape = self._side(left)
                rights, right_shape = self._side(right)
                old = [lefts[name] for name in left.schema.names]
                old += [rights[name] for name in right.schema.names]
                columns = dict(zip(names, old, strict=True))
                self._take(condition, columns)
                return columns, (left_shape, right_shape)
            case Filter(input_, predicate):
                columns_below, shape = self._side(input_)
                self._take(predicate, columns_below)
                return columns_below, shape
            case Project(input_, chosen):
                below, shape = self._side(input_)
                kept = {c.name: below[c.expr.name] for c in chosen if isinstance(c.expr, Column)}
                return kept, shape
            case _:
                raise AssertionError("only these are looked through")

    def _side(self, plan: Plan) -> tuple[Mapping[str, Column], Shape]:
        if self._is_inside(plan):
            return self.collect(plan)
        own = tuple(self._fresh(name) for name in plan.schema.names)
        columns = {f.name: Column(n, f.type) for f, n in zip(plan.schema, own, strict=True)}
        self.inputs.append(plan)
        self.names.append(own)
        return columns, len(self.inputs) - 1

    def _is_inside(self, plan: Plan) -> bool:
        """Whether there is a join below what is looked through, all of it used here only."""
        while not self._is_shared(plan):
            match plan:
                case Join():
                    return plan.kind is JoinKind.INNER
                case Filter(input_):
                    plan = input_
                case Project(input_, columns) if all(isinstance(c.expr, Column) for c in columns):
                    plan = input_
                case _:
                    return False
        return False

    def _take(self, condition: Expr, columns: Mapping[str, Column]) -> None:
        unique = replace_columns(condition, lambda column: columns[column.name])
        self.parts += conjuncts(unique)

    def _fresh(self, name: str) -> str:
        """A name that is not taken: the column's own, or with a number."""
        fresh, number = name, 1
        while fresh in self._taken:
            number += 1
            fresh = f"{name}_{number}"
        self._taken.add(fresh)
        return fresh
