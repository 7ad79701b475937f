"""Plans that go over to others while they run: trees of joins, and an engine that moves state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import strategies as st

from laws.arrivals import assert_nothing_is_kept_past_its_end
from laws.catalogue import R, S, T, U
from laws.strategies import predicates, time_windows
from local import element_batch
from plans import physical
from stores import at_rest
from tidemill.algebra.expr import Call, Column, Expr, Named, conjunction, used_columns
from tidemill.algebra.plan import Filter, Join, JoinKind, Plan, Project, Relation, Source, Window
from tidemill.algebra.tree import share
from tidemill.engine.engine import Flow
from tidemill.migration.compare import compared, remembering
from tidemill.migration.moves import Refusal
from tidemill.model.batch import END, START
from tidemill.model.schema import Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning
from tidemill.physical.fragments import build_graph
from tidemill.physical.handover import handover_of
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hypothesis.strategies import DrawFn

    from laws.arrivals import Arrival, Step
    from tidemill.algebra.snapshot import Bag
    from tidemill.migration.moves import Moves
    from tidemill.model.batch import Batch, Form
    from tidemill.physical.plan import PhysicalPlan

SPAN = 8
"""More than the size of any window."""

__all__ = ["Moving", "Star", "emitted_while_moving", "plans_of", "stars"]


@dataclass(frozen=True)
class Star:
    """A join of windows that agree on a value, and conditions besides.

    Attributes:
        leaves: The windows, with names of their own for their columns.
        conditions: Conditions on some of them.
        wanted: The columns that are asked for.
    """

    leaves: tuple[Plan, ...]
    conditions: tuple[Expr, ...]
    wanted: tuple[str, ...]

    @property
    def plan(self) -> Plan:
        """The tree that one would write."""
        return self.tree(range(len(self.leaves)), [0] * (len(self.leaves) - 1), ())

    def tree(self, order: Sequence[int], shape: Sequence[int], late: Iterable[int]) -> Plan:
        """One of the trees that give it.

        Args:
            order: The leaves from left to right.
            shape: Which two neighbours are joined next, again and again.
            late: The conditions that are looked at in the end, and not as soon as they can be.
        """
        waiting, last = set(range(len(self.conditions))) - set(late), set(late)
        nodes: list[Plan] = [self._chosen(self.leaves[leaf], waiting) for leaf in order]
        for at in shape:
            left, right = nodes[at : at + 2]
            names = (*left.schema.names, *right.schema.names)
            key = Call("=", (_key(left), _key(right)), BOOLEAN)
            joined: Plan = Join(left, right, JoinKind.INNER, key, names)
            nodes[at : at + 2] = [self._chosen(joined, waiting)]
        (whole,) = nodes
        whole = self._chosen(whole, last)
        fields = [whole.schema[name] for name in self.wanted]
        return Project(whole, tuple(Named(f.name, Column(f.name, f.type)) for f in fields))

    def _chosen(self, plan: Plan, waiting: set[int]) -> Plan:
        """The plan with the conditions that can be looked at, which do not wait any more."""
        names = set(plan.schema.names)
        now = [i for i in sorted(waiting) if used_columns(self.conditions[i]) <= names]
        waiting.difference_update(now)
        return Filter(plan, conjunction(*(self.conditions[i] for i in now))) if now else plan


def _key(plan: Plan) -> Column:
    """The value that leaves agree on."""
    name = next(name for name in plan.schema.names if name[0] in "ac")
    return Column(name, BIGINT)


@st.composite
def stars(draw: DrawFn, least: int = 3, most: int = 4, conditions: int = 2) -> Star:
    """Windows over the streams of the catalogue, one of them perhaps more than once."""
    leaves: list[Plan] = []
    for number in range(draw(st.integers(least, most))):
        streams: tuple[Source | Relation, ...] = (S, T, U)
        source = draw(st.sampled_from((*streams, *streams, R) if number else streams))
        plan: Plan = source if source is R else Window(source, draw(time_windows()))
        named = (Named(f"{f.name}{number}", Column(f.name, f.type)) for f in plan.schema)
        leaves.append(Project(plan, tuple(named)))
    every = [field for leaf in leaves for field in leaf.schema]
    chosen = draw(st.lists(predicates(Schema(tuple(every))), max_size=conditions))
    names = sorted(field.name for field in every)
    some = draw(st.just(names) | st.lists(st.sampled_from(names), min_size=1, unique=True))
    return Star(tuple(leaves), tuple(chosen), tuple(some))


@st.composite
def plans_of(
    draw: DrawFn,
    star: Star,
    above: Callable[[Plan], Plan] = lambda plan: plan,
    *,
    answer: Form | None = None,
    techniques: Sequence[Technique] = (Technique.PATTERN,),
) -> PhysicalPlan:
    """A plan of a star, and what stands above it: any tree, joins of two or of many, any rules."""
    count = len(star.leaves)
    order = draw(st.permutations(range(count)))
    shape = [draw(st.integers(0, left - 2)) for left in range(count, 1, -1)]
    late = draw(st.sets(st.integers(0, len(star.conditions) - 1))) if star.conditions else ()
    planning = Planning(
        optimized=draw(st.booleans()),
        technique=draw(st.sampled_from(techniques)),
        joins=draw(st.sampled_from(Joins)),
    )
    return physical(share(above(star.tree(order, shape, late))), planning, answer=answer)


class Moving:
    """A runner whose plan is replaced by others that mean the same, by moving state.

    Args:
        plan: The first plan.
        partitions: How many partitions there are.
        reload: Whether state is at rest between steps; each stage has its own then.

    Attributes:
        moved: How often another plan has taken over.
        refused: Why others have not.
    """

    def __init__(self, plan: PhysicalPlan, partitions: int, *, reload: bool) -> None:
        self.plan = plan
        self.runner = LocalRunner(build_graph({"q": plan}), partitions=partitions)
        self.moved = 0
        self.refused: list[str] = []
        self._reload = reload
        self._pending: tuple[PhysicalPlan, Moves, Time] | None = None
        self._times: dict[str, Time] = {}

    def step(self, flows: Mapping[str, Flow]) -> list[Batch]:
        """What the plan that runs now gives."""
        wanted = {input_.name for input_ in self.runner.graph.inputs}
        out = self.runner.step({name: flows[name] for name in wanted})["q"]
        self._times = {name: flows[name].watermark for name in wanted}
        for engine in (engine for engines in self.runner.engines for engine in engines):
            assert_nothing_is_kept_past_its_end(engine)
        if self._pending is not None:
            self._go_on()
        elif self._reload:
            self._change(self.plan, {}, {})
        return out

    def replan(self, plan: PhysicalPlan, relations: Iterable[str]) -> None:
        """Let another plan take over as soon as all streams have come as far as any has now."""
        if self._pending is not None:
            return
        moves = compared(self.plan, plan, tuple(relations), self.runner.partitions)
        if isinstance(moves, Refusal):
            self.refused.append(moves.why)
            return
        streams = [time for name, time in self._times.items() if name not in relations]
        self._pending = plan, moves, max(streams, default=Time(0))
        self._relations = frozenset(relations)
        self._go_on()

    def _go_on(self) -> None:
        assert self._pending is not None, "another plan is to take over"
        plan, moves, at = self._pending
        streams = [time for name, time in self._times.items() if name not in self._relations]
        if END_OF_TIME in streams:
            self._pending = None  # nothing is left that another plan could give
        elif min(streams, default=at) >= at:
            self._change(plan, moves, {})
            self.plan, self._pending = plan, None
            self.moved += 1
        else:
            self._change(self.plan, {}, self.held(plan, at))

    def remembers_as(self, other: LocalRunner) -> None:
        """Require that each operator remembers what that of another runner does.

        What starts and ends where is not compared, but which rows there are at every instant from
        the watermark on.
        """
        for mine, others in zip(self.runner.engines, other.engines, strict=True):
            for one, that in zip(mine, others, strict=True):
                for node in one.fragment.nodes:
                    handing = handover_of(node.apply.operator)
                    if handing is not None and node.name in one.states:
                        time = one.watermarks[node.name]
                        assert time == that.watermarks[node.name], "they are equally far"
                        for port in range(len(node.reads)):
                            found, wanted = (
                                handing.remembered(engine.states[node.name], port, time)
                                for engine in (one, that)
                            )
                            assert _later(found, time) == _later(wanted, time), node.apply

    def held(self, plan: PhysicalPlan, at: Time) -> dict[str, Time]:
        """Which operators are not told that time has come further."""
        return dict.fromkeys(remembering(self.plan, plan), at)

    def _change(self, plan: PhysicalPlan, moves: Moves, held: Mapping[str, Time]) -> None:
        graph = build_graph({"q": plan}, held)
        if not self._reload:
            self.runner.change(graph, moves)
            return
        fresh = LocalRunner(graph, partitions=self.runner.partitions)
        for old_stage, new_stage in zip(self.runner.engines, fresh.engines, strict=False):
            for old, new in zip(old_stage, new_stage, strict=True):
                new.restore(at_rest(old), moves)
        self.runner = fresh


def _later(batch: Batch, time: Time) -> list[Bag]:
    """The rows of a batch at each instant from one on."""
    names = [name for name in batch.columns if name not in (START, END)]
    found: list[Bag] = []
    for at in range(time, time + SPAN):
        valid = batch.filter((pl.col(START) <= at) & (pl.col(END) > at))
        found.append(Counter(valid.select(names).rows()))
    return found


def emitted_while_moving(  # noqa: PLR0913, PLR0917 — what arrives, and who wants to know
    moving: Moving,
    plans: Mapping[int, Sequence[PhysicalPlan]],
    schemas: Mapping[str, Schema],
    relations: Mapping[str, Flow],
    arrival: Arrival,
    stepped: Callable[[Mapping[str, Flow]], None] = lambda _: None,
) -> list[Batch]:
    """Everything that is emitted while plans take over after some steps.

    Args:
        moving: What runs.
        plans: The plans that are to take over, by the step after which they are.
        schemas: The columns of the streams.
        relations: The rows of relations.
        arrival: What arrives.
        stepped: Is told what has arrived in each step.
    """
    out: list[Batch] = []
    ends: Step = dict.fromkeys(schemas, ((), END_OF_TIME))
    for number, step in enumerate([*arrival.steps, ends]):
        flows = {
            name: Flow([element_batch(schemas[name], elements)], Time(watermark))
            for name, (elements, watermark) in step.items()
        }
        for name, flow in relations.items():
            flows[name] = flow if number == 0 else Flow([], END_OF_TIME)
        told = {name: Flow(list(one.batches), one.watermark) for name, one in flows.items()}
        out += moving.step(flows)
        stepped(told)
        for plan in plans.get(number, ()):
            moving.replan(plan, relations)
    return out
