"""The local runner: all partitions of all stages, one after another, in this process.

It does what a cluster does: rows come in anywhere, pass the fragments stage by stage, and change
partition at exchanges; a channel has passed a time when all partitions that fill it have.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

import polars as pl

from tidemill.engine.bundles import bundles_of, rest_of, sent_on
from tidemill.engine.engine import Engine, Metrics
from tidemill.engine.flows import Flow
from tidemill.engine.handover import copied
from tidemill.engine.pool import in_pool
from tidemill.engine.routing import route
from tidemill.engine.views import views_of
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.cut_answer import cut_answer
from tidemill.physical.fragments import Channel, Graph, Route
from tidemill.physical.frames import pick

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from tidemill.engine.adapting import Adapting
    from tidemill.engine.bundles import Bundle
    from tidemill.engine.handover import AtRest
    from tidemill.migration.moves import Moves
    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Node
    from tidemill.physical.operator import State
    from tidemill.physical.state.at_rest import Remembered

__all__ = ["LocalRunner", "state_name"]


class LocalRunner:
    """A graph of queries in progress.

    Args:
        graph: What to run.
        partitions: How many partitions to keep state in.
        clock: What says for how many seconds operators have worked.
        adapting: How joins adapt whose tree can change; ``None`` if they do not.

    Attributes:
        known: Up to when the answer of each query is known: nothing that begins, or changes, before
            that instant will follow.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        partitions: int = 1,
        clock: Callable[[], float] = perf_counter,
        adapting: Adapting | None = None,
    ) -> None:
        self.graph = graph
        self._adapting = adapting
        self.partitions = partitions
        self._clock = clock
        self.known: dict[str, Time] = dict.fromkeys(graph.answers, Time(0))
        self._bundles = _bundles(graph)
        self.engines = self._new_engines(graph)
        self._told = _nothing_done(self._bundles)

    @in_pool
    def step(self, inputs: Mapping[str, Flow]) -> dict[str, list[Batch]]:
        """Pass what arrived on each input through all stages; the new elements of each answer."""
        flows = {name: self._spread(flow) for name, flow in inputs.items()}
        flows |= self._together(inputs)
        answers: dict[str, list[Batch]] = {}
        known: dict[str, Time] = {}
        for engines in self.engines:
            reads = engines[0].fragment.reads
            outputs = [
                engine.step({name: flows[name][partition] for name in reads})
                for partition, engine in enumerate(engines)
            ]
            for channel in engines[0].fragment.writes:
                filled = [output[channel.name] for output in outputs]
                if channel.route is Route.QUERY:
                    answers[channel.name] = [b for flow in filled for b in flow.batches]
                    known[channel.name] = min(flow.watermark for flow in filled)
                else:
                    flows[channel.name] = self._routed(channel, filled)
        self.known = {query: known[name] for query, name in self.graph.answers.items()}
        return {query: answers[name] for query, name in self.graph.answers.items()}

    def change(
        self,
        graph: Graph,
        moves: Moves = MappingProxyType({}),
        moved: Container[str] = frozenset(),
    ) -> None:
        """Go on with another graph: operators that are in both keep what they remember.

        Those that are new get what moves say, or begin empty, and those that are gone are
        forgotten. If this fails, all is as it was.

        Args:
            graph: What runs from now on.
            moves: How operators that were not there get what others remember.
            moved: The queries that go on with other plans.
        """
        fresh = self._new_engines(graph)
        for partition in range(self.partitions):
            left: dict[str, AtRest] = {
                name: _Left(remembered.state, remembered.watermark)
                for engines in self.engines
                for name, remembered in engines[partition].remembered().items()
            }
            for engines in fresh:
                engines[partition].restore(left, moves)
        before, self.graph, self.engines = self.graph.plans, graph, fresh
        self._bundles = _bundles(graph)
        self._told = _nothing_done(self._bundles) | self._told
        # What is the same but for the instants that are wanted is known as far as it was.
        whole = {query: cut_answer(plan, None) for query, plan in before.items()}
        self.known = {
            query: self.known[query]
            if query in before and (query in moved or whole[query] == cut_answer(plan, None))
            else Time(0)
            for query, plan in graph.plans.items()
        }

    def adapt(self, adapting: Adapting | None) -> None:
        """Let joins adapt in another way, or not at all, from the next step on."""
        self._adapting = adapting
        for engines in self.engines:
            for engine in engines:
                engine.adapting = adapting

    def remembered(self) -> dict[str, Remembered]:
        """What every operator or stack remembers in each partition, by ``state_name``."""
        return {
            state_name(partition, name): remembered
            for engines in self.engines
            for partition, engine in enumerate(engines)
            for name, remembered in engine.remembered().items()
        }

    def restore(
        self, saved: Mapping[str, AtRest], moves: Moves = MappingProxyType({})
    ) -> list[Node]:
        """Go on with what was saved, by ``state_name``; operators that were not there begin empty.

        Args:
            saved: What was saved.
            moves: How operators that were not there get what others remember.

        Returns:
            The operators that can remember something and begin empty, in some partition.

        Raises:
            DamagedError: A state is not what was saved, or that of another operator.
        """
        new: list[Node] = []
        for partition in range(self.partitions):
            mark = state_name(partition, "")
            own = {name.removeprefix(mark): s for name, s in saved.items() if name.startswith(mark)}
            here = [engines[partition] for engines in self.engines]
            new += [node for engine in here for node in engine.restore(own, moves)]
        return new

    def drain(self) -> dict[str, dict[str, Metrics]]:
        """What operators have done since this was asked last, and remember, by place."""
        done = {
            f"{stage} {partition}": engine.drain()
            for stage, engines in enumerate(self.engines)
            for partition, engine in enumerate(engines)
        }
        done["0 0"], self._told = self._told | done["0 0"], _nothing_done(self._bundles)
        return done

    def remembers(self) -> bool:
        """Whether anything is remembered."""
        return any(
            state.rows()
            for engines in self.engines
            for engine in engines
            for state in engine.states.values()
        )

    def _new_engines(self, graph: Graph) -> list[list[Engine]]:
        """Engines that remember nothing; channels that go together are not theirs."""
        first, *others = graph.fragments
        bundles = [bundle for some in _bundles(graph).values() for bundle in some]
        fragments = [rest_of(first, bundles), *others]
        return [
            [
                Engine(fragment, self._clock, is_first=partition == 0, adapting=self._adapting)
                for partition in range(self.partitions)
            ]
            for fragment in fragments
        ]

    def _together(self, inputs: Mapping[str, Flow]) -> dict[str, list[Flow]]:
        """The channels that go together, by partition."""
        flows: dict[str, list[Flow]] = {}
        for source, bundles in self._bundles.items():
            given = inputs[source]
            for bundle in bundles:
                packed = [bundle.packed(b, self._told) for b in given.batches if b.height]
                filled = self._spread(Flow(packed, given.watermark))
                parts = self._routed(bundle.channel, filled)
                for part in parts:
                    views = views_of({"": bundle}, {"": [b for b in part.batches if b.height]})
                    for member in bundle.members:
                        flow = Flow([], given.watermark, views.get(member.channel))
                        flows.setdefault(member.channel, []).append(flow)
        return flows

    def _spread(self, flow: Flow) -> list[Flow]:
        """The rows of an input, dealt out to the partitions as they come."""
        count = self.partitions
        if count == 1:
            return [flow]
        return [
            Flow([batch.gather_every(count, partition) for batch in flow.batches], flow.watermark)
            for partition in range(count)
        ]

    def _routed(self, channel: Channel, filled: list[Flow]) -> list[Flow]:
        if channel.route is Route.STAY:
            return filled
        watermark = min((flow.watermark for flow in filled), default=END_OF_TIME)
        # A batch costs something whatever its size: what goes to a partition goes there as one.
        batches = [batch for flow in filled for batch in flow.batches if batch.height]
        if not batches:
            return [Flow([], watermark) for _ in range(self.partitions)]
        # Each with its columns in the order of the first: that may depend on the rows.
        whole = pl.concat([pick(batch, batches[0].columns) for batch in batches])
        parts = route(whole, channel.keys, self.partitions)
        return [Flow([part], watermark) for part in parts]


def _bundles(graph: Graph) -> dict[str, tuple[Bundle, ...]]:
    """The bundles of each input."""
    among = sent_on(graph)
    inputs = (input_.rows for input_ in graph.inputs)
    return {name: bundles_of(graph.intake(name), among) for name in inputs}


def _nothing_done(bundles: Mapping[str, tuple[Bundle, ...]]) -> dict[str, Metrics]:
    members = (member for some in bundles.values() for bundle in some for member in bundle.members)
    return {name: Metrics() for member in members for name in member.tells}


def state_name(partition: int, operator: str) -> str:
    """What the state of an operator, or of a stack, is called in a partition."""
    return f"{partition} {operator}"


@dataclass(frozen=True, slots=True)
class _Left:
    """What an engine leaves to the next one; rows are shared, since no segment ever changes."""

    state: State
    watermark: Time

    @property
    def numbers(self) -> Mapping[str, int]:
        """Its numbers."""
        return self.state.numbers

    def fill(self, state: State) -> None:
        """Fill a new state with it."""
        copied(self.state, state)
