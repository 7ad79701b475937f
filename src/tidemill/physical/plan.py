"""The physical plan: a graph of operators, and the exchanges at which rows change partition.

A part has a ``fingerprint``: a short name, equal for equal parts in every process and version of a
plan and different for different ones. Parts are equal if their fingerprints are; state is found by
it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, assert_never

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator

__all__ = ["Apply", "Exchange", "Input", "PhysicalPlan", "inputs", "walk_physical"]


@dataclass(frozen=True, slots=True)
class Input:
    """What comes from outside: the elements of a stream or the rows of a relation."""

    name: str
    schema: Schema = field(compare=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _set_fingerprint(self, f"input {self.name} {self.schema!r}")


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
    """An operator on its inputs."""

    operator: Operator = field(compare=False)
    inputs: tuple[PhysicalPlan, ...] = field(compare=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _set_fingerprint(self, f"apply {self.operator!r}")

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
