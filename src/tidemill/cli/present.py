"""The present: what is known of the answers of queries while they run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry
from tidemill.cli.excerpt import Excerpt, excerpt_of
from tidemill.engine.pool import taking_part
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import END_OF_TIME, time_text
from tidemill.optimizer.techniques import Technique
from tidemill.runtime.file_sink import WRITERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from tidemill.runtime.answers import Answer
    from tidemill.runtime.progress import Progress
    from tidemill.session import Session

__all__ = ["Glimpses", "Look", "is_kept", "place_text", "present", "present_excerpt", "queries_of"]

_SHARE = 0.05
"""Which part of the time may go into looking at answers."""

_PAUSE = 0.5
"""How long an answer stays as it is at least, in seconds: people read it."""

_PATIENCE = 0.1
"""How long to wait for a batch that keeps Polars busy, in seconds."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked for, and what is known of how the queries run.

    Attributes:
        rows: How many rows of each answer are shown.
        technique: How queries are planned: with ``direct``, rows are held back until their ends are
            known, so that the present is not known before the streams have ended.
        is_resumed: Whether the run goes on from a checkpoint: an answer in memory then has only
            what came since, and not all that is valid.
    """

    rows: int
    technique: Technique = Technique.PATTERN
    is_resumed: bool = False


def queries_of(session: Session) -> Iterator[QueryEntry]:
    """The queries that are registered, in the order of their names."""
    for entry in session.catalog.entries(ObjectKind.QUERY):
        assert isinstance(entry, QueryEntry), "queries are registered so"
        yield entry


def is_kept(query: QueryEntry) -> bool:
    """Whether the session keeps the answer, so that it can be shown."""
    return query.sink is None or query.sink.name.text.lower() == "memory"


def place_text(query: QueryEntry) -> str:
    """Where an answer goes: the sink, without arguments that may be secrets."""
    if query.sink is None:
        return "memory"
    kind = query.sink.name.text.lower()
    path = dict(query.sink.named).get("path", *query.sink.positional[:1] or [None])
    return f"{kind} {path}" if kind in WRITERS and path is not None else kind


def present(answer: Answer, progress: Progress, look: Look) -> tuple[str, pl.DataFrame] | None:
    """The rows of the last instant of which an answer is known, and that instant, if there is one.

    That is the one before the watermark of the stream that is last.
    """
    marks = [stream.watermark for stream in progress.streams]
    known = [mark for mark in marks if mark is not None]
    if look.is_resumed or not known or len(known) < len(marks):
        return None
    if answer.has_ended:
        return "in the end", answer.snapshot(END_OF_TIME - 1)
    last = min(known) - 1
    if look.technique is Technique.DIRECT or last == END_OF_TIME - 1:
        return None
    return f"at {time_text(last)}", answer.snapshot(last)


def present_excerpt(name: str, answer: Answer, progress: Progress, look: Look) -> Excerpt | None:
    """The first rows of the present, or the rows that came last if there are none at present."""
    found = present(answer, progress, look)
    if found is not None and found[1].height:
        when, frame = found
        title = f"{name} {when}: {_rows_text(frame.height)}"
        return excerpt_of(title, frame.head(look.rows), more=max(0, frame.height - look.rows))
    last = answer.latest(look.rows)
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
        look: What is looked for.
        clock: What time it is, in seconds.

    Attributes:
        places: Where the answer of each query goes.
    """

    def __init__(
        self, session: Session, look: Look, clock: Callable[[], float] = monotonic
    ) -> None:
        queries = list(queries_of(session))
        self.places = {query.name: place_text(query) for query in queries}
        self._session = session
        self._wanted = look
        self._clock = clock
        self._names = [query.name for query in queries if is_kept(query)] if look.rows else []
        self._seen: list[Excerpt] = []
        self._batches = 0
        self._next = clock()

    def look(self, progress: Progress) -> list[Excerpt]:
        """The answers as they were when they were looked at last, which may be now."""
        if progress.batches != self._batches and self._clock() >= self._next:
            with taking_part(_PATIENCE) as is_free:
                if is_free:
                    self._look(progress)
        return self._seen

    def _look(self, progress: Progress) -> None:
        begin = self._clock()
        answers = ((name, self._session.current_answer(name)) for name in self._names)
        found = (
            present_excerpt(name, answer, progress, self._wanted)
            for name, answer in answers
            if answer is not None
        )
        self._seen = [excerpt for excerpt in found if excerpt is not None]
        self._batches = progress.batches
        end = self._clock()
        self._next = end + max(_PAUSE, (end - begin) * (1 / _SHARE - 1))
