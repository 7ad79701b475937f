"""A query whose tree is replaced while it runs, second by second.

What a second instance of the query answers, and from when on, is decided as a session does it
(``control/strategies.py``), and it is planned as a session plans it; state is moved by the moves
that a session would write down. Only the clock is simulated, and the plans are given. All streams
come equally far with each second, so nothing has to wait for one that is behind (Z52).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from time import process_time
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.migrations.trees import NAMES, SECOND, staged, written
from benchmarks.migrations.ways import RUNNING_BESIDE, Way
from tidemill.catalog.records import Record, Version, instance_name
from tidemill.control.standpoint import Standpoint, live_parts
from tidemill.control.strategies import replan
from tidemill.engine.flows import Flow
from tidemill.history.archive import Archive, MemoryStore
from tidemill.history.pieces import Entry, pieces_of
from tidemill.migration.compare import compared
from tidemill.migration.moves import Refusal
from tidemill.model.batch import START
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import Planning
from tidemill.physical.fragments import build_graph
from tidemill.physical.handover import handover_of
from tidemill.physical.operators.join.join_tree import JoinTree
from tidemill.physical.plan import Input, walk_physical
from tidemill.runtime.answers import Answer
from tidemill.runtime.local.archives import Archives
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.parted import Piece, parted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.migrations.trees import Setting, Tree
    from tidemill.algebra.plan import Plan
    from tidemill.catalog.records import Instance, Part
    from tidemill.migration.moves import Moves
    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Node
    from tidemill.physical.operator import State
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Migrating", "Second", "moves_to"]

_QUERY = "q"


@dataclass(frozen=True, slots=True)
class Second:
    """What a second of the streams has brought.

    Attributes:
        cost: How long the processor has worked for it, changes of what runs before it included.
        change: How much of that the changes were.
        results: How many results were given of instants that their instance answers.
        kept: How many rows are remembered after it.
        between: How many of these are intermediate results.
        instances: How many plans have run.
        behind: How far the answer is behind the streams, in microseconds.
    """

    cost: float
    change: float
    results: int
    kept: int
    between: int
    instances: int
    behind: int


@dataclass(slots=True)
class Migrating:
    """The query of a setting, in progress.

    Attributes:
        setting: What comes, and what it is asked.
        way: How the other tree takes over.
        runner: What runs.
        record: What has become of the query.
    """

    setting: Setting
    way: Way
    record: Record = field(init=False)
    runner: LocalRunner = field(init=False)
    _trees: dict[int, Plan] = field(init=False)
    _plans: dict[str, PhysicalPlan] = field(init=False)
    _answers: dict[int, Answer] = field(default_factory=dict)
    _archives: Archives = field(default_factory=Archives)
    _stores: dict[str, MemoryStore] = field(default_factory=dict)
    _latest: dict[str, Time] = field(default_factory=dict)
    _seconds: int = 0
    _change: float = 0.0

    def __post_init__(self) -> None:
        setting, way = self.setting, self.way
        tree = setting.new if way is Way.NEW else setting.old
        asked = written(setting, tree)
        self.record, self._trees = Record((Version(1, "", asked),)), {1: asked}
        self._plans = {name: self._planned(one, self._trees[1]) for name, one in self._running()}
        self.runner = LocalRunner(build_graph(self._plans))
        if way is Way.REPLAY:
            for name in NAMES:
                store = self._stores[name] = MemoryStore()
                archive = Archive(store, name, done=0, since=Time(0))
                self._archives.by_stream[name] = archive

    # Steps

    def step(self, rows: Mapping[str, pl.DataFrame], *, counts: bool = True) -> Second:
        """Let the rows of a second come.

        Args:
            rows: The rows of each stream.
            counts: Whether it is found out what is remembered, which takes its time.
        """
        now = Time((self._seconds + 1) * SECOND)
        flows = {name: Flow([frame], now) for name, frame in rows.items()}
        began = process_time()
        given = self.runner.step({**flows, **self._replayed(flows)})
        took = process_time() - began
        self._keep(flows, now)
        results = self._take(given)
        self._latest |= {
            name: Time(latest)
            for name, frame in rows.items()
            if isinstance(latest := frame[START].max(), int)
        }
        self._seconds += 1
        behind = max(now - self._known(), 0)
        kept, between = self._state() if counts else (0, 0)
        cost, change, count = took + self._change, self._change, len(self._plans)
        self._change = 0.0
        self._let_go()
        return Second(cost, change, results, kept, between, count, behind)

    def finish(self) -> int:
        """The streams end; how many results there are still."""
        flows = {name: Flow([], END_OF_TIME) for name in NAMES}
        found = 0
        while True:
            found += self._take(self.runner.step({**flows, **self._replayed(flows)}))
            self._archives.replays = self._archives.advance()
            if not self._archives.replays:
                return found

    def answer(self) -> Answer:
        """What the query has given."""
        pieces = [
            Piece(self._answers[p.instance], p.since, p.until)
            for p in self.record.parts
            if p.instance in self._answers
        ]
        return parted(self.record.current.plan.schema, pieces)

    def _known(self) -> Time:
        """Up to when the answer is known."""
        parts = ((self._answers[part.instance].known, part) for part in self.record.parts)
        return min((known for known, part in parts if known < part.until), default=END_OF_TIME)

    def _take(self, given: Mapping[str, list[Batch]]) -> int:
        """Take what instances have given; how many results begin at instants that they answer."""
        found = 0
        for name, one in self._running():
            answer = self._answers.setdefault(one.number, Answer(self._trees[1].schema))
            answer.add(given[name])
            answer.known = self.runner.known[name]
            parts = [part for part in self.record.parts if part.instance == one.number]
            found += sum(_begun_in(part, batch) for part in parts for batch in given[name])
        return found

    # The past

    def _replayed(self, flows: Mapping[str, Flow]) -> dict[str, Flow]:
        self._archives.start_step()
        inputs = (one for one in self.runner.graph.inputs if one.epoch)
        return self._archives.replayed({one.rows: one.name for one in inputs}, flows)

    def _keep(self, flows: Mapping[str, Flow], now: Time) -> None:
        """Keep what has come for as long as windows are."""
        self._archives.replays = self._archives.advance()
        for name, archive in self._archives.by_stream.items():
            (rows,) = flows[name].batches
            if rows.height:
                self._stores[name].put(str(self._seconds), rows)
                pieces = tuple(pieces_of(str(self._seconds), rows))
                archive.add(Entry(self._seconds, now, pieces))
            needed = (r.next for r in self._archives.replays.values() if r.stream == name)
            first = Time(max(now - (self.setting.window + 1) * SECOND, 0))
            archive.forget(first, batch=min(needed, default=self._seconds + 1), least=1)

    # Changes

    def migrate(self) -> None:
        """Let the other tree take over."""
        began = process_time()
        match self.way:
            case Way.OLD | Way.NEW | Way.ADAPTING_OLD:
                pass
            case Way.ADAPT:
                self._adapt(self.setting.new)
            case Way.MOVING_STATE:
                self._trees[1] = written(self.setting, self.setting.new)
                (old,) = self._plans.values()
                self._plans = {
                    name: self._planned(one, self._trees[1]) for name, one in self._running()
                }
                (new,) = self._plans.values()
                self.runner.change(build_graph(self._plans), moves_to(new, old), {_QUERY})
            case _:
                self.record = replan(self.record, self._here(), RUNNING_BESIDE[self.way]).record
                number = self.record.instances[-1].number
                self._trees[number] = written(self.setting, self.setting.new)
                self._begin(self.record.instances[-1])
        self._change += process_time() - began

    def trial(self) -> float:
        """How long the processor works to move the state to the new tree; nothing is changed."""
        (old,), (one,) = self._plans.values(), self.record.instances
        new = self._planned(one, written(self.setting, self.setting.new))
        runner = copy(self.runner)
        began = process_time()
        runner.change(build_graph({_QUERY: new}), moves_to(new, old), {_QUERY})
        return process_time() - began

    def _here(self) -> Standpoint:
        """What is known of the query."""
        next_ = Time(self._seconds * SECOND)
        known = {number: answer.known for number, answer in self._answers.items()}
        kept = self._archives.since
        came = {name: Time(time + 1) for name, time in self._latest.items()}
        return Standpoint(_QUERY, next_, self._seconds, known, kept=kept, came=came)

    def _begin(self, one: Instance) -> None:
        """Let an instance run beside what runs."""
        there = {input_.rows for input_ in self.runner.graph.inputs}
        made = self._planned(one, self._trees[one.number])
        self._plans = {**self._plans, instance_name(_QUERY, one.number): made}
        self.runner.change(build_graph(self._plans))
        if one.replays is not None:
            firsts = one.firsts(self._trees[one.number])
            parts = [part for part in walk_physical([made]) if isinstance(part, Input)]
            new = {p.rows: (p.name, firsts[p.name]) for p in parts if p.rows not in there}
            self._archives.fill(new, self._seconds)

    def _let_go(self) -> None:
        """Let instances go that have answered all they had to."""
        began = process_time()
        running = dict(self._running())
        if self._plans.keys() != running.keys():
            self._plans = {name: self._plans[name] for name in running}
            self.runner.change(build_graph(self._plans))
            self._change += process_time() - began

    def _adapt(self, tree: Tree) -> None:
        stage = staged(tree)
        for node, state, time in self._nodes():
            if isinstance(operator := node.apply.operator, JoinTree):
                firsts = [one.names[0] for one in operator.inputs]
                assert firsts == [f"{name}_k" for name in NAMES], "inputs are in their order"
                operator.adapt(state, stage, time)

    # What runs

    def _running(self) -> Iterator[tuple[str, Instance]]:
        known = {number: answer.known for number, answer in self._answers.items()}
        live = {part.instance for part in live_parts(self.record, known)}
        for one in self.record.instances:
            if one.number in live:
                yield instance_name(_QUERY, one.number), one

    def _planned(self, one: Instance, tree: Plan) -> PhysicalPlan:
        adaptive = self.way in (Way.ADAPT, Way.ADAPTING_OLD)
        context = Context(Planning(optimized=False, adaptive=adaptive))
        target = Target(epoch=one.epoch, replays=one.replays)
        return plan(one.begun(tree), target, context).physical

    def _nodes(self) -> Iterator[tuple[Node, State, Time]]:
        """The operators that remember something."""
        for engine in (engine for engines in self.runner.engines for engine in engines):
            for node in engine.fragment.nodes:
                if node.name in engine.states:
                    yield node, engine.states[node.name], engine.watermarks[node.name]

    def _state(self) -> tuple[int, int]:
        """How many rows are remembered, and how many of them are intermediate results."""
        kept = between = 0
        for node, state, time in self._nodes():
            kept += state.rows()
            handing = handover_of(node.apply.operator)
            if handing is not None:
                between += state.rows() - sum(
                    handing.remembered(state, port, time).height
                    for port, below in enumerate(node.apply.inputs)
                    if _inputs_of(below) == 1
                )
        return kept, between


def moves_to(new: PhysicalPlan, old: PhysicalPlan) -> Moves:
    """How a plan gets the state of another one."""
    moves = compared(old, new, (), 1)
    assert not isinstance(moves, Refusal), "both are trees of the same joins"
    return moves


def _inputs_of(part: PhysicalPlan) -> int:
    return sum(isinstance(one, Input) for one in walk_physical([part]))


def _begun_in(part: Part, batch: Batch) -> int:
    return batch.filter(pl.col(START).is_between(part.since, part.until, closed="left")).height
