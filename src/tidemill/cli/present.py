"""The present: what is known of the answers of queries while they run."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry
from tidemill.cli.excerpt import Excerpt, excerpt_of
from tidemill.connectors.check import arguments_of, guarantee
from tidemill.connectors.connector import Guarantee, Use
from tidemill.engine.pool import taking_part
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from tidemill.runtime.answers import Answer
    from tidemill.runtime.progress import Progress
    from tidemill.session import Session

__all__ = ["Glimpses", "is_kept", "place_text", "present", "present_excerpt", "queries_of"]

_SHARE = 0.05
"""Which part of the time may go into looking at answers."""

_PAUSE = 0.5
"""How long an answer stays as it is at least, in seconds: people read it."""

_PATIENCE = 0.1
"""How long to wait for a batch that keeps Polars busy, in seconds."""


def queries_of(session: Session) -> Iterator[QueryEntry]:
    """The queries that are registered, in the order of their names."""
    for entry in session.catalog.entries(ObjectKind.QUERY):
        assert isinstance(entry, QueryEntry), "queries are registered so"
        yield entry


def is_kept(query: QueryEntry) -> bool:
    """Whether the session keeps the answer, so that it can be shown."""
    return guarantee(query.sink) is Guarantee.SESSION


def place_text(query: QueryEntry) -> str:
    """Where an answer goes: the sink, without arguments that may be secrets."""
    if query.sink is None:
        return "memory"
    if query.is_table:
        return "table"
    said = arguments_of(query.sink, Use.SINK)
    path = None if said.connector.holds_secrets else said.given.get("path")
    return query.sink.name.text.lower() if path is None else f"{said.connector.name} {path}"


def present(answer: Answer) -> tuple[str, pl.DataFrame] | None:
    """The rows of the last instant of which an answer is known, and that instant, if there is one.

    There is none of an answer that goes on from a checkpoint: it has only what came since.
    """
    time = answer.present() if answer.is_whole else None
    return None if time is None else (f"at {time_text(time)}", answer.snapshot(time))


def present_excerpt(name: str, answer: Answer, rows: int) -> Excerpt | None:
    """The first rows of the present, or the rows that came last if there are none at present."""
    found = present(answer)
    if found is not None and found[1].height:
        when, frame = found
        title = f"{name} {when}: {_rows_text(frame.height)}"
        return excerpt_of(title, frame.head(rows), more=max(0, frame.height - rows))
    last = answer.latest(rows)
    if not last.height:
        return None
    title = f"{name}: the last rows" + ("" if found is None else f"; none {found[0]}")
    starts = [time_text(start) for start in last[last.columns[-1]]]
    return replace(excerpt_of(title, last, times=[starts]), is_tail=True)


def _rows_text(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


class Glimpses:
    """Looks at the answers of a session from time to time, at a small part of the cost of the run.

    Args:
        session: What runs.
        rows: How many rows of each answer are shown.
        clock: What time it is, in seconds.

    Attributes:
        places: Where the answer of each query goes.
    """

    def __init__(self, session: Session, rows: int, clock: Callable[[], float] = monotonic) -> None:
        queries = list(queries_of(session))
        self.places = {query.name: place_text(query) for query in queries}
        self._session = session
        self._rows = rows
        self._clock = clock
        self._names = [query.name for query in queries if is_kept(query)] if rows else []
        self._seen: list[Excerpt] = []
        self._batches = 0
        self._next = clock()

    def look(self, progress: Progress) -> list[Excerpt]:
        """The answers as they were when they were looked at last, which may be now."""
        if progress.batches != self._batches and self._clock() >= self._next:
            with taking_part(_PATIENCE) as is_free:
                if is_free:
                    self._look(progress.batches)
        return self._seen

    def _look(self, batches: int) -> None:
        begin = self._clock()
        answers = ((name, self._session.current_answer(name)) for name in self._names)
        found = (
            present_excerpt(name, answer, self._rows)
            for name, answer in answers
            if answer is not None
        )
        self._seen = [excerpt for excerpt in found if excerpt is not None]
        self._batches = batches
        end = self._clock()
        self._next = end + max(_PAUSE, (end - begin) * (1 / _SHARE - 1))
