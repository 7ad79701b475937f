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

from tidemill.algebra.expr import TRUE, Call, Expr, conjunction
from tidemill.model.types import BOOLEAN
from tidemill.physical.eval import compile_predicate
from tidemill.physical.joining.condition_parts import ConditionParts
from tidemill.physical.joining.conditions import split_condition
from tidemill.physical.joining.probe import Step
from tidemill.physical.joining.side import Side, lookup_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidemill.model.schema import Field, Schema
    from tidemill.physical.joining.conditions import Equality
    from tidemill.physical.kernels.window_closure import Windows

__all__ = ["ProbePlan", "Probing", "begin", "plan_probes"]


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
    probing = Probing(inputs, fields, condition, within)
    steps = [probing.steps([(one,) for one in (port, *order)]) for port, order in enumerate(orders)]
    return ProbePlan(probing.sides, probing.entry, tuple(steps))


class Probing:
    """What is asked for of the rows of each input, and at the steps of any probe.

    Args:
        inputs: The columns of each input.
        fields: The columns of all under the names of the output.
        condition: What must be true, in these names.
        within: How far the starts of two inputs' elements may be apart.

    Attributes:
        sides: For each input, what is remembered of its rows.
        entry: For each input, what its rows meet by themselves.
    """

    __slots__ = ("_members", "_parts", "_stored", "_within", "entry", "sides")

    def __init__(
        self,
        inputs: Sequence[Schema],
        fields: Sequence[Field],
        condition: Expr,
        within: Windows | None = None,
    ) -> None:
        offsets = accumulate(map(len, inputs), initial=0)
        named = [fields[at : at + len(own)] for at, own in zip(offsets, inputs, strict=False)]
        parts = ConditionParts([[f.name for f in own] for own in named], condition)
        keys = [parts.keys(port) for port in range(len(inputs))]
        self.sides = tuple(
            Side(schema, new, list(own), list(own.values()), mark=f"@key{port}_")
            for port, (schema, new, own) in enumerate(zip(inputs, named, keys, strict=True))
        )
        self.entry = tuple(_predicate(parts.entry(port)) for port in range(len(inputs)))
        self._parts, self._within = parts, within
        self._members = [parts.members(port) for port in range(len(inputs))]
        self._stored = {
            key: name
            for own, side in zip(keys, self.sides, strict=True)
            for key, name in zip(own, side.keys, strict=True)
        }

    def shared_keys(self) -> tuple[tuple[str, ...], ...]:
        """For each input, the columns on which all inputs must agree, in one order."""
        shared = sorted(set.intersection(*(set(own) for own in self._members)))
        return tuple(tuple(self._stored[own[class_]] for class_ in shared) for own in self._members)

    def steps(self, groups: Sequence[Sequence[int]]) -> tuple[Step, ...]:
        """How combinations of the first inputs meet those of others, group by group.

        Args:
            groups: Inputs whose rows are combinations already, in the order of a probe.
        """
        steps: list[Step] = []
        known = self._equated(groups[0])  # of each class the part that came first
        prefix = list(groups[0])
        for group in groups[1:]:
            own = self._equated(group)
            equal = [(known[class_], key) for class_, key in own.items() if class_ in known]
            steps.append(self._step(prefix, group, equal))
            for class_, key in own.items():
                known.setdefault(class_, key)
            prefix += group
        return tuple(steps)

    def _equated(self, group: Sequence[int]) -> dict[int, Expr]:
        """For each class in which inputs have a part, the first such part."""
        found: dict[int, Expr] = {}
        for port in group:
            found = {**self._members[port], **found}
        return dict(sorted(found.items()))

    def _step(
        self, prefix: Sequence[int], group: Sequence[int], equal: Sequence[tuple[Expr, Expr]]
    ) -> Step:
        """How combinations of the inputs in ``prefix`` meet more, by equal parts and the rest."""
        equalities, residual = _rest(self._parts, prefix, group)
        nulls_equal = any(e.null_safe for e in equalities)
        if nulls_equal:
            residual = conjunction(residual, *map(_strict, self._loose(equalities)))
        pairs = [*equal, *((e.left, e.right) for e in equalities)]
        left = _Keys(self._stored, "@left", [one for one, _ in pairs])
        right = _Keys(self._stored, "@right", [other for _, other in pairs])
        near = [] if self._within is None else _near(self._within, prefix, group)
        return Step(
            keys=left.names,
            other_keys=right.names,
            computed=left.computed,
            other_computed=right.computed,
            nulls_equal=nulls_equal,
            filters=(*near, *_predicate(residual)),
        )

    def _loose(self, equalities: Iterable[Equality]) -> Iterator[Equality]:
        """The equalities that NULL does not meet, and whose other key may be NULL.

        Rows of one input in which such a key is NULL are never remembered; combinations are.
        """
        return (e for e in equalities if not e.null_safe and e.right not in self._stored)


def _strict(equality: Equality) -> Expr:
    return Call("=", (equality.left, equality.right), BOOLEAN)


def _rest(
    parts: ConditionParts, prefix: Sequence[int], group: Sequence[int]
) -> tuple[tuple[Equality, ...], Expr]:
    """What else must be true of combinations and more inputs: equalities, and the others."""
    due = parts.due(prefix, *group)
    if due == TRUE:
        return (), TRUE
    return split_condition(due, parts.names(*prefix), parts.names(*group))


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


def _near(within: Windows, prefix: Sequence[int], group: Sequence[int]) -> list[pl.Expr]:
    """That the starts of inputs' elements and of those before are near enough."""
    return [
        (pl.col(begin(other)) - pl.col(begin(port))).abs() <= limit
        for other in prefix
        for port in group
        if (limit := within[other][port]) is not None
    ]


def _predicate(condition: Expr) -> tuple[pl.Expr, ...]:
    """What a frame is filtered by, if by anything."""
    return () if condition == TRUE else (compile_predicate(condition),)
