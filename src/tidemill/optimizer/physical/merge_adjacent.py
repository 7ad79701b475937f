"""Adjacent elements of equal rows as one, below operators that have less to do then (KB02).

    Join                   Join
      rows       ->          Coalesce
                               rows

A row whose columns stay the same while others of it change, such as the name of a group whose count
is above a bound, arrives as many short elements, and each of them makes pairs of its own. Which
operators stand above is decided by cost.

Condition: the rows are in interval form, and no elements of single instants, which windows count.
They have been held back before, so that nobody has them as soon as they begin; and no element is
held for longer than what does not change may be anyway (``limit_delay.py``).
Equal because operators in interval form are snapshot reducible: how validity is cut into elements
is of no importance to them.

In signed form there is nothing to be merged: operators add up what appears and is withdrawn at one
instant before they look at it. Nor is anything cut: where elements get shorter, that would only be
of use to operators that wait for their ends, and these cut what they hold back by themselves. Only
windows need single instants (``implement.py``).

Laws: the plan has the same rows at every instant. It is expected to cost clearly less than without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.model.batch import Form
from tidemill.optimizer.decisions import Alternative, Decision
from tidemill.optimizer.estimates.rows import repeated
from tidemill.optimizer.physical.instants import Instants
from tidemill.optimizer.physical.limit_delay import DEFAULT_DELAY
from tidemill.optimizer.physical.steps import lies_behind
from tidemill.physical import interval
from tidemill.physical.codec.operators import operator_name
from tidemill.physical.forms import form_of
from tidemill.physical.plan import Apply, inputs, over, walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidemill.optimizer.cost import PlanCost
    from tidemill.optimizer.estimates.flow import Work
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["SUBJECT", "merge_adjacent", "merged_below", "places"]

SUBJECT: Final = "coalesce"

_CLEARLY: Final = 0.8
_NOWHERE: Final = "nowhere"
_OFTEN: Final = 0.5
"""Fewer rows than these that repeat would save less than half of the rows."""


def places(plan: PhysicalPlan, relations: frozenset[str]) -> list[tuple[Apply, int]]:
    """Where adjacent elements may be merged: operators, and the number of an input of each.

    Args:
        plan: The plan.
        relations: The inputs that are relations.
    """
    instants = Instants(relations)
    return [
        (part, port)
        for part in walk_physical([plan])
        if isinstance(part, Apply) and part.traits.gains and not part.traits.needs_ids
        for port, below in enumerate(part.inputs)
        if form_of(below) is Form.INTERVAL
        and not (isinstance(below, Apply) and below.traits.merges)
        if not instants.come_from(below) and lies_behind(below)
    ]


def merged_below(
    plan: PhysicalPlan, reader: Apply, port: int, most: int
) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with the elements of an input of an operator merged, up to a length.

    Returns:
        The plan, and for each part of the given one the part that has the same rows, by
        fingerprint.
    """
    new: dict[str, PhysicalPlan] = {}
    for part in walk_physical([plan]):
        below = [new[b.fingerprint] for b in inputs(part)]
        if part.fingerprint == reader.fingerprint:
            rows = below[port]
            below[port] = Apply(interval.Coalesce(rows.schema, most), (rows,))
        new[part.fingerprint] = over(part, tuple(below))
    return new[plan.fingerprint], {old: part.fingerprint for old, part in new.items()}


def merge_adjacent(
    plan: PhysicalPlan,
    relations: frozenset[str],
    max_delay: int | None,
    estimated: Callable[[PhysicalPlan], Mapping[str, Work]],
    cost: Callable[[PhysicalPlan], PlanCost],
) -> tuple[PhysicalPlan, Mapping[str, str], tuple[Decision, ...]]:
    """The plan with adjacent elements merged where that is expected to pay.

    Args:
        plan: The plan.
        relations: The inputs that are relations.
        max_delay: For how long what does not change may be held back.
        estimated: What flows out of each part of a plan.
        cost: What a plan is expected to cost.

    Returns:
        The plan; for each part of the given one the part that has the same rows, by fingerprint;
        and what was chosen.
    """
    names: Mapping[str, str] = {p.fingerprint: p.fingerprint for p in walk_physical([plan])}
    most = DEFAULT_DELAY if max_delay is None else max_delay
    decisions: list[Decision] = []
    while candidates := list(_candidates(plan, relations, most, estimated)):
        now = cost(plan)
        ways = [(merged_below(plan, reader, port, most), reader) for reader, port in candidates]
        priced = [(cost(made), made, moved, _name(reader)) for (made, moved), reader in ways]
        best, made, moved, name = min(priced, key=lambda way: way[0].cpu)
        others = [Alternative(n, c.cpu, c.memory) for c, *_, n in priced if c is not best]
        if best.cpu >= _CLEARLY * now.cpu:
            others.append(Alternative(name, best.cpu, best.memory))
            others.sort(key=lambda one: one.cpu)
            why = "merging adjacent rows is not clearly cheaper"
            kept = Decision(SUBJECT, _NOWHERE, now.cpu, tuple(others), why, now.memory)
            return plan, names, (*decisions, kept)
        others.append(Alternative(_NOWHERE if not decisions else "no further", now.cpu, now.memory))
        others.sort(key=lambda one: one.cpu)
        why = "rows that stay the same come in pieces"
        decisions.append(Decision(SUBJECT, name, best.cpu, tuple(others), why, best.memory))
        plan, names = made, {old: moved[new] for old, new in names.items()}
    return plan, names, tuple(decisions)


def _candidates(
    plan: PhysicalPlan,
    relations: frozenset[str],
    most: int,
    estimated: Callable[[PhysicalPlan], Mapping[str, Work]],
) -> Iterator[tuple[Apply, int]]:
    """The places where rows repeat that are shorter than they may become."""
    found = places(plan, relations)
    works = estimated(plan) if found else {}
    for reader, port in found:
        below = reader.inputs[port]
        flow = works[below.fingerprint].flow
        is_short = 2 * flow.edge.length <= most
        if is_short and repeated(flow, below.schema) >= _OFTEN:
            yield reader, port


def _name(reader: Apply) -> str:
    return f"below {operator_name(reader.operator)}"
