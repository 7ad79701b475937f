"""The physical plan: a graph of operators, and the exchanges at which rows change partition.

Equal parts are equal values, so that plans share them; ``fingerprint`` is the same for the same
part in every process and version of a plan, and is what state is found by.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator

__all__ = ["Apply", "Exchange", "Input", "PhysicalPlan", "fingerprint", "inputs", "walk_physical"]


@dataclass(frozen=True, slots=True)
class Input:
    """What comes from outside: the elements of a stream or the rows of a relation."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Exchange:
    """The same rows, those that agree on the keys in one partition; without keys, all in one."""

    input: PhysicalPlan
    keys: tuple[Expr, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator on its inputs."""

    operator: Operator
    inputs: tuple[PhysicalPlan, ...]

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
        name = fingerprint(plan)
        if name in seen:
            return
        seen.add(name)
        for part in inputs(plan):
            yield from visit(part)
        yield plan

    for root in roots:
        yield from visit(root)


def fingerprint(plan: PhysicalPlan) -> str:
    """A short name for a part of a plan: equal for equal parts, different for different ones."""
    match plan:
        case Input(name, schema):
            own = f"input {name} {schema!r}"
        case Exchange(_, keys):
            own = f"exchange {keys!r}"
        case Apply(operator):
            own = f"apply {operator!r}"
        case _:
            assert_never(plan)
    text = "\n".join([own, *map(fingerprint, inputs(plan))])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
