"""The physical plan: a graph of operators, and the exchanges at which rows change partition.

A part has a ``fingerprint``: a short name, equal for equal parts in every process and version of a
plan and different for different ones. It is a hash of what is written of the part (``codec``).
Parts are equal if their fingerprints are; state is found by it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.codec.values import EXPR, SCHEMA, canonical
from tidemill.physical.codec.operators import identity

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator
    from tidemill.physical.traits import Traits

__all__ = [
    "Apply",
    "Exchange",
    "Input",
    "PhysicalPlan",
    "begun_in",
    "inputs",
    "over",
    "rebuilt",
    "walk_physical",
]


@dataclass(frozen=True, slots=True)
class Input:
    """What comes from outside: the elements of a stream or the rows of a relation.

    A relation comes in once. Queries that begin later need it again, and what is computed from it
    for them is not what is there already: their inputs are of another ``epoch``. So are those of
    queries that are filled with the kept rows of a stream.
    """

    name: str
    schema: Schema = field(compare=False)
    epoch: int = 0
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        epoch = f" epoch {self.epoch}" if self.epoch else ""
        _set_fingerprint(self, f"input {self.name} {canonical(SCHEMA.write(self.schema))}{epoch}")

    @property
    def rows(self) -> str:
        """What a reader calls its rows; nothing else has a name that ends like this."""
        return f"{self.name}#{self.epoch}:{self.fingerprint}" if self.epoch else self.name


@dataclass(frozen=True, slots=True)
class Exchange:
    """The same rows, those that agree on the keys in one partition; without keys, all in one."""

    input: PhysicalPlan = field(compare=False)
    keys: tuple[Expr, ...] = field(compare=False)
    schema: Schema = field(compare=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _set_fingerprint(self, f"exchange {canonical([EXPR.write(key) for key in self.keys])}")


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator on its inputs.

    A query that begins later must not see what came before it, so an operator that remembers
    anything is shared by the queries that began in the same ``epoch`` only.
    """

    operator: Operator = field(compare=False)
    inputs: tuple[PhysicalPlan, ...] = field(compare=False)
    epoch: int = field(default=0, compare=False)
    fingerprint: str = field(init=False, repr=False)
    _traits: list[Traits] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        epoch = f" epoch {self.epoch}" if self.epoch else ""
        _set_fingerprint(self, f"apply {identity(self.operator)}{epoch}")

    @property
    def schema(self) -> Schema:
        """The columns of the output."""
        return self.operator.schema

    @property
    def traits(self) -> Traits:
        """What the operator promises; found out once."""
        if not self._traits:
            self._traits.append(self.operator.traits)
        return self._traits[0]


PhysicalPlan: TypeAlias = Input | Exchange | Apply


def inputs(plan: PhysicalPlan) -> tuple[PhysicalPlan, ...]:
    """The parts directly below."""
    match plan:
        case Input():
            return ()
        case Exchange(input_):
            return (input_,)
        case Apply(_, parts):
            return parts
        case _:
            assert_never(plan)


def rebuilt(
    plan: PhysicalPlan, change: Callable[[PhysicalPlan], PhysicalPlan]
) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with each part changed, inputs before what stands above them.

    Returns:
        The plan, and for each part of the given one the part that stands in its place, by
        fingerprint.
    """
    new: dict[str, PhysicalPlan] = {}
    for part in walk_physical([plan]):
        below = tuple(new[b.fingerprint] for b in inputs(part))
        new[part.fingerprint] = change(over(part, below))
    return new[plan.fingerprint], {old: part.fingerprint for old, part in new.items()}


def over(part: PhysicalPlan, below: tuple[PhysicalPlan, ...]) -> PhysicalPlan:
    """The part over other inputs; itself, if they are the same."""
    if all(a is b for a, b in zip(inputs(part), below, strict=True)):
        return part
    match part:
        case Input():
            return part
        case Exchange(_, keys, schema):
            return Exchange(below[0], keys, schema)
        case Apply(operator):
            moved = Apply(operator, below, part.epoch)
            moved._traits.extend(part._traits)  # noqa: SLF001 — it is the same operator
            return moved
        case _:
            assert_never(part)


def begun_in(
    plan: PhysicalPlan, epoch: int, anew: Container[str]
) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan of a query that begins in an epoch.

    What an operator without state gives depends on what comes in now, so it can be shared with
    queries that began before. What one with state gives depends on its past as well, and the query
    has a past of its own: the rows that come from now on, and all rows of relations.

    Args:
        plan: The plan.
        epoch: When it begins.
        anew: What it gets anew: relations, and streams that are replayed.

    Returns:
        The plan, and for each part of the given one the part that stands in its place, by
        fingerprint.
    """

    def stamped(part: PhysicalPlan) -> PhysicalPlan:
        if isinstance(part, Input) and part.name in anew:
            return replace(part, epoch=epoch)
        if isinstance(part, Apply) and part.traits.remembers:
            return Apply(part.operator, part.inputs, epoch)
        return part

    return rebuilt(plan, stamped)


def walk_physical(roots: Iterable[PhysicalPlan]) -> Iterator[PhysicalPlan]:
    """Every different part once, inputs before what stands above them."""
    seen: set[str] = set()

    def visit(plan: PhysicalPlan) -> Iterator[PhysicalPlan]:
        if plan.fingerprint in seen:
            return
        seen.add(plan.fingerprint)
        for part in inputs(plan):
            yield from visit(part)
        yield plan

    for root in roots:
        yield from visit(root)


def _set_fingerprint(plan: PhysicalPlan, own: str) -> None:
    text = "\n".join([own, *(part.fingerprint for part in inputs(plan))])
    object.__setattr__(plan, "fingerprint", hashlib.sha256(text.encode()).hexdigest()[:16])
