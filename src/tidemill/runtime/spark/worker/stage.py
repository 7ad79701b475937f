"""A stage: one partition of one fragment, from batch to batch.

A step takes the messages of a micro-batch and gives those for the next stage. The first stage also
finds out how far each stream has come, and feeds the rows of relations to the channels that have
not had them. Rows that a later stage reads, and everything on its way out, are handed on.

Law: what a stage gives is a function of its state and the messages, in whatever order they come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.engine.engine import Engine
from tidemill.engine.flows import Flow
from tidemill.engine.ingest import relation_flow
from tidemill.engine.routing import route
from tidemill.engine.views import views_of
from tidemill.model.batch import START
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.fragments import Route
from tidemill.runtime.spark.worker.intake import deal
from tidemill.runtime.spark.worker.wire import Kind, Message, figures_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidemill.engine.engine import Metrics
    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Channel
    from tidemill.runtime.spark.worker.deployment import Deployment

__all__ = ["CONTROL", "KNOWN", "METRICS", "WATERMARKS", "Progress", "Stage"]

CONTROL = "@control"
"""The stream that says that time has passed, or that all streams have ended."""

WATERMARKS = "watermarks"
"""The report on how far streams have come."""

METRICS = "metrics"
"""The report on what operators have done and remember, with the stage and the partition."""

KNOWN = "known"
"""The report on how far answers are known, by channel, in one partition."""


@dataclass(slots=True)
class Progress:
    """What a partition of the first stage knows besides the state of its operators.

    Attributes:
        watermarks: How far each stream has come.
        seen: When something last came on each stream, in the time of batches.
        fed: The channels that have had the rows of relations.
        replayed: How far inputs have come that are, or were, filled with kept rows.
    """

    watermarks: dict[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    fed: list[str] = field(default_factory=list)
    replayed: dict[str, int] = field(default_factory=dict)


class Stage:
    """One partition of a stage.

    Args:
        deployment: What runs where.
        number: The stage, from 1.
        pid: The partition.
    """

    def __init__(self, deployment: Deployment, number: int, pid: int) -> None:
        self.deployment = deployment
        self.number = number
        self.pid = pid
        self.progress = Progress()
        fragment = deployment.fragment(number)
        is_first = pid == deployment.pids[0]
        self.engines = (
            []
            if fragment is None
            else [Engine(fragment, is_first=is_first, adapting=deployment.adapting)]
        )
        read = (*deployment.streams, *deployment.replayed) if number == 1 else ()
        inputs = (*read, *deployment.relations) if number == 1 else ()
        self._intakes = {name: deployment.intake(name) for name in inputs}
        self._streams = {c.name: name for name in read for c in self._intakes[name].writes}
        self._bundles = deployment.bundles if number == 1 else {}
        self._streams |= {name: b.channel.source for name, b in self._bundles.items()}
        self._groups = deployment.groups if number == 1 else frozenset()
        self._fed: list[Engine] = []

    def step(
        self, messages: Sequence[Message], past: Mapping[str, int] = MappingProxyType({})
    ) -> Iterator[Message]:
        """The messages for the next stage, given those of a batch.

        Args:
            messages: Those of the batch.
            past: How far inputs have come after it that are still filled with kept rows.
        """
        by_kind: dict[Kind, list[Message]] = {kind: [] for kind in Kind}
        for message in messages:
            by_kind[message.kind].append(message)
        if self.number == 1:
            flows, answers = self._taken_in(by_kind)
            self._advance(by_kind[Kind.PULSE])
            self._advance_replays(past)
            for name, flow in flows.items():
                flow.watermark = self._watermark(self._streams[name])
            flows |= self._relations()
            answers += self._given(flows)
        else:
            flows, answers = self._arrived(by_kind)
        yield from (message.to(self.pid) for message in by_kind[Kind.KEPT])
        yield from (message.to(self.pid) for message in by_kind[Kind.REPORT])
        yield from answers
        known = self._known_early()
        yield from self._run(flows, known)
        if known:
            yield Message.of_facts(self.pid, Kind.REPORT, KNOWN, dict(known))
        place = f"{METRICS} {self.number} {self.pid}"
        yield Message.of_facts(self.pid, Kind.REPORT, place, figures_of(self._drain()))
        if self.number == 1 and self.pid == self.deployment.pids[0]:
            marks = dict(self.progress.watermarks)
            yield Message.of_facts(self.pid, Kind.REPORT, WATERMARKS, marks)

    def _drain(self) -> dict[str, Metrics]:
        """What operators have done in this batch, here and where relations came in."""
        engines, self._fed = [*self.engines, *self._fed], []
        return {name: m for engine in engines for name, m in engine.drain().items()}

    # The first stage

    def _taken_in(
        self, by_kind: Mapping[Kind, Sequence[Message]]
    ) -> tuple[dict[str, Flow], list[Message]]:
        """What came in on each channel, and answers on their way out."""
        flows = {
            channel.name: Flow([], Time(0))
            for name in (*self.deployment.streams, *self.deployment.replayed)
            for channel in self._intakes[name].writes
            if channel.route is not Route.QUERY
        }
        bundled: dict[str, list[Batch]] = {name: [] for name in self._bundles}
        for message in by_kind[Kind.ROWS]:
            rows, watermark = message.rows(), self._watermark(self._streams[message.channel])
            least = rows[START].min()
            assert least is None or isinstance(least, int), "times are integers"
            assert least is None or least >= watermark, "late rows are left out at the intake"
            if message.channel in bundled:
                bundled[message.channel].append(rows)
            else:
                flows[message.channel].batches.append(rows)
        for name, view in views_of(self._bundles, bundled).items():
            flows[name].view = view
        return flows, [message.to(self.pid) for message in by_kind[Kind.ANSWER]]

    def _advance(self, pulses: Sequence[Message]) -> None:
        """Learn how far the streams have come."""
        now, ended = 0, False
        marks, seen = self.progress.watermarks, self.progress.seen
        for pulse in pulses:
            facts = pulse.facts()
            at, latest = facts["now"], facts["latest"]
            assert isinstance(at, int), "a pulse tells the time"
            now = max(now, at)
            if pulse.channel == CONTROL:
                ended = ended or bool(facts["ended"])
                continue
            seen[pulse.channel] = max(at, seen.get(pulse.channel, 0))
            if isinstance(latest, int):
                within = self.deployment.streams[pulse.channel].within
                marks[pulse.channel] = max(self._watermark(pulse.channel), latest - within)
        for name, stream in self.deployment.streams.items() if pulses else ():
            if stream.time_column is None:
                # What comes later has the time of its batch, and each has a later one.
                marks[name] = max(self._watermark(name), now + 1)
        if ended:
            marks |= dict.fromkeys(self.deployment.streams, END_OF_TIME)
        self._skip_idle_streams(now)

    def _advance_replays(self, past: Mapping[str, int]) -> None:
        """Learn how far inputs have come that are, or were, filled with kept rows."""
        self.progress.replayed = {
            rows: max(self._watermark(rows), past.get(rows, self._watermark(stream)))
            for rows, stream in self.deployment.replayed.items()
        }

    def _skip_idle_streams(self, now: int) -> None:
        """Let silent streams that may be idle no longer hold back those they are read with."""
        marks, seen = self.progress.watermarks, self.progress.seen
        idle = {
            name
            for name, stream in self.deployment.streams.items()
            if stream.idle_after is not None
            and now - seen.setdefault(name, now) >= stream.idle_after
        }
        reached: dict[str, int] = {}
        for group in self._groups:
            awake = [self._watermark(name) for name in group - idle]
            for name in group & idle if awake else ():
                reached[name] = max(reached.get(name, 0), min(awake))
        for name, mark in reached.items():
            marks[name] = max(self._watermark(name), mark)

    def _known_early(self) -> dict[str, int]:
        """How far the answers are known that are let out where rows come in."""
        return {
            channel.name: END_OF_TIME
            if name in self.deployment.relations
            else self._watermark(name)
            for name, fragment in self._intakes.items()
            for channel in fragment.writes
            if channel.route is Route.QUERY
        }

    def _relations(self) -> dict[str, Flow]:
        """The rows of relations for the channels that have not had them."""
        flows: dict[str, Flow] = {}
        for name in self.deployment.relations:
            writes = self._intakes[name].writes
            flows |= {channel.name: Flow([], END_OF_TIME) for channel in writes}
            unfed = [channel for channel in writes if channel.name not in self.progress.fed]
            if unfed:  # to compute the rows takes long, and is needed once
                self._feed(name, unfed, flows)
        return flows

    def _feed(self, name: str, unfed: Sequence[Channel], flows: Mapping[str, Flow]) -> None:
        """Give this partition's rows of a relation to some channels."""
        place, count = self.deployment.pids.index(self.pid), len(self.deployment.pids)
        relation, blob = self.deployment.relations[name]
        rows = Message(self.pid, Kind.ROWS, name, blob).rows()
        engine, has_ids = Engine(self._intakes[name]), self._intakes[name].needs_ids
        outputs = engine.step({name: relation_flow(relation, rows, has_ids=has_ids)})
        for channel in unfed:
            self.progress.fed.append(channel.name)
            for batch in outputs[channel.name].batches:
                flows[channel.name].batches.append(_share(channel, batch, place, count))
        if place == 0:  # every partition has computed the same
            self._fed.append(engine)

    def _watermark(self, input_: str) -> Time:
        if input_ in self.deployment.replayed:
            return Time(self.progress.replayed.get(input_, 0))
        return Time(self.progress.watermarks.get(input_, 0))

    def _given(self, flows: dict[str, Flow]) -> list[Message]:
        """Rows of relations that are answers; they are taken out of the flows."""
        channels = [c for name in self.deployment.relations for c in self._intakes[name].writes]
        out = [c.name for c in channels if c.route is Route.QUERY]
        return [
            Message.of_rows(self.pid, Kind.ANSWER, name, batch)
            for name in out
            for batch in flows.pop(name).batches
        ]

    # Later stages

    def _arrived(
        self, by_kind: Mapping[Kind, Sequence[Message]]
    ) -> tuple[dict[str, Flow], list[Message]]:
        """What came on each channel, and answers on their way out."""
        flows: dict[str, Flow] = {}
        for pulse in by_kind[Kind.PULSE]:
            for channel, mark in pulse.facts().items():
                assert isinstance(mark, int), "a pulse says how far channels have come"
                known = flows.setdefault(channel, Flow([], END_OF_TIME))
                known.watermark = min(known.watermark, Time(mark))
        for message in by_kind[Kind.ROWS]:
            flows[message.channel].batches.append(message.rows())
        answers = [message.to(self.pid) for message in by_kind[Kind.ANSWER]]
        return flows, answers

    # Every stage

    def _run(self, flows: dict[str, Flow], known: dict[str, int]) -> Iterator[Message]:
        """Step the engines; what they give goes on, or out, where ``known`` says how far it is."""
        marks: dict[str, int] = {}
        written = {channel.name for e in self.engines for channel in e.fragment.writes}
        for name in (self.deployment.later(self.number) & flows.keys()) - written:
            marks[name] = flows[name].watermark
            for batch in flows[name].batches:
                yield Message.of_rows(self.pid, Kind.ROWS, name, batch)
        for engine in self.engines:
            outputs = engine.step({name: flows[name] for name in engine.fragment.reads})
            for channel in engine.fragment.writes:
                flow = outputs[channel.name]
                if channel.route is Route.QUERY:
                    known[channel.name] = flow.watermark
                else:
                    marks[channel.name] = flow.watermark
                for batch in flow.batches:
                    yield from deal(self.deployment, channel, batch, self.pid)
        if self.number < self.deployment.stages:
            for pid in self.deployment.pids:
                yield Message.of_facts(pid, Kind.PULSE, f"stage {self.number}", dict(marks))


def _share(channel: Channel, batch: Batch, place: int, count: int) -> Batch:
    """The rows of a relation that belong into one of so many partitions."""
    if channel.route is Route.HASH:
        return route(batch, channel.keys, count)[place]
    return batch.gather_every(count, place)
