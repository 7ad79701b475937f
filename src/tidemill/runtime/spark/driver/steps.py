"""The steps of a start, and of a change: what is written, and in which order, once it is checked.

Law: a process that is killed after any step leaves what the next start goes on from. Until the
record knows a query, nothing that is written for it is ever looked at.

A change of what runs is a start without those steps that begin a pipeline: it writes the deployment
of its version, and the next batch is computed with that.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.algebra.reach import begin_by_time
from tidemill.physical.plan import Input, walk_physical
from tidemill.runtime.archives import replayed_inputs
from tidemill.runtime.moving import moving_queries
from tidemill.runtime.quarantine import Quarantine
from tidemill.runtime.record import relation_digest
from tidemill.runtime.spark.driver.assembly import deployment_of
from tidemill.runtime.spark.driver.control import Control, Word
from tidemill.runtime.spark.driver.delivery import Delivery, Deployed
from tidemill.runtime.spark.driver.pipeline import start_pipeline
from tidemill.runtime.spark.driver.polling import SourcePoller
from tidemill.runtime.spark.driver.replaying import SparkArchives
from tidemill.runtime.spark.driver.routes import routes_of
from tidemill.runtime.spark.driver.running import Running, Tidying
from tidemill.runtime.spark.driver.ticker import Ticker
from tidemill.runtime.spark.io.places import file_logs_of, places_of
from tidemill.runtime.spark.state.batch_log import BatchLog
from tidemill.runtime.spark.state.flush import SparkFiles
from tidemill.runtime.spark.state.orphans import note_java
from tidemill.runtime.spark.worker.stage import CONTROL
from tidemill.runtime.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import polars as pl

    from tidemill.catalog.entries import RelationEntry
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.spark.driver.checks import Checked
    from tidemill.runtime.spark.driver.cluster import Cluster
    from tidemill.runtime.spark.driver.run_report import RunReport
    from tidemill.runtime.spark.driver.settings import SparkSettings
    from tidemill.runtime.spark.io.file_log import FileLog
    from tidemill.runtime.spark.state.checkpoint import Checkpoint

__all__ = ["CHANGE_STEPS", "STEPS", "Start", "change_steps", "know", "launch", "take_steps"]


@dataclass(slots=True)
class Start:
    """A start on its way.

    Attributes:
        cluster: Where the pipeline runs.
        checkpoint: Where its state is.
        checked: What it is to do, since nothing of it is refused.
        settings: How to run.
        memory: The frames that ``memory`` sources name.
        report: What is told what has become of the queries.
        every: How often a batch begins, in seconds; ``None`` to stop when all is read.
        is_change: Whether a pipeline that was running goes on with other queries.
        tables: Where tables are.
        batch_log: What is known when a batch begins.
        relations: The relations with their rows.
        places: Where the streams are read from.
        file_logs: The files of the streams that are read from files here.
        deployed: What the workers run, and where its answers go.
        archives: What streams keep of their past.
    """

    cluster: Cluster
    checkpoint: Checkpoint
    checked: Checked
    settings: SparkSettings
    memory: Mapping[str, pl.DataFrame]
    report: RunReport
    every: float | None
    is_change: bool
    tables: Tables = field(default_factory=Tables)
    batch_log: BatchLog = field(init=False)
    relations: dict[str, tuple[RelationEntry, bytes]] = field(init=False)
    places: dict[str, Place] = field(init=False)
    file_logs: dict[str, FileLog] = field(init=False)
    deployed: Deployed = field(init=False)
    archives: SparkArchives = field(init=False)


def create(start: Start) -> None:
    """Give the checkpoint its identity."""
    start.checkpoint.create()


def claim_sinks(start: Start) -> None:
    """Take the directories of queries that begin: they know the checkpoint before it knows them."""
    start.checked.claim_sinks()
    start.tables.begin(start.checked.new_tables())


def keep_relations(start: Start) -> None:
    """Keep the rows of relations that are new, so that a replayed batch sees the same."""
    start.relations = start.checked.keep_relations(start.checkpoint)
    for name, rows in start.checked.unread:
        identity = relation_digest(start.checked.declared[name])
        start.report.statistics.take_relation(name, identity, rows)


def keep_plans(start: Start) -> None:
    """Keep the plans of queries that begin."""
    start.checked.keep_plans(start.checkpoint)


def open_sources(start: Start) -> None:
    """Open the batch log and the logs of files, and write frames that are in memory as files."""
    start.batch_log = BatchLog(start.checkpoint.batch_log, start.settings.clock)
    start.places = places_of(start.checked.streams, start.checkpoint, start.memory)
    start.file_logs = file_logs_of(start.places, start.checkpoint, start.batch_log)


def open_archives(start: Start) -> None:
    """Open what streams keep; rows of batches that are not done are taken again."""
    start.archives = SparkArchives(start.checkpoint.kept, start.settings.replay_pace)
    start.archives.open_at(start.checked.streams, start.batch_log)


def skip_old_files(start: Start) -> None:
    """Let queries that begin later have what they would have if others read their streams.

    While a pipeline runs, others would have read all that is there. When it starts again, they
    would read what has come since it was stopped: if the stream was read before, that is known, and
    if not, nothing of what is there can be told to be new. A frame in memory does not come at some
    time, so it is for all. Queries that begin at an instant know by their times which rows are
    theirs, so all that was not read is for them.
    """
    if not start.batch_log.has_delivered:
        return
    delivered, checked = start.batch_log.delivered, start.checked
    plans = [query.plan for query in checked.queries]
    for name in start.file_logs.keys() & checked.unshared:
        stream = checked.streams[name]
        if stream.keep is not None:
            continue  # all of its rows are kept
        by_time = stream.time_column is not None and begin_by_time(plans, name)
        if stream.source.name.text.lower() == "memory" or (by_time and name not in delivered):
            continue
        was_read = name in delivered and (by_time or not start.is_change)
        start.file_logs[name].skip(delivered[name] if was_read else None)


def record(start: Start) -> None:
    """Know the queries from now on, with the streams and relations that they read."""
    checked, is_due = start.checked, start.checked.outdated and not start.is_change
    start.checkpoint.record(
        checked.known_as,
        checked.streams,
        start.relations,
        epoch=checked.graph.epoch,
        planning=None if is_due else start.settings.planning.facts(),
    )


def deploy(start: Start) -> None:
    """Write what the workers are to run."""
    checked, checkpoint = start.checked, start.checkpoint
    routes = routes_of(checked.graph.answers, checked.sinks)
    deployment = deployment_of(
        checked.graph,
        checked.streams,
        start.relations,
        checkpoint,
        routes.sink_writer(),
        moving=moving_queries(checked.queries),
        reads_all=not start.settings.planning.optimized,
        adapting=start.settings.adapting,
    )
    checkpoint.deployments.keep(deployment)
    cuts = {name: planned.target.cut for name, planned in checked.planned.items()}
    plans = {query.name: query.plan for query in checked.queries}
    computed = ((plans[name], planned.physical) for name, planned in checked.planned.items())
    replayed = replayed_inputs(computed, checked.streams)
    start.deployed = Deployed(deployment, checked.sinks, routes, cuts, replayed)


STEPS: tuple[Callable[[Start], None], ...] = (
    create,
    claim_sinks,
    keep_relations,
    keep_plans,
    open_sources,
    open_archives,
    skip_old_files,
    deploy,
    record,
)
"""Each can be the last one before a kill."""

CHANGE_STEPS: tuple[Callable[[Start], None], ...] = (
    claim_sinks,
    keep_relations,
    keep_plans,
    deploy,
    record,
)
"""Those of a change: the pipeline runs, and its sources are open."""


def take_steps(start: Start, ready: Callable[[Running], None]) -> None:
    """Write what a start writes, and start the pipeline.

    Args:
        start: What is started.
        ready: Is told what works beside the pipeline, before this is started.

    Raises:
        RunError: Spark cannot start it; the checkpoint knows what it knew.
    """
    with _known_again(start.checkpoint):
        for step in STEPS:
            step(start)
        launch(start, ready)


def change_steps(start: Start, running: Running) -> None:
    """Write what a change writes; the next batch is computed with it.

    Args:
        start: What runs from then on.
        running: What works beside the pipeline, which is between two batches.

    Raises:
        OSError: Something cannot be written; the checkpoint knows what it knew.
    """
    with _known_again(start.checkpoint):
        for step in CHANGE_STEPS:
            step(start)
        start.tables.open(start.checked.sinks, start.batch_log.ended + 1)
        _tick_for_relations(start, running.control)
        _tick_for_replays(start, running.control)
        if running.delivery.deployed.is_recut(start.deployed):
            running.control.say(Word.TICK)  # rows may leave that have waited, although none come
    # From here on nothing is written that could fail.
    plans = (query.plan for query in start.checked.queries)
    running.ticker.follow(start.deployed.deployment.groups, plans)
    know(start.report, start.checked, start.batch_log)
    running.delivery.deployed = start.deployed
    with suppress(OSError):  # the next change removes them
        _forget_deployments(start)


@contextmanager
def _known_again(checkpoint: Checkpoint) -> Iterator[None]:
    """Let a checkpoint know what it knew if something fails."""
    before = checkpoint.facts
    try:
        yield
    except BaseException:
        if checkpoint.facts is not before:
            checkpoint.know(before)
        raise


def know(report: RunReport, checked: Checked, batch_log: BatchLog) -> None:
    """Tell the report which queries there are, and up to when their answers are known."""
    channels = checked.graph.answers.items()
    known = {query: batch_log.known[c] for query, c in channels if c in batch_log.known}
    report.begin(checked.queries, checked.sinks, known, checked.resumed)
    report.add_streams(checked.streams)
    report.add_operators(checked.graph, checked.declared)


def launch(start: Start, ready: Callable[[Running], None]) -> None:
    """Start the pipeline, with all that works beside it in the driver."""
    checked, checkpoint, batch_log = start.checked, start.checkpoint, start.batch_log
    deployment = start.deployed.deployment
    poller = SourcePoller(start.file_logs)
    control = Control(checkpoint.control, committed=batch_log.committed.get(CONTROL, 0))
    if start.every is None:
        poller.await_settled()  # what is not there at the start is not read
    else:
        poller.look()
    start.report.go_on_from(batch_log.newest, batch_log.watermarks)
    know(start.report, checked, batch_log)
    start.tables.open(checked.sinks, batch_log.ended + 1)
    quarantine = Quarantine(checkpoint.quarantine)
    for name in checked.streams:
        start.report.refuse(name, quarantine.counts(name), quarantine.removed(name))
    delivery = Delivery(
        start.deployed,
        checkpoint.deployments,
        start.report,
        batch_log,
        spark_files=SparkFiles(checkpoint.spark),
        quarantine=quarantine,
        archives=start.archives,
        file_logs=start.file_logs,
        forget=Tidying(checkpoint.spark, poller, control),
        tables=start.tables,
    )
    ticker = Ticker(
        deployment.streams,
        deployment.groups,
        control,
        batch_log,
        clock=start.settings.clock,
        seen=lambda: (dict(delivery.came), start.report.remembered),
        plans=[query.plan for query in checked.queries],
    )
    _tick_for_relations(start, control)
    _tick_for_held(start, control)
    _tick_for_replays(start, control)
    _forget_deployments(start)
    running = Running(delivery, poller, control, ticker, quarantine)
    ready(running)
    checkpoint.begin()
    java = start.cluster.java
    note_java(checkpoint.directory, None if java is None else java.pid)
    running.query = start_pipeline(
        start.cluster,
        deployment,
        checkpoint,
        start.places,
        start.file_logs,
        deliver=delivery,
        every=start.every,
        cache_bytes=start.settings.cache_bytes,
    )


def _forget_deployments(start: Start) -> None:
    """Keep what runs now, and what the last batch ran with, which Spark may compute again."""
    needed = {start.deployed.deployment.version, start.batch_log.last_version}
    start.checkpoint.deployments.forget(needed)


def _tick_for_relations(start: Start, control: Control) -> None:
    """Make a batch for new queries over relations: no row will come that would make one."""
    if any(_reads_no_stream(start.checked, name) for name in start.checked.new):
        control.say(Word.TICK)


def _tick_for_held(start: Start, control: Control) -> None:
    """Make a batch if rows may leave that have waited, since the last batch ran with other cuts."""
    deployment = start.deployed.deployment
    is_changed = start.batch_log.last_version not in ("", deployment.version)
    is_cut = any(cut is not None for cut in start.deployed.cuts.values())
    if is_changed and (is_cut or deployment.before):
        control.say(Word.TICK)


def _tick_for_replays(start: Start, control: Control) -> None:
    """Make a batch if inputs are to be filled with kept rows, although none may come."""
    epochs = (i.epoch for i in start.checked.graph.inputs if i.rows in start.deployed.replayed)
    if start.batch_log.replays or any(epoch > start.batch_log.ran for epoch in epochs):
        control.say(Word.TICK)


def _reads_no_stream(checked: Checked, query: str) -> bool:
    """Whether a query reads relations only."""
    parts = walk_physical([checked.planned[query].physical])
    return not any(isinstance(part, Input) and part.name in checked.streams for part in parts)
