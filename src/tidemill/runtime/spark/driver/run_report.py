"""The run report: what the queries on Spark have given so far, batch by batch.

A batch that is delivered again, because the pipeline was stopped before Spark had noted it, is
counted once. A query that came later counts it for itself.
"""

from __future__ import annotations

from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.engine.engine import Metrics
from tidemill.engine.ingest import Gate, latest_row
from tidemill.model.time import END_OF_TIME, Time
from tidemill.runtime.answers import Answer
from tidemill.runtime.measuring.measured import Measured
from tidemill.runtime.measuring.sample import Sample
from tidemill.runtime.metrics import Collector
from tidemill.runtime.progress import Progress, QueryProgress, stream_progress
from tidemill.runtime.record import stream_digest
from tidemill.runtime.runs import Moment
from tidemill.runtime.spark.worker.stage import KNOWN
from tidemill.runtime.spark.worker.wire import Kind, read_figures

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping, Sequence

    import polars as pl

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.entries import QueryEntry, StreamEntry
    from tidemill.physical.fragments import Graph
    from tidemill.runtime.metrics import Adapted, OperatorMetrics
    from tidemill.runtime.spark.io.file_log import FileLog
    from tidemill.runtime.spark.worker.wire import Message

__all__ = ["RunReport", "known_channels"]


class RunReport:
    """What has come of the queries.

    Attributes:
        gates: What came on each stream, and what was refused.
        statistics: What has been found out of what comes in.
    """

    def __init__(self) -> None:
        self.statistics = Measured()
        self.gates: dict[str, Gate] = {}
        self._plans: dict[str, Plan] = {}
        self._answers: dict[str, Answer] = {}
        self._rows: dict[str, int] = {}
        self._latest: dict[str, int] = {}
        self._batch = -1
        self._batches = 0
        self._watermarks: dict[str, int] = {}
        self._collector = Collector()
        self._inputs: dict[str, str] = {}
        self._files: dict[str, int] = {}
        self._known: dict[str, int] = {}
        self._newest: dict[str, int] = {}

    def go_on_from(self, newest: Mapping[str, int], watermarks: Mapping[str, int]) -> None:
        """Know where a pipeline was that goes on.

        Args:
            newest: The latest time that rows of each stream have had.
            watermarks: How far each stream has come.
        """
        self._newest = dict(newest)
        self._watermarks = {**watermarks, **self._watermarks}

    def begin(
        self,
        queries: Iterable[QueryEntry],
        elsewhere: Iterable[str],
        known: Mapping[str, int] = MappingProxyType({}),
        resumed: Container[str] = (),
    ) -> None:
        """Go on with other queries; those that are the same keep what they have.

        Args:
            queries: The queries.
            elsewhere: Those whose answers go to a sink.
            known: Up to when the answers of queries that have run before are known.
            resumed: The queries that have run before; their answers are here from now on only.
        """
        plans = {query.name: query.plan for query in queries}
        # A name may have come to mean another query.
        stay = {name for name, plan in plans.items() if self._plans.get(name) == plan}
        gone = set(elsewhere)
        self._answers = {
            name: self._answers[name]
            if name in stay & self._answers.keys()
            else Answer(plan.schema, is_whole=name not in resumed)
            for name, plan in plans.items()
            if name not in gone
        }
        self._rows = {name: self._rows[name] if name in stay else 0 for name in plans}
        self._latest = {name: self._latest[name] if name in stay else -1 for name in plans}
        self._plans = plans
        # What is the same but for the instants that are wanted is known as far as it was.
        reached = {**{n: t for n, t in self._known.items() if n in stay}, **known}
        self._known = {
            name: reached[name]
            for name in plans
            if name in reached and (name in stay or name in resumed)
        }

    def add_streams(self, streams: Mapping[str, StreamEntry]) -> None:
        """Count for streams that are read from now on."""
        for name, stream in streams.items():
            self.gates.setdefault(name, Gate(stream))
            self.statistics.open(name, stream_digest(stream))

    def add_operators(self, graph: Graph, relations: Collection[str] = ()) -> None:
        """Count for the operators of a graph, and no others; those that are the same go on.

        Args:
            graph: What runs from now on.
            relations: The inputs that are relations.
        """
        self.statistics.take_metrics(self._collector.metrics())
        self.statistics.follow(graph.plans.values(), relations)
        self._collector.begin(graph)
        self._inputs = graph.intake_inputs()

    def metrics(self) -> dict[str, OperatorMetrics]:
        """What each operator has done here, and what it remembers."""
        return self._collector.metrics()

    def adapted(self) -> Sequence[Adapted]:
        """What joins have decided since this was asked last."""
        return self._collector.adapted()

    def measured(self) -> Measured:
        """What has been found out of what comes in, up to now."""
        self.statistics.take_metrics(self._collector.metrics())
        return self.statistics

    def keep_statistics(self) -> None:
        """Keep what has been found out of what comes in, if there is a place."""
        self.measured().keep()

    def refuse(self, stream: str, counts: Mapping[str, int], removed: int) -> None:
        """Take how many rows of a stream have been refused so far, by reason.

        Args:
            stream: The stream.
            counts: How many, by reason.
            removed: How many of those that were kept have been removed to make room.
        """
        refused = self.gates[stream].refused
        refused.counts, refused.removed = dict(counts), removed

    def known(self, query: str) -> Time:
        """Up to when the answer of a query is known."""
        return Time(self._known.get(query, 0))

    def moment(self) -> Moment:
        """Where the pipeline stands after the last batch."""
        latest = {name: Time(time) for name, time in self._newest.items()}
        for name, gate in self.gates.items():
            if gate.latest is not None:
                latest[name] = max(gate.latest, latest.get(name, gate.latest))
        return Moment(
            latest,
            {name: Time(mark) for name, mark in self._watermarks.items()},
            known={name: Time(mark) for name, mark in self._known.items()},
        )

    def last_read(self, query: str) -> Time | None:
        """The time of the latest row that a query has read here."""
        return latest_row(self._plans[query], self.gates)

    @property
    def remembered(self) -> int | None:
        """How many rows are remembered; ``None`` before the first batch."""
        return self._collector.state()[0] if self._batches else None

    def answer(self, query: str) -> Answer | None:
        """What a query has given, if its answer is in memory."""
        return self._answers.get(query)

    def take(
        self,
        batch: int,
        messages: Sequence[Message],
        answers: Mapping[str, list[pl.DataFrame]],
        channels: Mapping[str, str],
    ) -> None:
        """Take what a batch has brought, which has been delivered.

        Args:
            batch: Its number.
            messages: What came to the driver.
            answers: The new elements of the channels that the driver has.
            channels: The channel of each query's answer.
        """
        rows = {channel: sum(f.height for f in frames) for channel, frames in answers.items()}
        is_new = batch > self._batch
        told = [(m.channel, m.facts()) for m in messages if m.kind is Kind.REPORT]
        for sender, facts in told:
            self._note(sender, facts, rows, is_new=is_new)
        self._measure(batch, told)
        self.statistics.take(batch, _samples(told))
        for query, channel in channels.items():
            if batch > self._latest[query]:
                self._latest[query] = batch
                self._rows[query] += rows.get(channel, 0)
                if query in self._answers:
                    self._answers[query].add(answers.get(channel, ()))
        reached = known_channels(messages)
        self._known |= {q: reached[c] for q, c in channels.items() if c in reached}
        for query, answer in self._answers.items():
            answer.known, answer.last_read = self.known(query), self.last_read(query)
        if is_new:
            self._batch = batch
            self._batches += 1

    def progress(self, file_logs: Mapping[str, FileLog], log: str | None) -> Progress:
        """How far the run has come.

        Args:
            file_logs: The files of the streams that have some.
            log: Where Spark writes what it has to say.
        """
        return Progress(
            self._batches,
            tuple(
                stream_progress(
                    gate,
                    self._watermarks.get(name, 0),
                    self._files_of(name, file_logs),
                    file_logs[name].warnings() if name in file_logs else (),
                )
                for name, gate in list(self.gates.items())
            ),
            tuple(QueryProgress(name, rows) for name, rows in list(self._rows.items())),
            *self._collector.state(),
            log,
        )

    def _files_of(self, stream: str, file_logs: Mapping[str, FileLog]) -> tuple[int, int] | None:
        file_log = file_logs.get(stream)
        return None if file_log is None else (self._files.get(stream, 0), file_log.files)

    def _measure(self, batch: int, told: Sequence[tuple[str, Mapping[str, object]]]) -> None:
        """Take what operators tell, where rows come in and in each partition of each stage."""
        done: list[Mapping[str, Metrics]] = []
        now: dict[str, Mapping[str, Metrics]] = {}
        for sender, facts in told:
            match sender.partition(" "), facts:
                case ("stream" | "replayed", _, _), {"operators": dict(figures)}:
                    done.append(read_figures(figures))
                case ("metrics", _, place), figures:
                    now[place] = read_figures(figures)
        # Where rows come in nothing is remembered, and time is that of the input.
        now["intake"] = {
            name: Metrics(watermark=self._time_of(input_)) for name, input_ in self._inputs.items()
        }
        self._collector.take(batch, [*done, *now.values()], now)

    def _time_of(self, input_: str) -> Time:
        """How far an input has come; all rows of a relation are there at once."""
        return Time(self._watermarks.get(input_, 0)) if input_ in self.gates else END_OF_TIME

    def _note(
        self, sender: str, facts: Mapping[str, object], written: dict[str, int], *, is_new: bool
    ) -> None:
        match sender.partition(" "), facts:
            case ("written", _, channel), {"rows": int(rows)}:
                written[channel] = written.get(channel, 0) + rows
            case (
                ("stream", _, name),
                {"rows": int(rows), "files": int(files), "latest": latest},
            ):
                if is_new:
                    self.gates[name].advance(latest if isinstance(latest, int) else None)
                    self._files[name] = max(files, self._files.get(name, 0))
                    self.gates[name].rows += rows
            case ("@control" | "metrics" | "kept" | "replayed", _, _), _:
                pass
            case ("watermarks", _, _), marks:
                self._watermarks |= {s: m for s, m in marks.items() if isinstance(m, int)}
            case ("known", _, _), _:
                pass  # the least of all partitions counts
            case _:
                raise AssertionError(f"there is no report {sender}: {facts}")


def _samples(told: Iterable[tuple[str, Mapping[str, object]]]) -> dict[str, Sample]:
    """What a batch says about each stream: what its tasks say together."""
    found: dict[str, Sample] = {}
    for sender, facts in told:
        match sender.partition(" "), facts:
            case ("stream", _, name), {"sample": dict(sample)}:
                with suppress(ValueError):  # a worker has another version of Polars
                    found.setdefault(name, Sample()).merge(Sample.read(sample))
            case _:
                pass
    return found


def known_channels(messages: Iterable[Message]) -> dict[str, int]:
    """Up to when each channel of answers is known: as far as in all partitions."""
    known: dict[str, int] = {}
    reports = (m for m in messages if m.kind is Kind.REPORT and m.channel == KNOWN)
    for channel, mark in (fact for report in reports for fact in report.facts().items()):
        assert isinstance(mark, int), "a report says how far channels are known"
        known[channel] = min(mark, known.get(channel, mark))
    return known
