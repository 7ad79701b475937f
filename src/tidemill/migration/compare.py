"""Two plans of one meaning compared: how each operator of the new one gets its state (Z42, Z48).

An operator that is in both plans is no concern: it stays. Of others, in this order:

    carried    one that was the same over inputs of the same meaning leaves all it remembers
    filled     each input is filled with what some operator remembered of rows that mean the same,
               or with what the part below has given and still stands
    begun      over relations only nothing will come, and all it gave is above: it begins empty

Law: an operator that got its state so goes on as if the new plan had run from the start, if all
that it is filled from has come equally far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.migration.conditions import Conditions
from tidemill.migration.meaning import Meaning, is_leaf, meanings_of
from tidemill.migration.moves import Begun, Carried, Filled, Handed, Refusal, Standing
from tidemill.migration.ports import Above, Port, taken_from
from tidemill.optimizer.explain.physical import describe
from tidemill.physical.fragments import rows_name, stages_of
from tidemill.physical.handover import takes_what_stands
from tidemill.physical.means import Combined, means_of
from tidemill.physical.plan import Apply, Exchange, Input, PhysicalPlan, inputs, walk_physical
from tidemill.physical.traits import Emission

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tidemill.migration.moves import Move, Moves

__all__ = ["compared", "remembering"]


def compared(
    old: PhysicalPlan,
    new: PhysicalPlan,
    relations: Collection[str],
    partitions: int | None = None,
) -> Moves | Refusal:
    """How a plan gets the state of another one, or why it cannot.

    Args:
        old: The plan that has run.
        new: The one that is to go on.
        relations: The inputs that have ended, by name.
        partitions: How many partitions there are; ``None`` for any number.
    """
    before, after = _Side.of(old, relations), _Side.of(new, relations)
    if before.meanings[old.fingerprint].text != after.meanings[new.fingerprint].text:
        return Refusal("the plans say what they give in ways that cannot be compared")
    return _Comparison(before, after, anywhere=partitions == 1).moves()


def remembering(*plans: PhysicalPlan) -> frozenset[str]:
    """The operators of plans that remember something, by fingerprint."""
    return frozenset(part.fingerprint for part in walk_physical(plans) if _remembers(part))


@dataclass(frozen=True)
class _Side:
    """One of two plans.

    Attributes:
        plan: The plan.
        parts: Its parts, inputs before what stands above them.
        meanings: What each part means.
        stages: In which stage the rows of each part can be read.
        ended: The parts of which nothing will come any more.
        late: The parts below which, or in which, rows are held back until they end.
    """

    plan: PhysicalPlan
    parts: Mapping[str, PhysicalPlan]
    meanings: Mapping[str, Meaning]
    stages: Mapping[str, int]
    ended: frozenset[str]
    late: frozenset[str]

    @classmethod
    def of(cls, plan: PhysicalPlan, relations: Collection[str]) -> _Side:
        """What is known of a plan."""
        parts = list(walk_physical([plan]))
        ended: set[str] = set()
        late: set[str] = set()
        for part in parts:
            below = [child.fingerprint for child in inputs(part)]
            if part.name in relations if isinstance(part, Input) else ended.issuperset(below):
                ended.add(part.fingerprint)
            holds = isinstance(part, Apply) and part.traits.emits is Emission.WHEN_ENDED
            if holds or not late.isdisjoint(below):
                late.add(part.fingerprint)
        by_name = {part.fingerprint: part for part in parts}
        stages = stages_of(parts)
        where = {name: stages[rows_name(part)] for name, part in by_name.items()}
        return cls(plan, by_name, meanings_of(plan), where, frozenset(ended), frozenset(late))

    def applied(self) -> Iterator[Apply]:
        """The operators that remember something, those below first."""
        for part in self.parts.values():
            if isinstance(part, Apply) and _remembers(part):
                yield part

    def ports(self, part: Apply) -> Iterator[Port]:
        """The inputs of an operator."""
        for number, child in enumerate(part.inputs):
            meaning = self.meanings[child.fingerprint]
            yield Port(part, number, meaning, self.stages[part.fingerprint])

    def above(self) -> dict[tuple[str, int], list[Above]]:
        """What is asked in the end of what is made of each input of each operator.

        An operator may be in a plan more than once.
        """
        found: dict[tuple[str, int], list[Above]] = {}
        tops: dict[str, Conditions] = {}
        todo: list[tuple[PhysicalPlan, PhysicalPlan, int]] = [(self.plan, self.plan, 0)]
        seen: set[tuple[str, str, int]] = set()
        while todo:
            part, top, offset = todo.pop()
            if (part.fingerprint, top.fingerprint, offset) in seen:
                continue
            seen.add((part.fingerprint, top.fingerprint, offset))
            if top.fingerprint not in tops:
                tops[top.fingerprint] = Conditions(self.meanings[top.fingerprint].conditions)
            below = [self.meanings[child.fingerprint] for child in inputs(part)]
            ends = isinstance(part, Apply) and is_leaf(part, below)
            for port, (child, meaning) in enumerate(zip(inputs(part), below, strict=True)):
                if ends:
                    todo.append((child, child, 0))
                    continue
                one = Above(tops[top.fingerprint], offset)
                found.setdefault((part.fingerprint, port), []).append(one)
                todo.append((child, top, offset))
                offset += len(meaning.leaves)
        return found


@dataclass
class _Comparison:
    """What is found out of two plans.

    Attributes:
        before: The plan that has run.
        after: The plan that goes on.
        anywhere: Whether it does not matter in which partition something is.
    """

    before: _Side
    after: _Side
    anywhere: bool
    _sources: set[str] = field(default_factory=set)

    def moves(self) -> Moves | Refusal:
        """How each operator gets its state."""
        found: dict[str, Move] = {}
        above = self.after.above()
        for part in self.after.applied():
            if part.fingerprint in self.before.parts:
                continue
            move = self._move(part, above)
            if isinstance(move, Refusal):
                return move
            found[part.fingerprint] = move
        if len(self._sources) > 1:
            for name in self._sources & (self.before.late | self.after.late):
                late = {**self.before.parts, **self.after.parts}[name]
                return Refusal(
                    f"below {describe(late)} rows are held back until they end, so that what stands"
                    " above has not come equally far"
                )
        return found

    def _move(self, part: Apply, above: Mapping[tuple[str, int], list[Above]]) -> Move | Refusal:
        if part.fingerprint in self.after.ended:
            return Begun()
        for old in self.before.applied():
            is_over = old.fingerprint in self.before.ended
            if old.own == part.own and not is_over and self._is_same(part, old):
                return Carried(old)
        if not isinstance(means_of(part.operator), Combined) or not takes_what_stands(part.traits):
            return Refusal(f"{describe(part)} was not there, and cannot take what others remember")
        ports: list[Handed | Standing] = []
        for port in self.after.ports(part):
            taken = self._taken(port, above[part.fingerprint, port.number])
            if isinstance(taken, Refusal):
                return taken
            ports.append(taken)
            below = [taken.old] if isinstance(taken, Handed) else _standing_in(taken.part)
            self._sources.update(one.fingerprint for one in below)
        return Filled(tuple(ports))

    def _is_same(self, new: Apply, old: Apply) -> bool:
        """Whether two equal operators have inputs that mean the same, in the same places."""
        if self.before.stages[old.fingerprint] != self.after.stages[new.fingerprint]:
            return False
        pairs = zip(self.after.ports(new), self.before.ports(old), strict=True)
        if self.anywhere:
            return all(one.meaning.text == other.meaning.text for one, other in pairs)
        return all(one.meaning.placed_text == other.meaning.placed_text for one, other in pairs)

    def _taken(self, port: Port, above: list[Above]) -> Handed | Standing | Refusal:
        """What an input is filled with."""
        reasons: list[str] = []
        found: list[Handed] = []
        for old in self.before.applied():
            if not old.traits.hands_over or old.fingerprint in self.before.ended:
                continue
            for other in self.before.ports(old):
                taken = taken_from(port, other, above, anywhere=self.anywhere)
                if isinstance(taken, Handed):
                    found.append(taken)
                elif taken is not None:
                    reasons.append(taken)
        if found:
            return min(found, key=lambda one: len(one.through))
        below = port.part.inputs[port.number]
        if (why := self._cannot_stand(below, port.stage)) is None:
            return Standing(below)
        return Refusal(reasons[0] if reasons else why)

    def _cannot_stand(self, part: PhysicalPlan, stage: int) -> str | None:
        """Why it cannot be computed what a part has given that still stands."""
        match part:
            case Input(name):
                return f'nothing remembers the rows of "{name}" as they are needed'
            case Exchange():
                return f"what {describe(part.input)} gives is in other partitions than it is needed"
            case Apply():
                return self._operator_cannot_stand(part, stage)

    def _operator_cannot_stand(self, part: Apply, stage: int) -> str | None:
        name, traits = part.fingerprint, part.traits
        if not traits.remembers:
            if not traits.keeps_time:
                return f"{describe(part)} needs to know when rows began"
            reasons = (self._cannot_stand(below, stage) for below in part.inputs)
            return next((why for why in reasons if why is not None), None)
        if name in self.after.ended:
            return f"{describe(part)} has forgotten what it gave: nothing more will come"
        if self.after.stages[name] != stage:
            return f"{describe(part)} is in another stage than that where its rows are needed"
        if not traits.hands_over:
            return f"{describe(part)} cannot tell what stands of what it gave"
        return None


def _standing_in(part: PhysicalPlan) -> Iterator[Apply]:
    """The operators whose rows a part is made of without memory."""
    assert isinstance(part, Apply), "it can be computed"
    if _remembers(part):
        yield part
        return
    for below in part.inputs:
        yield from _standing_in(below)


def _remembers(part: PhysicalPlan) -> bool:
    return isinstance(part, Apply) and part.traits.remembers
