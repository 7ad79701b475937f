"""What a job tells of a query: its answer, its plan and its figures, by way of its instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry
from tidemill.control.delivered import delivered_to
from tidemill.control.instances import instance_name, record_of, user_name
from tidemill.errors import BindError, RunError
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import END_OF_TIME, Time
from tidemill.runtime.answers import Answer
from tidemill.runtime.parted import Piece, parted
from tidemill.runtime.shapes import answer_form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.lang.statements import Name
    from tidemill.optimizer.explain.physical import Figures
    from tidemill.optimizer.planned import Planned
    from tidemill.runtime.runs import Moment, Runs

__all__ = ["answer_in", "figures_in", "gone_from", "is_in", "past_of", "planned_in"]


def answer_in(
    job: Runs,
    catalog: Catalog,
    past: Mapping[str, Answer],
    query: str,
    version: int | None = None,
) -> Answer | None:
    """What a query has given in a job; ``None`` if it was not there.

    Args:
        job: What runs, or was run.
        catalog: What is registered now.
        past: What instances gave that do not run any more.
        query: The query.
        version: What one version of it gave; without it, all that have the columns of the newest.

    Raises:
        RunError: It has no such version, or its answer is not kept.
    """
    entry = catalog.find(query)
    if not isinstance(entry, QueryEntry) or entry.record is None:
        if version not in (None, 1):
            raise _no_version(query, version, 1)
        return job.answer(query) if is_in(job, catalog, past, query) else None
    record = entry.record
    if delivered_to(entry) is not None:
        if version is not None and len(record.versions) > 1:
            raise RunError(
                f'the versions of query "{query}" have gone to one sink',
                hint="leave version out, and look at the times of the rows",
            )
        return job.answer(entry.name)
    if version is not None and not 0 < version <= len(record.versions):
        raise _no_version(query, version, len(record.versions))
    wanted = record.version(version or record.current.number)
    schema = wanted.plan.schema
    pieces: list[Piece] = []
    is_over = True  # whether all parts so far are
    for part in record.parts:
        asked, name = record.version_of(part), instance_name(entry.name, part.instance)
        given = past.get(name) or job.answer(name)
        if given is None:  # it was over before this session began
            given = Answer(asked.plan.schema, is_whole=False)
            given.known = END_OF_TIME if part.instance in record.ended else Time(0)
        is_wanted = version == asked.number if version else asked.columns == wanted.columns
        piece = Piece(given, part.since, part.until, waits=bool(part.held) and not is_over)
        pieces += [piece] if is_wanted else []
        is_over = is_over and (piece.is_over or part.instance in record.ended)
    return parted(schema, pieces)


def is_in(job: Runs, catalog: Catalog, past: Mapping[str, Answer], query: str) -> bool:
    """Whether a job has a query, and not another one that had its name then."""
    entry, planned = catalog.find(query), job.planned(query)
    if isinstance(entry, QueryEntry) and entry.record is not None:
        names = (instance_name(entry.name, one.number) for one in entry.record.instances)
        return any(job.planned(name) is not None or name in past for name in names)
    if planned is None or not isinstance(entry, QueryEntry):
        return True  # the job knows what it has; nothing else has the name now
    return planned.bound == entry.plan


def gone_from(job: Runs, moment: Moment, catalog: Catalog, queries: Catalog) -> dict[str, Answer]:
    """What instances have given in memory that do not run any more.

    Args:
        job: What runs.
        moment: Where it stands.
        catalog: What people have registered.
        queries: What runs from the next batch on.
    """
    gone: dict[str, Answer] = {}
    for name in moment.known:
        entry = catalog.find(user_name(name))
        if isinstance(entry, QueryEntry) and not queries.find(name) and not delivered_to(entry):
            answer = job.answer(name)
            gone |= {} if answer is None else {name: answer}
    return gone


def past_of(catalog: Catalog, past: Mapping[str, Answer]) -> dict[str, Answer]:
    """What instances gave of queries that are still there.

    Another query that has the name of one that was dropped must not find it.
    """
    return {n: one for n, one in past.items() if catalog.find(user_name(n)) is not None}


def planned_in(
    job: Runs | None,
    catalog: Catalog,
    planner: Callable[[QueryEntry], Planned],
    query: Name,
) -> Planned:
    """How a registered query is computed: the plan it runs with, or would run with.

    Args:
        job: What runs, or was run last.
        catalog: What is registered now.
        planner: How a query would be computed.
        query: The query.

    Raises:
        BindError: There is no such query.
    """
    entry = catalog.get(query)
    if not isinstance(entry, QueryEntry):
        raise BindError(
            f'"{query.text}" is not a query',
            span=query.span,
            hint="name a query, or write EXPLAIN SELECT … FROM it",
        )
    running, plan = None, entry.plan
    if job is not None:
        number = 1
        if entry.record is not None:
            live = [*entry.record.instances]
            number, plan = live[-1].number, live[-1].begun(plan)
        running = job.planned(instance_name(entry.name, number))
    # One of an earlier run may have had this name, or another sink.
    asked = plan, answer_form(entry)
    is_same = running is not None and (running.bound, running.target.answer) == asked
    return running if running is not None and is_same else planner(entry)


def figures_in(job: Runs | None, catalog: Catalog, planned: Planned) -> dict[str, Figures]:
    """What was measured of the operators of a query that runs, or was run.

    Raises:
        RunError: It has not been run.
    """
    names = [
        instance_name(entry.name, one.number)
        for entry in catalog.entries(ObjectKind.QUERY)
        if isinstance(entry, QueryEntry)
        for one in record_of(entry).instances
    ]
    if job is None or not any(job.planned(name) is planned for name in names):
        raise RunError(
            "the query has not been run, so nothing was measured",
            hint="call session.run() or session.start() first",
        )
    return {name: metrics.figures() for name, metrics in job.metrics().items()}


def _no_version(query: str, version: int | None, newest: int) -> RunError:
    return RunError(
        f'query "{query}" has no version {version}', hint=f"its versions are 1 to {newest}"
    )
