"""Aggregates in two parts: one wherever the rows are, the other where all of a group meet.

    Aggregate                       second part
      Exchange by the keys            Exchange by the keys
        input                 ->        first part
                                          input

Which operators have two parts, and that they are equal, is said in ``aggregate/parts.py``.

The exchange carries an element for each group and interval of a batch and partition instead of each
row. It stays above time windows, which then run where the rows are (``push_exchanges.py``). Where
the input is in one partition already there is no exchange, and nothing to split.

That pays where few elements are left of many rows. If it is known how often rows come, what both
ways are expected to cost decides, for one aggregate after the other, the lowest first. Otherwise
aggregates of all rows are split where windows slide, and those of groups are not.

Laws: the plan has the same rows at every instant. It is made otherwise than if nothing was known
only if that costs clearly less in all, and no more in the partition that has most to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidemill.algebra.expr import Column
from tidemill.optimizer.decisions import Alternative, Decision
from tidemill.optimizer.physical.push_exchanges import push_exchanges
from tidemill.physical.operators.aggregate.parts import in_parts, is_split_as_usual
from tidemill.physical.plan import Apply, Exchange, PhysicalPlan, rebuilt, walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.optimizer.cost import PlanCost

__all__ = ["SUBJECT", "Split", "split_aggregates", "split_by_cost"]

SUBJECT: Final = "partial aggregation"

_CLEARLY: Final = 0.8
_NO_LONGER: Final = 1.05
_WHOLE, _PARTS = "in one part", "in two parts"


@dataclass(frozen=True, slots=True)
class Split:
    """What has become of a plan.

    Attributes:
        plan: The plan.
        names: For each part of the given one the part that has the same rows, by fingerprint.
        decisions: What was chosen by cost.
    """

    plan: PhysicalPlan
    names: Mapping[str, str]
    decisions: tuple[Decision, ...] = ()


def split_aggregates(plan: PhysicalPlan) -> Split:
    """The plan with aggregates in two parts that are so if nothing is known."""

    def split(part: PhysicalPlan) -> PhysicalPlan:
        is_usual = isinstance(part, Apply) and is_split_as_usual(part.operator)
        return _in_parts(part) or part if is_usual else part

    return Split(*rebuilt(plan, split))


def split_by_cost(
    plan: PhysicalPlan,
    cost: Callable[[PhysicalPlan], PlanCost],
    memory_limit: float | None = None,
) -> Split:
    """The plan with aggregates in two parts where that is expected to pay.

    Args:
        plan: The plan.
        cost: What a plan is expected to cost.
        memory_limit: How many bytes of state there may be.
    """
    names: Mapping[str, str] = {p.fingerprint: p.fingerprint for p in walk_physical([plan])}
    decisions: list[Decision] = []
    settled: set[str] = set()  # second parts too, some of which could be split again for ever
    while one := next((p for p in _splittable(plan) if p.fingerprint not in settled), None):
        other, moved = _with_parts(plan, one)
        ways = {_WHOLE: _priced(plan, one.fingerprint, cost)}
        ways[_PARTS] = _priced(other, moved[one.fingerprint], cost)
        is_split = is_split_as_usual(one.operator)
        decisions.append(_chosen(ways, memory_limit, is_split=is_split))
        settled.add(one.fingerprint)
        if decisions[-1].chosen == _PARTS:
            # Of an exchange whose rows are added up before it, nothing has the rows any more.
            plan, names = other, {old: moved[new] for old, new in names.items() if new in moved}
            settled = {moved[name] for name in settled}
    return Split(plan, names, tuple(decisions))


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to compute an aggregate.

    Attributes:
        cost: What the plan is expected to cost.
        rows: How many rows a second come to the aggregate, behind the exchange.
    """

    cost: PlanCost
    rows: float


def _priced(plan: PhysicalPlan, name: str, cost: Callable[[PhysicalPlan], PlanCost]) -> _Way:
    """A plan as it will run, with its windows above exchanges."""
    pushed, names = push_exchanges(plan)
    found = cost(pushed)
    return _Way(found, found.parts[names[name]].rows_in)


def _chosen(ways: Mapping[str, _Way], limit: float | None, *, is_split: bool) -> Decision:
    """In which of two ways an aggregate is computed."""
    costs = {name: way.cost for name, way in ways.items()}
    usual, unusual = (_PARTS, _WHOLE) if is_split else (_WHOLE, _PARTS)
    is_cheap = costs[unusual].cpu < _CLEARLY * costs[usual].cpu
    is_quick = costs[unusual].busiest <= _NO_LONGER * costs[usual].busiest
    has_room = limit is None or costs[unusual].memory <= max(limit, costs[usual].memory)
    is_better = is_cheap and is_quick and has_room
    chosen, left = (unusual, usual) if is_better else (usual, unusual)
    why = f"{ways[_WHOLE].rows:,.0f} rows a second to exchange, or {ways[_PARTS].rows:,.0f} parts"
    if is_cheap and not is_better:
        why += "; the other way exceeds the limit" if is_quick else "; one partition would be slow"
    other = Alternative(left, costs[left].cpu, costs[left].memory)
    return Decision(SUBJECT, chosen, costs[chosen].cpu, (other,), why, costs[chosen].memory)


def _splittable(plan: PhysicalPlan) -> list[Apply]:
    """The parts that can be computed in two, the lowest first."""
    parts = (part for part in walk_physical([plan]) if isinstance(part, Apply))
    return [part for part in parts if _in_parts(part) is not None]


def _with_parts(plan: PhysicalPlan, one: Apply) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with one of its parts in two."""
    return rebuilt(plan, lambda p: (_in_parts(p) or p) if p.fingerprint == one.fingerprint else p)


def _in_parts(part: PhysicalPlan) -> Apply | None:
    """A part as two, if it can be."""
    match part:
        case Apply(whole, (Exchange(rows, keys),)):
            parts = in_parts(whole)
            if parts is None:
                return None
            first, second = parts
            below = Apply(first, (rows,))
            passed = [below.traits.passes[0].get(key) for key in keys]
            if not all(passed):
                return None
            names = (min(of_key) for of_key in passed if of_key)
            by = tuple(Column(n, key.type) for n, key in zip(names, keys, strict=True))
            return Apply(second, (Exchange(below, by, first.schema),), part.epoch)
        case _:
            return None
