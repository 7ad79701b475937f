"""One join for queries that differ in the size of their windows: the larger answers the smaller.

    q1: Join                         q1: Join  <──────────────┐
          s [RANGE 10 MINUTES]   ->        s [RANGE 10 MINUTES] │
          t [RANGE 10 MINUTES]             t [RANGE 10 MINUTES] │
    q2: Join                         q2: Shorten by=5 minutes ─┘
          s [RANGE 5 MINUTES]
          t [RANGE 5 MINUTES]

Condition: the parts are equal but for the sizes of their windows, and these differ by one amount;
``physical/smaller_windows.py`` says why the elements are the same. They begin in one epoch, since
equal parts of different epochs have other state. Plans of queries that run are not changed.

The highest parts are looked at first, and among parts that are alike the largest windows. A part is
taken from the smallest of the larger ones that stay: it has the fewest rows to go through. It is
done if what the part costs beside the other one falls clearly. What is decided depends on the two
parts and on nothing else, so equal parts stay equal.

Laws: each plan gives the rows of the one before. No plan of a query that runs is another one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tidemill.model.time import duration_text
from tidemill.optimizer.decisions import Alternative, Decision
from tidemill.physical.plan import inputs, over, walk_physical
from tidemill.physical.smaller_windows import Sizes, shortened, sizes_of, with_smaller

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from tidemill.optimizer.cost import PlanCost
    from tidemill.physical.plan import PhysicalPlan

    Cost = Callable[[Mapping[str, PhysicalPlan]], PlanCost]

__all__ = ["SUBJECT", "SharedWindows", "share_windows"]

SUBJECT: Final = "share windows"

_CLEARLY: Final = 0.8
_ALONE: Final = "windows of its own"


@dataclass(frozen=True, slots=True)
class SharedWindows:
    """What became of the plans of new queries.

    Attributes:
        plans: The plans, by query.
        decisions: What was chosen for each of them.
        names: For each part of the plans before, the part that gives its rows now, by fingerprint.
    """

    plans: Mapping[str, PhysicalPlan]
    decisions: Mapping[str, tuple[Decision, ...]]
    names: Mapping[str, str]


def share_windows(
    plans: Mapping[str, PhysicalPlan],
    new: Collection[str],
    lasting: Collection[str],
    cost: Cost,
) -> SharedWindows:
    """The plans of new queries, on joins with larger windows where that is expected to pay.

    Args:
        plans: The plans of all queries.
        new: The queries that do not run yet.
        lasting: The inputs whose rows are there from the beginning to the end of time.
        cost: What some plans are expected to cost together.
    """
    search = _Search.of(plans, new, lasting, cost)
    for family in search.families():
        search.decide(family)
    made = {name: search.made(plans[name]) for name in sorted(new)}
    decisions = {name: search.decisions(plans[name]) for name in made}
    return SharedWindows(made, decisions, search.names())


@dataclass(slots=True)
class _Search:
    """The parts of all plans, and what has been decided of them.

    Attributes:
        plans: The plans before.
        cost: What some plans are expected to cost together.
        parts: The parts, by fingerprint, inputs before what stands above them.
        sizes: The windows of those that can be shortened.
        owners: Of those with a join, a query that it is part of.
        fixed: The parts of queries that run.
        taken: The part that gives the rows of another one, and by how much its windows are larger.
        decided: What was chosen.
    """

    plans: Mapping[str, PhysicalPlan]
    cost: Cost
    parts: dict[str, PhysicalPlan] = field(default_factory=dict)
    sizes: dict[str, Sizes] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    taken: dict[str, tuple[str, int]] = field(default_factory=dict)
    decided: dict[str, Decision] = field(default_factory=dict)
    _made: dict[str, PhysicalPlan] = field(default_factory=dict)
    _hosts: dict[str, PlanCost] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        plans: Mapping[str, PhysicalPlan],
        new: Collection[str],
        lasting: Collection[str],
        cost: Cost,
    ) -> _Search:
        """Nothing is decided."""
        found = cls(plans, cost)
        for name, plan in sorted(plans.items()):
            found.sizes |= sizes_of(plan, lasting)
            for part in walk_physical([plan]):
                found.parts.setdefault(part.fingerprint, part)
                found.owners.setdefault(part.fingerprint, name)
                if name not in new:
                    found.fixed.add(part.fingerprint)
        return found

    def families(self) -> Iterator[list[str]]:
        """Parts that are alike but for the sizes of windows, the highest first."""
        alike: dict[str, list[str]] = {}
        heights: dict[str, int] = {}
        for name, part in self.parts.items():
            below = (heights[one.fingerprint] for one in inputs(part))
            heights[name] = 1 + max(below, default=0)
            sizes = self.sizes.get(name)
            if sizes is not None and sizes.joined and sizes.least is not None:
                smallest = with_smaller(part, sizes.least - 1)
                alike.setdefault(smallest.fingerprint, []).append(name)
        families = [family for family in alike.values() if len(family) > 1]
        yield from sorted(families, key=lambda family: -heights[family[0]])

    def decide(self, family: Sequence[str]) -> None:
        """Find for each part of a family whether another one gives its rows."""
        alive = self._alive()
        stay: list[str] = []
        for name in sorted(filter(alive.__contains__, family), key=self._by_size):
            if name not in self.fixed:
                found = self._larger(name, stay)
                if found is not None and self._pays(name, *found):
                    self.taken[name] = found
                    continue
            stay.append(name)

    def made(self, part: PhysicalPlan) -> PhysicalPlan:
        """The part as it was decided."""
        name = part.fingerprint
        if name not in self._made:
            if name in self.fixed:
                self._made[name] = part
            elif name in self.taken:
                other, by = self.taken[name]
                longest = self.sizes[other].least
                assert longest is not None, "there are windows"
                self._made[name] = shortened(self.made(self.parts[other]), by, longest)
            else:
                self._made[name] = over(part, tuple(map(self.made, inputs(part))))
        return self._made[name]

    def decisions(self, plan: PhysicalPlan) -> tuple[Decision, ...]:
        """What was chosen for a plan, the highest part first."""
        found: dict[str, Decision] = {}

        def visit(part: PhysicalPlan) -> None:
            name = part.fingerprint
            if name in self.decided:
                found[name] = self.decided[name]
            if name not in self.taken:
                for below in inputs(part):
                    visit(below)

        visit(plan)
        return tuple(found.values())

    def names(self) -> dict[str, str]:
        """For each part the one that gives its rows now."""
        return {name: self.made(part).fingerprint for name, part in self.parts.items()}

    def _alive(self) -> set[str]:
        """The parts that somebody uses, as far as it is decided."""
        found: set[str] = set()
        todo = list(self.plans.values())
        while todo:
            part = todo.pop()
            if part.fingerprint in self.taken:
                part = self.parts[self.taken[part.fingerprint][0]]
            if part.fingerprint not in found:
                found.add(part.fingerprint)
                todo += inputs(part)
        return found

    def _by_size(self, name: str) -> tuple[int, str]:
        """The largest windows first."""
        least = self.sizes[name].least
        assert least is not None, "there are windows"
        return -least, name

    def _larger(self, name: str, stay: Sequence[str]) -> tuple[str, int] | None:
        """Of the parts that stay, the smallest that is larger, and by how much."""
        for other in reversed(stay):
            by = self.sizes[name].differ_by(self.sizes[other])
            if by is not None:
                return other, by
        return None

    def _cost_of_host(self, host: PhysicalPlan) -> PlanCost:
        """What a part is expected to cost that others are taken from."""
        name = host.fingerprint
        if name not in self._hosts:
            self._hosts[name] = self.cost({"host": host})
        return self._hosts[name]

    def _pays(self, name: str, other: str, by: int) -> bool:
        """Whether a part is to be taken from another one."""
        host, longest = self.parts[other], self.sizes[other].least
        assert longest is not None, "there are windows"
        had = self._cost_of_host(host)
        alone = self.cost({"host": host, "own": self.parts[name]})
        shared = self.cost({"host": host, "own": shortened(host, by, longest)})
        chosen = f"the join of {self.owners[other]}, its windows smaller by {duration_text(by)}"
        ways = (
            Alternative(chosen, shared.cpu - had.cpu, shared.memory - had.memory),
            Alternative(_ALONE, alone.cpu - had.cpu, alone.memory - had.memory),
        )
        is_shared = ways[0].cpu < _CLEARLY * ways[1].cpu
        taken, left = ways if is_shared else ways[::-1]
        why = (
            "what it takes besides; the join stays as it is if the other query is dropped"
            if is_shared
            else "to go through the rows of larger windows is not clearly cheaper"
        )
        self.decided[name] = Decision(SUBJECT, taken.name, taken.cpu, (left,), why, taken.memory)
        return is_shared
