"""The plan of a join of many inputs: what is asked for at which step of which probe.

Law:    for every order of probing, the conditions that are met on entry and at the steps are
        together the condition: each part at the first step where all its columns are there.

An input's own part of a class of equal expressions is checked when a row comes in, one pair for
each class is looked up at a step, and what else the class says follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import TRUE, Expr
from tidemill.physical.eval import compile_predicate
from tidemill.physical.joining.condition_parts import ConditionParts
from tidemill.physical.joining.conditions import split_condition
from tidemill.physical.joining.probe import Step
from tidemill.physical.joining.side import Side, lookup_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.model.schema import Field, Schema
    from tidemill.physical.joining.conditions import Equality
    from tidemill.physical.kernels.window_closure import Windows

__all__ = ["ProbePlan", "begin", "plan_probes"]


@dataclass(frozen=True, slots=True, eq=False)
class ProbePlan:
    """What a join of many inputs does.

    Attributes:
        sides: For each input, what is remembered of its rows. It does not depend on the orders.
        entry: For each input, what its rows meet by themselves.
        steps: For each input, how its rows meet the others, in the order of its probe.
    """

    sides: tuple[Side, ...]
    entry: tuple[tuple[pl.Expr, ...], ...]
    steps: tuple[tuple[Step, ...], ...]


def begin(port: int) -> str:
    """The column with the start that an element of an input came with."""
    return f"@begin{port}"


def plan_probes(
    inputs: Sequence[Schema],
    fields: Sequence[Field],
    condition: Expr,
    orders: Sequence[Sequence[int]],
    within: Windows | None,
) -> ProbePlan:
    """The plan for a condition.

    Args:
        inputs: The columns of each input.
        fields: The columns of all under the names of the output.
        condition: What must be true, in these names.
        orders: For each input, the others in the order in which it probes them.
        within: How far the starts of two inputs' elements may be apart.
    """
    offsets = accumulate(map(len, inputs), initial=0)
    named = [fields[at : at + len(own)] for at, own in zip(offsets, inputs, strict=False)]
    parts = ConditionParts([[f.name for f in own] for own in named], condition)
    keys = [parts.keys(port) for port in range(len(inputs))]
    sides = [
        Side(schema, new, list(own), list(own.values()), mark=f"@key{port}_")
        for port, (schema, new, own) in enumerate(zip(inputs, named, keys, strict=True))
    ]
    stored = {
        key: name
        for own, side in zip(keys, sides, strict=True)
        for key, name in zip(own, side.keys, strict=True)
    }
    members = [parts.members(port) for port in range(len(inputs))]
    entry = [_predicate(parts.entry(port)) for port in range(len(inputs))]
    steps = [
        _steps(parts, members, stored, (port, *order), within) for port, order in enumerate(orders)
    ]
    return ProbePlan(tuple(sides), tuple(entry), tuple(steps))


def _steps(
    parts: ConditionParts,
    members: Sequence[Mapping[int, Expr]],
    stored: dict[Expr, str],
    order: Sequence[int],
    within: Windows | None,
) -> tuple[Step, ...]:
    """How the rows of the first input of an order meet the others."""
    steps: list[Step] = []
    known = dict(members[order[0]])  # of each class the part that came first
    for at, port in enumerate(order[1:], start=1):
        own = members[port]
        equal = [(known[class_], key) for class_, key in own.items() if class_ in known]
        steps.append(_step(parts, stored, order[:at], port, equal, within))
        for class_, key in own.items():
            known.setdefault(class_, key)
    return tuple(steps)


def _step(  # noqa: PLR0913, PLR0917 — what is known of a step
    parts: ConditionParts,
    stored: dict[Expr, str],
    prefix: Sequence[int],
    port: int,
    equal: Sequence[tuple[Expr, Expr]],
    within: Windows | None,
) -> Step:
    """How combinations of the inputs in ``prefix`` meet one more, by equal parts and the rest."""
    equalities, residual = _rest(parts, prefix, port)
    pairs = [*equal, *((e.left, e.right) for e in equalities)]
    left = _Keys(stored, "@left", [one for one, _ in pairs])
    right = _Keys(stored, "@right", [other for _, other in pairs])
    near = [] if within is None else _near(within, prefix, port)
    return Step(
        keys=left.names,
        other_keys=right.names,
        computed=left.computed,
        other_computed=right.computed,
        # Rows in which the other key of an equality is NULL are never remembered.
        nulls_equal=any(e.null_safe for e in equalities),
        filters=(*near, *_predicate(residual)),
    )


def _rest(
    parts: ConditionParts, prefix: Sequence[int], port: int
) -> tuple[tuple[Equality, ...], Expr]:
    """What else must be true of combinations and one more input: equalities, and the others."""
    due = parts.due(prefix, port)
    if due == TRUE:
        return (), TRUE
    return split_condition(due, parts.names(*prefix), parts.names(port))


class _Keys:
    """The columns of one side of a step that are looked up, and those of them to compute."""

    __slots__ = ("computed", "names")

    def __init__(self, stored: dict[Expr, str], mark: str, keys: Sequence[Expr]) -> None:
        names: list[str] = []
        computed: list[pl.Expr] = []
        for i, key in enumerate(keys):
            name = stored.get(key)
            # Polars wants each key once; a column that occurs twice gets a second name.
            if name is None or name in names:
                name = f"{mark}{i}"
                computed.append(lookup_key(key).alias(name))
            names.append(name)
        self.names, self.computed = tuple(names), tuple(computed)


def _near(within: Windows, prefix: Sequence[int], port: int) -> list[pl.Expr]:
    """That the starts of an input's element and of those before are near enough."""
    return [
        (pl.col(begin(other)) - pl.col(begin(port))).abs() <= limit
        for other in prefix
        if (limit := within[other][port]) is not None
    ]


def _predicate(condition: Expr) -> tuple[pl.Expr, ...]:
    """What a frame is filtered by, if by anything."""
    return () if condition == TRUE else (compile_predicate(condition),)
