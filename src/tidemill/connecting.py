"""Connecting: a new session, with its engine and settings."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from tidemill.connectors.connector import Engine
from tidemill.control.adapt_setting import ADAPT_EVERY, adapt_setting
from tidemill.control.admission import session_limits
from tidemill.control.kept import KeptCatalog
from tidemill.control.read_only import ReadOnlyQueries
from tidemill.errors import PlanError, suggestion
from tidemill.history.pace import REPLAY_ROWS, REPLAY_SHARE
from tidemill.planning import Planning, is_duration
from tidemill.runtime.clock import now
from tidemill.runtime.local.job import Job, Settings
from tidemill.runtime.local.kept_job import KeptJob
from tidemill.runtime.lock import take_lock
from tidemill.runtime.planning import planner_of
from tidemill.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from tidemill.catalog.catalog import Catalog
    from tidemill.optimizer.planning import Planning as OptimizerPlanning
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.runs import Runs

__all__ = ["DEFAULT_ENGINE", "ENGINES", "connect"]

ENGINES: Final = tuple(engine.value for engine in Engine)
"""Where queries can run."""

DEFAULT_ENGINE: Final = Engine.LOCAL.value
"""Where queries run if it is not said, here and on the command line: it needs no Java."""

_MASTER = "local[*]"
_MEMORY = "2g"


class _Unset(Enum):
    """The value of a setting that is not given; ``None`` can be given."""

    UNSET = auto()

    def __repr__(self) -> str:
        return "…"  # as help shows it


_UNSET: Final = _Unset.UNSET


def connect(  # noqa: PLR0913 — every setting has a name and a default
    *,
    engine: str = DEFAULT_ENGINE,
    planning: Planning | None = None,
    master: str | None = _MASTER,
    checkpoint: str | Path | None = None,
    partitions: int | None = None,
    stages: int | None = None,
    memory: str = _MEMORY,
    optimize: bool | _Unset = _UNSET,
    max_delay: float | _Unset | None = _UNSET,
    technique: str | _Unset = _UNSET,
    joins: str | _Unset = _UNSET,
    negation: str | _Unset = _UNSET,
    spread: str | _Unset = _UNSET,
    lazy: float | _Unset = _UNSET,
    constants: str | Path | _Unset | None = _UNSET,
    trigger: float = 0,
    replay_rows: int = REPLAY_ROWS,
    replay_share: float = REPLAY_SHARE,
    cpu_limit: float | None = None,
    memory_limit: float | str | None = None,
    over_limit: str = "refuse",
    adapt: str = "off",
    adapt_every: int = ADAPT_EVERY,
    unbounded_state: bool = False,
    read_only: bool = False,
    clock: Callable[[], int] = now,
) -> Session:
    """A new session; its catalog is empty, or that of the checkpoint.

    Args:
        engine: Where queries run: ``"local"`` is this process, ``"spark"`` is Spark. The answers
            are the same.
        planning: How queries are computed, for experts; the answers are the same. Its settings can
            also be given one by one: ``connect(technique="direct")`` is short for
            ``connect(planning=Planning(technique="direct"))``.
        master: Which Spark, as Spark writes it; ``None`` takes what ``spark-submit`` says.
        checkpoint: The directory that statements and state are kept in, so that a later session
            can take them up; ``None`` forgets them after the session.
        partitions: How many partitions state is kept in; the answers are the same.
        stages: On Spark, how many stateful stages there are, which is fixed for the life of a
            checkpoint; ``None`` for as many as the first queries need, one with one partition.
        memory: How much memory Spark's driver gets, with a local master all there is.
        optimize: Short for that of ``Planning``, which has its meaning and default.
        max_delay: Likewise.
        technique: Likewise.
        joins: Likewise.
        negation: Likewise.
        spread: Likewise.
        lazy: Likewise.
        constants: Likewise.
        trigger: On Spark, how often a batch begins while the session is running, in seconds; 0
            for as soon as the last one is done.
        replay_rows: About how many kept rows are replayed in a batch to queries that begin or are
            changed, at most; queries that run wait for no more than these.
        replay_share: Which share of the time of a batch replayed rows may take, between 0 and 1, as
            far as batches have told how long they take.
        cpu_limit: How many processors the queries may be expected to keep busy, by the cost model,
            while streams come as fast as their time goes on. Joins are planned so as to keep to it.
        memory_limit: How many bytes of state they may be expected to hold, as a number or as
            ``"500 MB"``.
        over_limit: What becomes of a query that would exceed a limit: ``"refuse"`` or ``"admit"``,
            with a warning.
        adapt: Whether plans follow what is measured while queries run: ``"off"``; ``"advise"``, it
            is only said what would be done; ``"on"``. The answers are the same. SET adapt changes
            it, and SHOW DECISIONS tells what was done.
        adapt_every: After how many batches it is looked for better plans.
        unbounded_state: Accept queries whose state can grow without bound, such as a join of two
            streams for ever.
        read_only: Only look at the checkpoint, which another session may be working on, now or
            later: ``SELECT … AS OF``, ``ask``, SHOW, DESCRIBE and EXPLAIN. Nothing is written.
        clock: What time it is, in microseconds since 1970, for streams without ORDERED BY and
            those that may be idle. It is there for tests.

    Raises:
        PlanError: There is no such engine, not at least one partition or stage, a time is negative,
            settings of planning do not fit or are given twice, or a setting of Spark's is given to
            the local engine.
        RunError: Another session runs on the checkpoint, or what is there cannot be taken up.
    """
    if engine not in ENGINES:
        raise PlanError(
            f'there is no engine "{engine}"', hint=suggestion(str(engine), ENGINES, what="engines")
        )
    if partitions is not None and not _is_count(partitions):
        raise PlanError("there must be at least one partition", hint="write partitions=1")
    if stages is not None and not _is_count(stages):
        raise PlanError("there must be at least one stage", hint="write stages=1")
    if not _is_count(replay_rows):
        raise PlanError("replay_rows must be at least 1", hint=f"write replay_rows={REPLAY_ROWS}")
    if not (is_duration(replay_share) and 0 < replay_share < 1):
        raise PlanError(
            "replay_share must be between 0 and 1", hint=f"write replay_share={REPLAY_SHARE}"
        )
    short = {
        "optimize": optimize,
        "max_delay": max_delay,
        "technique": technique,
        "joins": joins,
        "negation": negation,
        "spread": spread,
        "lazy": lazy,
        "constants": constants,
    }
    limits = session_limits(cpu_limit, memory_limit, over_limit)
    adapting = adapt_setting(adapt, adapt_every, limits)
    chosen = replace(
        _planning(planning, short).for_optimizer(),
        cpu_limit=limits.cpu,
        memory_limit=limits.memory,
    )
    if not is_duration(trigger):
        raise PlanError("trigger must be a number of seconds, not negative", hint="write trigger=0")
    if read_only:
        return _looking(checkpoint, Engine(engine), chosen)
    kept = _kept(checkpoint, Engine(engine))
    state = None if kept is None else str(kept.directory)
    if engine == "local":
        _refuse_ignored(
            {
                "master": master != _MASTER,
                "stages": stages is not None,
                "memory": memory != _MEMORY,
                "trigger": trigger != 0,
            }
        )
        lock = take_lock if kept is None else kept.take
        settings = Settings(partitions, chosen, clock, state, lock, replay_rows, replay_share)
        local = Job if state is None else KeptJob
        return Session(
            lambda catalog, frames, callbacks: local(catalog, frames, settings, callbacks),
            planner=planner_of(chosen, settings.templates, partitions),
            adaptive=planner_of(replace(chosen, adaptive=True), settings.templates, partitions),
            unbounded_state=unbounded_state,
            engine=Engine.LOCAL,
            kept=kept,
            limits=limits,
            adapting=adapting,
        )
    # Spark takes a second to import, so only sessions that run something wait for it.
    from tidemill.runtime.spark.driver.settings import SparkSettings  # noqa: PLC0415

    on_spark = SparkSettings(
        master=master,
        partitions=partitions,
        planning=chosen,
        checkpoint=state,
        stages=stages,
        trigger=trigger,
        memory=memory,
        clock=clock,
        take_lock=take_lock if kept is None else kept.take,
        replay_rows=replay_rows,
        replay_share=replay_share,
    )

    def new_job(
        catalog: Catalog, frames: Mapping[str, pl.DataFrame], callbacks: Mapping[str, Callback]
    ) -> Runs:
        from tidemill.runtime.spark.driver.job import SparkJob  # noqa: PLC0415

        return SparkJob(catalog, frames, on_spark, callbacks)

    return Session(
        new_job,
        planner=on_spark.plan,
        adaptive=replace(on_spark, planning=replace(chosen, adaptive=True)).plan,
        unbounded_state=unbounded_state,
        engine=Engine.SPARK,
        kept=kept,
        limits=limits,
        adapting=adapting,
    )


def _looking(checkpoint: str | Path | None, engine: Engine, planning: OptimizerPlanning) -> Session:
    """A session that only looks at a checkpoint.

    Raises:
        PlanError: No checkpoint is given.
        RunError: There is none, or it cannot be read.
    """
    if checkpoint is None:
        raise PlanError(
            "a read-only session looks at a checkpoint, and none is given",
            hint="write connect(checkpoint=…, read_only=True)",
        )
    planner = planner_of(planning)
    queries = ReadOnlyQueries(Path(checkpoint).absolute(), planner, engine)
    return Session(_never_run, planner=planner, unbounded_state=True, queries=queries)


def _never_run(*_: object) -> NoReturn:
    raise AssertionError("it refuses to run anything")


def _kept(checkpoint: str | Path | None, engine: Engine) -> KeptCatalog | None:
    """What a checkpoint keeps of the catalog; its ``take`` gives the lock to the engine's job.

    A session that changes its directory must not go on with another checkpoint.
    """
    return None if checkpoint is None else KeptCatalog(Path(checkpoint).absolute(), engine)


def _planning(planning: Planning | None, short: Mapping[str, object]) -> Planning:
    """What is given as a whole, or setting by setting.

    Raises:
        PlanError: A setting is given both ways, or does not fit.
    """
    given = {setting: value for setting, value in short.items() if value is not _UNSET}
    if planning is not None and not isinstance(planning, Planning):
        raise PlanError(
            f"planning must be a Planning, not {planning!r}",
            hint='write planning=tidemill.Planning(technique="direct")',
        )
    if planning is None:
        return Planning(**given)  # type: ignore[arg-type]  # they are those of connect
    if given:
        setting, value = next(iter(given.items()))
        raise PlanError(
            f"{setting} is given twice, by itself and in planning",
            hint=f"write planning=Planning({setting}={value!r}, …) only",
        )
    return planning


def _is_count(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 1


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
