"""Asking: a query that is asked once, at the boundary at which its instant is known.

What is kept may be removed while it is read, since time goes on. Then it is asked again, of the
next boundary: either what is needed is still there, or it is said that it is not kept any more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

from tidemill.algebra.plan import Relation
from tidemill.algebra.reach import newest
from tidemill.algebra.tree import streams_of, walk
from tidemill.catalog.entries import QueryEntry
from tidemill.control.asked import Asked
from tidemill.control.checkpoint_past import past_in
from tidemill.errors import ParseError, RunError, Span
from tidemill.lang.statements import Instant, OneTimeQuery, Select
from tidemill.lang.statements import Why as WhyStatement
from tidemill.model.time import Time, time_text, to_instant
from tidemill.optimizer.explain.planned import explain_json, explain_planned
from tidemill.runtime.kept_streams import kept_streams
from tidemill.runtime.local.one_time import planned_once
from tidemill.runtime.one_time import LOOK_EVERY, NotKeptError, NotKnownError, OneTimeAnswer
from tidemill.runtime.past import Past, RemovedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import polars as pl

    from tidemill.binder.one_time import Question
    from tidemill.catalog.catalog import Catalog
    from tidemill.control.asked_tables import KeptTables
    from tidemill.lang.parse import Script
    from tidemill.lang.statements import Explain
    from tidemill.runtime.answers import Answer

T = TypeVar("T")

__all__ = ["Asking", "asked_text", "explained", "instant_of", "why_text"]

_TRIES = 8
"""How often it is read again if rows were removed meanwhile."""


def asked_text(script: Script, at: object) -> OneTimeQuery:
    """What is asked by a text that is one SELECT, with AS OF or without.

    Raises:
        ParseError: It is something else, or says an instant as well as ``at`` does.
    """
    hint = "write one SELECT; session.sql() carries out statements of every kind"
    if not script:
        raise ParseError("there is no query", span=Span(0, 0), hint=hint)
    if len(script) > 1:
        raise ParseError("expected one query, found another", span=script[1][1], hint=hint)
    match script[0]:
        case Select(query), _:
            time = instant_of(at)
            return OneTimeQuery(query, None if time is None else Instant(time))
        case OneTimeQuery(_, instant) as asked, span:
            if at is not None:
                raise ParseError(
                    "the instant is given twice, by AS OF and by at",
                    span=span if instant is None else instant.span,
                    hint="leave one of them out",
                )
            return asked
        case _, span:
            raise ParseError("only a SELECT can be asked", span=span, hint=hint)


def why_text(script: Script, at: object) -> WhyStatement:
    """The statement of a text that asks why.

    Args:
        script: The statements of the text.
        at: The instant, if the text does not say it; ``None`` for the last one that is known.

    Raises:
        TidemillError: It is something else, or says an instant as well as ``at`` does.
    """
    statement = script[0][0] if len(script) == 1 else None
    if not isinstance(statement, WhyStatement):
        raise ParseError(
            "this is not one WHY",
            hint="write WHY query [WHERE condition] [AT instant], WHY CHANGE or WHY NOT",
        )
    time = instant_of(at)
    if time is None:
        return statement
    if statement.at is not None:
        raise ParseError(
            "the instant is given twice, by AT and by at",
            span=statement.at.span,
            hint="leave one of them out",
        )
    return replace(statement, at=Instant(time))


def instant_of(at: object) -> Time | None:
    """An instant as people give it; ``None`` for the last one that is known.

    Raises:
        RunError: It is no instant, or one before time begins.
    """
    if at is None:
        return None
    time = to_instant(at)
    if time < 0:
        raise RunError("an instant is not before 1970", hint="time begins there")
    return time


@dataclass(frozen=True, slots=True)
class Asking:
    """What a session has to answer questions with.

    Attributes:
        catalog: What is registered.
        past: Gives what is kept at the last boundary, or the checkpoint that has it; ``None`` if
            nothing has been run.
        given: What a query has given, if that is at hand.
        memory: The frames that ``memory`` sources name.
        tables: Looks at tables.
    """

    catalog: Catalog
    past: Callable[[], Past | Path | None]
    given: Callable[[str], Answer | None]
    memory: Mapping[str, pl.DataFrame]
    tables: Callable[[Iterable[QueryEntry]], KeptTables]

    def answer(
        self, question: Question, instant: Instant | None, wait: float | None
    ) -> OneTimeAnswer:
        """The answer to a question.

        Args:
            question: What is asked.
            instant: Of which; ``None`` for the last one that is known.
            wait: For how many seconds to wait for the instant to be known.

        Raises:
            RunError: The instant is not known, or what is needed is not kept.
        """
        at = None if instant is None else Time(instant.microseconds)
        return self.when_known(lambda: self._answer_now(question, at), wait)

    def when_known(self, answer: Callable[[], T], wait: float | None) -> T:
        """What is asked, at the first boundary at which it is known and its rows are there.

        Args:
            answer: Asks at the last boundary.
            wait: For how many seconds to wait for the instant to be known.

        Raises:
            RunError: The instant is not known, or what is needed is not kept.
        """
        until = monotonic() + (wait or 0)
        removed: list[str] = []
        while True:
            try:
                return answer()
            except NotKnownError:
                if monotonic() >= until:
                    raise
                sleep(min(LOOK_EVERY, max(until - monotonic(), 0)))
            except RemovedError as error:
                if removed and removed[-1] == str(error) and isinstance(error.__cause__, RunError):
                    raise error.__cause__ from None  # it is named still, and is not there
                removed.append(str(error))
                if len(removed) >= _TRIES:
                    raise RunError(
                        f"rows are removed faster than they can be read: {_TRIES} times some were"
                        " gone before they were read",
                        hint="write a longer KEEP in CREATE STREAM",
                    ) from error

    def _answer_now(self, question: Question, at: Time | None) -> OneTimeAnswer:
        asked = self.asked(question)
        asked.require_kept(question)
        time = asked.now(question) if at is None else at
        asked.require_known(question, time)
        frame = asked.frame(question, time)
        return OneTimeAnswer(frame, time, asked.known(question), asked.past.batch)

    def asked(self, question: Question) -> Asked:
        """What can be answered now: tables are looked at first (``asked_tables.py``)."""
        tables = self.tables(list(self._tables_of(question)))
        return Asked(self.catalog, self._past(), self.given, self.memory, tables)

    def _past(self) -> Past:
        """What streams have kept, at the last boundary."""
        found = self.past()
        if isinstance(found, Path):
            found = past_in(found, kept_streams(self.catalog).values())
        return found or Past()

    def _tables_of(self, question: Question) -> Iterator[QueryEntry]:
        for name in question.answers.values():
            entry = self.catalog.find(name)
            if isinstance(entry, QueryEntry) and entry.is_table:
                yield entry

    def kept_from(self) -> dict[str, Time]:
        """From which instant on rows of each stream are kept, of those that have kept any."""
        try:
            past = self._past()
        except NotKeptError:
            return {}
        return {name: kept.since for name, kept in past.streams.items()}

    # EXPLAIN

    def reads(self, question: Question, at: Time | None) -> tuple[list[str], dict[str, object]]:
        """What would be read to answer a question, as lines of text and as JSON."""
        asked = self.asked(question)
        known, past = asked.known(question), asked.past
        try:
            time: Time | None = asked.now(question) if at is None else at
        except RunError:
            time = None
        when = "now, of which nothing is known yet" if time is None else time_text(time)
        after = "" if past.batch is None else f", after batch {past.batch}"
        lines = [f"at {when}; known up to {time_text(known)}{after}"]
        streams: dict[str, object] = {}
        for name in sorted(streams_of(question.plan)):
            text, streams[name] = _stream_read(asked, question, name, time)
            lines.append(f'  stream "{name}": {text}')
        kept = {
            table.name: asked.tables.views.get(table.name) for table in self._tables_of(question)
        }
        queries = sorted(name for name in question.answers.values() if name not in kept)
        lines += [f'  query "{name}": its answer' for name in queries]
        since = {name: None if view is None else view.since for name, view in sorted(kept.items())}
        for name, first in since.items():
            keeps = "nothing is kept" if first is None else f"kept from {_from(first)} on"
            lines.append(f'  table "{name}": its rows at the instant; {keeps}')
        there = {one.name for one in walk(question.plan) if isinstance(one, Relation)}
        relations = sorted(there - question.answers.keys())
        lines += [f'  relation "{name}": all rows' for name in relations]
        told: dict[str, object] = {
            "at": time,
            "known": known,
            "batch": past.batch,
            "streams": streams,
            "queries": queries,
            "tables": {name: {"since": first} for name, first in since.items()},
            "relations": relations,
        }
        return lines, told


def _stream_read(
    asked: Asked, question: Question, name: str, time: Time | None
) -> tuple[str, dict[str, object]]:
    """What is read of a stream."""
    kept = asked.past.streams.get(name)
    since = None if kept is None else kept.since
    keeps = "nothing is kept" if since is None else f"kept from {_from(since)} on"
    if time is None:
        return keeps, {"since": since}
    first, last = asked.first(question.plan, time)[name], newest(question.plan, time)
    missing = "" if since is not None and first >= since else "; some of it is not kept"
    text = f"rows from {_from(first)} to {time_text(last)}; {keeps}{missing}"
    return text, {"first": first, "last": last, "since": since}


def _from(time: Time) -> str:
    return "the beginning" if not time else time_text(time)


def explained(statement: Explain, question: Question, asking: Asking) -> str:
    """EXPLAIN of a query that is asked once: its plan, and what would be read."""
    target = statement.target
    assert isinstance(target, OneTimeQuery), "it is asked once"
    at = None if target.at is None else Time(target.at.microseconds)
    lines, told = asking.reads(question, at)
    planned = planned_once(question.plan)
    if statement.as_json:
        plan = json.loads(explain_json(statement.mode, planned))
        return json.dumps({**plan, "reads": told}, indent=2)
    return "\n".join([explain_planned(statement.mode, planned), *lines])
