"""The physical plan: a graph of operators, and the exchanges at which rows change partition.

A part has a ``fingerprint``: a short name, equal for equal parts in every process and version of a
plan and different for different ones. Parts are equal if their fingerprints are; state is found by
it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator

__all__ = [
    "Apply",
    "Exchange",
    "Input",
    "PhysicalPlan",
    "begun_in",
    "inputs",
    "rebuilt",
    "walk_physical",
]


@dataclass(frozen=True, slots=True)
class Input:
    """What comes from outside: the elements of a stream or the rows of a relation.

    A relation comes in once. Queries that begin later need it again, and what is computed from it
    for them is not what is there already: their inputs are of another ``epoch``.
    """

    name: str
    schema: Schema = field(compare=False)
    epoch: int = 0
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        epoch = f" epoch {self.epoch}" if self.epoch else ""
        _set_fingerprint(self, f"input {self.name} {self.schema!r}{epoch}")

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
        _set_fingerprint(self, f"exchange {self.keys!r}")


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

    def __post_init__(self) -> None:
        # Operators of both forms may have one name.
        form = "signed " if ".signed_" in type(self.operator).__module__ else ""
        epoch = f" epoch {self.epoch}" if self.epoch else ""
        _set_fingerprint(self, f"apply {form}{self.operator!r}{epoch}")

    @property
    def schema(self) -> Schema:
        """The columns of the output."""
        return self.operator.schema


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
        match part:
            case Input():
                moved: PhysicalPlan = part
            case Exchange(_, keys, schema):
                moved = Exchange(below[0], keys, schema)
            case Apply(operator):
                moved = Apply(operator, below, part.epoch)
            case _:
                assert_never(part)
        new[part.fingerprint] = change(moved)
    return new[plan.fingerprint], {old: part.fingerprint for old, part in new.items()}


def begun_in(plan: PhysicalPlan, epoch: int, relations: Container[str]) -> PhysicalPlan:
    """The plan of a query that begins in an epoch.

    What an operator without state gives depends on what comes in now, so it can be shared with
    queries that began before. What one with state gives depends on its past as well, and the query
    has a past of its own: the rows that come from now on, and all rows of relations.

    Args:
        plan: The plan.
        epoch: When it begins.
        relations: What it gets anew.
    """

    def stamped(part: PhysicalPlan) -> PhysicalPlan:
        if isinstance(part, Input) and part.name in relations:
            return replace(part, epoch=epoch)
        if isinstance(part, Apply) and _has_state(part.operator):
            return Apply(part.operator, part.inputs, epoch)
        return part

    return rebuilt(plan, stamped)[0]


def _has_state(operator: Operator) -> bool:
    state = operator.new_state()
    return bool(state.tables or state.numbers)


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
