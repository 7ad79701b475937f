"""Connecting: a new session, with its engine and settings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidemill.connectors.connector import Engine
from tidemill.errors import PlanError, suggestion
from tidemill.optimizer.logical.rules import PATTERN_RULES
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning
from tidemill.runtime.clock import now
from tidemill.runtime.local.job import Job, Settings
from tidemill.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from tidemill.catalog.catalog import Catalog
    from tidemill.optimizer.logical.rules import Negation
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.runs import Runs

__all__ = ["connect"]

_ENGINES = tuple(engine.value for engine in Engine)
_MASTER = "local[*]"
_MEMORY = "2g"


def connect(  # noqa: PLR0913 — every setting has a name and a default
    *,
    engine: str = "local",
    master: str | None = _MASTER,
    checkpoint: str | Path | None = None,
    partitions: int | None = None,
    stages: int | None = None,
    memory: str = _MEMORY,
    optimize: bool = True,
    max_delay: float | None = 60,
    technique: str = "pattern",
    joins: str = "binary",
    negation: str = "written",
    lazy: float = 0,
    trigger: float = 0,
    unbounded_state: bool = False,
    clock: Callable[[], int] = now,
) -> Session:
    """A new session with an empty catalog.

    Args:
        engine: Where queries run: ``"local"`` is this process, ``"spark"`` is Spark. The answers
            are the same.
        master: Which Spark, as Spark writes it; ``None`` takes what ``spark-submit`` says.
        checkpoint: On Spark, the directory that state is kept in, so that a later session can
            take it up; ``None`` forgets it after the run.
        partitions: How many partitions state is kept in; the answers are the same.
        stages: On Spark, how many stateful stages there are, which is fixed for the life of a
            checkpoint; ``None`` for as many as the first queries need, one with one partition.
        memory: How much memory Spark's driver gets, with a local master all there is.
        optimize: Whether plans are rewritten before they run; the answers are the same.
        max_delay: For how long, in seconds of the streams' time, a result that does not change may
            be held back from whoever computes with it; ``None`` for ever.
        technique: How plans tell that rows go: ``"direct"``, every row knows its end;
            ``"negative"``, a row that goes is withdrawn by a message; ``"hybrid"``, messages above
            joins; ``"pattern"``, messages where the end is not known in advance. The answers are
            the same.
        joins: Whether joins of joins remember intermediate results: ``"binary"`` ones do,
            ``"multiway"`` ones make them again. The answers are the same.
        lazy: With ``joins="multiway"``, every how many seconds of the streams' time what has come
            is joined; 0 for at once. The answers are the same, but later.
        negation: Where NOT EXISTS and NOT IN are computed: ``"written"``, where the query has
            them; ``"pulled"`` above joins, so that these know the ends of their rows; ``"pushed"``
            below joins, so that these have fewer rows. The answers are the same.
        trigger: On Spark, how often a batch begins while the session is running, in seconds; 0
            for as soon as the last one is done.
        unbounded_state: Accept queries whose state can grow without bound, such as a join of two
            streams for ever.
        clock: What time it is, in microseconds since 1970, for streams without ORDERED BY and
            those that may be idle. It is there for tests.

    Raises:
        PlanError: There is no such engine, technique, kind of joins or place of negation, not at
            least one partition or stage, a time is negative, or a setting of Spark's is given to
            the local engine.
    """
    if engine not in _ENGINES:
        raise PlanError(f'there is no engine "{engine}"', hint=suggestion(engine, _ENGINES))
    if partitions is not None and partitions < 1:
        raise PlanError("there must be at least one partition", hint="write partitions=1")
    if stages is not None and stages < 1:
        raise PlanError("there must be at least one stage", hint="write stages=1")
    if max_delay is not None and not 0 <= max_delay < math.inf:
        raise PlanError(
            "max_delay must be a number of seconds, not negative",
            hint="write max_delay=60, or max_delay=None for ever",
        )
    for what, given, known in (
        ("technique", technique, [t.value for t in Technique]),
        ("kind of joins", joins, [j.value for j in Joins]),
        ("place of negation", negation, list(PATTERN_RULES)),
    ):
        if given not in known:
            hint = suggestion(str(given), known, what="choices")
            raise PlanError(f'there is no {what} "{given}"', hint=hint)
    if lazy and joins != Joins.MULTIWAY.value:
        raise PlanError("only joins of many inputs can be lazy", hint='write joins="multiway"')
    if negation != "written" and not optimize:
        raise PlanError(
            "negation is moved by the optimizer", hint='write negation="written", or optimize=True'
        )
    if not (0 <= lazy < math.inf):
        raise PlanError("lazy must be a number of seconds, not negative", hint="write lazy=0")
    if not (0 <= trigger < math.inf):
        raise PlanError("trigger must be a number of seconds, not negative", hint="write trigger=0")
    if engine == "local":
        _refuse_ignored(
            {
                "master": master != _MASTER,
                "checkpoint": checkpoint is not None,
                "stages": stages is not None,
                "memory": memory != _MEMORY,
                "trigger": trigger != 0,
            }
        )
    planning = Planning(
        optimized=optimize,
        max_delay=None if max_delay is None else round(max_delay * 1_000_000),
        technique=Technique(technique),
        joins=Joins(joins),
        negation=cast("Negation", negation),
        lazy=round(lazy * 1_000_000),
    )
    if engine == "local":
        settings = Settings(partitions=partitions or 1, planning=planning, clock=clock)
        return Session(
            lambda catalog, frames, callbacks: Job(catalog, frames, settings, callbacks),
            planning=planning,
            unbounded_state=unbounded_state,
            engine=Engine.LOCAL,
        )
    # Spark takes a second to import, so only those who run something wait for it.
    from tidemill.runtime.spark.driver.settings import SparkSettings  # noqa: PLC0415

    # A session that changes its directory must not go on with another checkpoint.
    state = None if checkpoint is None else str(Path(checkpoint).absolute())
    on_spark = SparkSettings(
        master=master,
        partitions=partitions,
        planning=planning,
        checkpoint=state,
        stages=stages,
        trigger=trigger,
        memory=memory,
        clock=clock,
    )

    def new_job(
        catalog: Catalog, frames: Mapping[str, pl.DataFrame], callbacks: Mapping[str, Callback]
    ) -> Runs:
        from tidemill.runtime.spark.driver.job import SparkJob  # noqa: PLC0415

        return SparkJob(catalog, frames, on_spark, callbacks)

    def forget(query: str) -> bool:
        from tidemill.runtime.spark.state.checkpoint import forget_query  # noqa: PLC0415

        return state is not None and forget_query(state, query)

    return Session(
        new_job,
        planning=planning,
        unbounded_state=unbounded_state,
        forget=forget,
        engine=Engine.SPARK,
    )


def _refuse_ignored(given: Mapping[str, bool]) -> None:
    """Refuse settings that only Spark heeds.

    Raises:
        PlanError: One of them is given.
    """
    for setting, is_given in given.items():
        if is_given:
            raise PlanError(
                f"the local engine has no {setting}",
                hint=f'write engine="spark", or leave {setting} out',
            )
