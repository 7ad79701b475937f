"""A query that lives: steps of a runner, and statements between them, on the record of the query.

It is what a session does (``control/living.py``), with the local runner and without text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import reject

from laws.catalogue import SOURCES, Inputs, P, R
from laws.test_engine import relation_inputs
from laws.test_stacks import taken_over
from local import element_batch
from plans import physical
from tidemill.algebra.reach import begun_at
from tidemill.catalog.records import Record, Version
from tidemill.control.standpoint import Standpoint, live_parts, next_instant
from tidemill.engine.engine import Flow
from tidemill.errors import PlanError
from tidemill.history.archive import Archive, MemoryStore
from tidemill.history.pace import Pace
from tidemill.history.pieces import Entry, pieces_of
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.codec.plans import plan_version
from tidemill.physical.fragments import build_graph
from tidemill.physical.plan import Input, begun_in, walk_physical
from tidemill.physical.skip_the_past import skip_the_past
from tidemill.runtime.answers import Answer
from tidemill.runtime.local.archives import Archives
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.parted import Piece, parted
from tidemill.runtime.runs import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from laws.arrivals import Step
    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Row
    from tidemill.catalog.records import Instance, Part
    from tidemill.model.batch import Batch, Form
    from tidemill.optimizer.planning import Planning
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["END", "LivingQuery", "version"]

RELATIONS = (R.name, P.name)
END: Step = dict.fromkeys((source.name for source in SOURCES), ((), END_OF_TIME))


def version(number: int, plan: Plan) -> Version:
    """A version without a text."""
    return Version(number, "", plan)


@dataclass
class LivingQuery:
    """A query among neighbours, its record, and what its instances have given.

    Attributes:
        record: What has become of it.
        content: The relations.
        planning: How plans are made.
        neighbours: What else runs.
        partitions: In how many partitions.
        begins: How the plan of an instance is made to begin; mutants do it otherwise.
        plannings: How the plans of some instances are made.
        shapes: Other plans of the same meaning, for some instances.
        saves: Whether all state is saved and loaded between any two steps.
        hurry: By how much a mutant lets new instances answer too early.
        epochs: Whether instances keep their state apart; mutants do not.
        clips: Whether parts have bounds; mutants have none.
        form: The form that answers must have; ``None`` for either.
        keeps: For how long streams keep their past; ``None`` if they do not.
        keepers: Which streams do.
        archives: What they have kept.
        changed_at: What was known when it was changed, if it was.
    """

    record: Record
    content: Inputs
    planning: Planning
    neighbours: Mapping[str, PhysicalPlan] = field(default_factory=dict)
    partitions: int = 1
    begins: Callable[[Plan, Mapping[str, Time]], Plan] = begun_at
    plannings: dict[int, Planning] = field(default_factory=dict)
    shapes: dict[int, Callable[[Plan], Plan]] = field(default_factory=dict)
    saves: bool = False
    hurry: int = 0
    epochs: bool = True
    clips: bool = True
    form: Form | None = None
    keeps: int | None = None
    keepers: Collection[str] = tuple(source.name for source in SOURCES)
    archives: Archives = field(default_factory=lambda: Archives(pace=Pace(2)))
    changed_at: Standpoint | None = None
    answers: dict[int, Answer] = field(default_factory=dict)
    latest: dict[str, Time] = field(default_factory=dict)
    watermarks: dict[str, Time] = field(default_factory=dict)
    steps: int = 0
    _fed: set[str] = field(default_factory=set)
    _stores: dict[str, MemoryStore] = field(default_factory=dict)
    _runner: LocalRunner | None = None

    def here(self, *plans: Plan) -> Standpoint:
        """What is known now."""
        moment = Moment(dict(self.latest), dict(self.watermarks))
        old = [one.plan for one in self.record.versions]
        kept = {name: archive.since for name, archive in self.archives.by_stream.items()}
        first = next_instant("q", [*old, *plans], moment)
        came = {source.name: Time(self.latest.get(source.name, -1) + 1) for source in SOURCES}
        return Standpoint("q", first, self.steps, self.known(), kept=kept, came=came)

    def known(self) -> dict[int, Time]:
        """Up to when the answers of instances are known."""
        return {number: answer.known for number, answer in self.answers.items()}

    def step(self, step: Step) -> None:
        """Let a step arrive."""
        runner = self._current()
        relations = relation_inputs(self.content)
        flows: dict[str, Flow] = {}
        own: dict[str, str] = {}
        for input_ in runner.graph.inputs:
            if input_.name in RELATIONS:
                has_it = input_.rows in self._fed
                self._fed.add(input_.rows)
                flow = relations[input_.name]
                flows[input_.rows] = Flow([], END_OF_TIME) if has_it else flow
            elif input_.epoch:
                own[input_.rows] = input_.name
        streams = {
            source.name: Flow([element_batch(source.schema, step[source.name][0])], mark)
            for source in SOURCES
            for mark in [Time(step[source.name][1])]
        }
        self._fill(runner)
        try:
            self.archives.start_step()
            given = runner.step({**streams, **flows, **self.archives.replayed(own, streams)})
        except PlanError as error:
            if "stay for ever" not in str(error):
                raise
            reject()  # a window over rows that never end has no finite answer
        self._keep(streams)
        for name, (elements, watermark) in step.items():
            for element in elements:
                self.latest[name] = Time(max(element.time, self.latest.get(name, 0)))
            self.watermarks[name] = Time(watermark)
        for one in self.record.instances:
            if f"q {one.number}" in given:
                self.answers[one.number].add(given[f"q {one.number}"])
                self.answers[one.number].known = runner.known[f"q {one.number}"]
        self.steps += 1
        self.take(given)
        if step is END and self.archives.replays:
            self.step(END)

    def _fill(self, runner: LocalRunner) -> None:
        """Fill the inputs of instances that are new with what is kept."""
        there = {input_.rows: input_ for input_ in runner.graph.inputs}
        for one in self.record.instances:
            if one.replays is None or f"q {one.number}" not in runner.graph.plans:
                continue
            parts = walk_physical([self.plan_of(one)])
            mine = [p for p in parts if isinstance(p, Input) and p.name not in RELATIONS]
            firsts = one.firsts(self.record.version(one.version).plan)
            new = {p.rows: (p.name, firsts[p.name]) for p in mine if p.rows not in self._fed}
            self._fed.update(new)
            assert new.keys() <= there.keys(), "they are read"
            self.archives.fill(new, self.steps)

    def _keep(self, streams: Mapping[str, Flow]) -> None:
        """Keep what has come, and forget what is too old, as early as can be."""
        self.archives.replays = self.archives.advance()
        kept = {} if self.keeps is None else {name: streams[name] for name in self.keepers}
        for name, flow in kept.items():
            archive = self.archives.by_stream.get(name)
            if archive is None:
                self._stores[name] = MemoryStore()
                archive = Archive(self._stores[name], name, done=0, since=Time(0))
                self.archives.by_stream[name] = archive
            rows = flow.batches[0]
            if rows.height:
                self._stores[name].put(str(self.steps), rows)
                pieces = tuple(pieces_of(str(self.steps), rows, most=2))
                archive.add(Entry(self.steps, flow.watermark, pieces))
            assert self.keeps is not None, "it keeps"
            needed = (r.next for r in self.archives.replays.values() if r.stream == name)
            first = Time(max(flow.watermark - self.keeps, 0))
            archive.forget(first, batch=min(needed, default=self.steps + 1), least=1)

    def take(self, given: Mapping[str, list[Batch]]) -> None:
        """Take what a step has given; answers in memory have it already."""

    def answer(self, only: int | None = None) -> Answer:
        """What the query has given, or one version of it."""
        record = self.record
        pieces = [
            self._piece(part)
            for part in record.parts
            if only is None or record.version_of(part).number == only
        ]
        return parted(record.current.plan.schema, pieces)

    def _piece(self, part: Part) -> Piece:
        answer = self._answer_of(part.instance)
        if not self.clips:
            return Piece(answer, Time(0), END_OF_TIME)
        early = self.hurry if part.instance > 1 else 0
        late = self.hurry if part.until < END_OF_TIME else 0
        since, until = Time(part.since - early), Time(part.until - late)
        return Piece(answer, since, until, waits=answer.known < part.held)

    def snapshots(self, far: int) -> list[Counter[Row]]:
        """The rows at every instant before ``far``, with how often they are there."""
        found: list[Counter[Row]] = [Counter() for _ in range(far)]
        for *row, start, end in self.answer().elements().rows():
            for time in range(start, min(end, far)):
                found[time][tuple(row)] += 1
        return found

    def _answer_of(self, instance: int) -> Answer:
        schema = self.record.version(self.record.instance(instance).version).plan.schema
        return self.answers.setdefault(instance, Answer(schema))

    def plan_of(self, one: Instance) -> PhysicalPlan:
        """What an instance runs with now."""
        plan = self.record.version(one.version).plan
        begun = self.begins(plan, one.firsts(plan)) if one.fresh or one.later else plan
        if one.number in self.shapes:
            begun = self.shapes[one.number](begun)
        made = physical(begun, self.plannings.get(one.number, self.planning), answer=self.form)
        anew = (
            (*RELATIONS, *(source.name for source in SOURCES))
            if one.replays is not None
            else RELATIONS
        )
        epoch = one.epoch if self.epochs or one.replays is not None else 0
        begun_ = begun_in(made, epoch, anew)[0]
        return begun_ if one.replays is None else skip_the_past(begun_, one.replays)[0]

    def _current(self) -> LocalRunner:
        """The runner with the plans of the instances that are needed now."""
        record = self.record
        needed = {part.instance for part in live_parts(record, self.known())}
        if record.paused is not None:
            needed |= {part.instance for part in record.paused.parts}
        plans = dict(self.neighbours)
        for one in record.instances:
            if one.number in needed:
                self._answer_of(one.number)
                plans[f"q {one.number}"] = self.plan_of(one)
        graph = build_graph(plans)
        old = self._runner
        if old is None:
            self._runner = LocalRunner(graph, partitions=self.partitions)
        elif self.saves or _versions(old.graph.plans) != _versions(plans):
            self._runner = taken_over(old, graph)
        assert self._runner is not None, "it was made"
        return self._runner


def _versions(plans: Mapping[str, PhysicalPlan]) -> dict[str, str]:
    """The plans with everything that is in them, also what is no part of their identity."""
    return {name: plan_version(plan) for name, plan in plans.items()}
