"""A query as people hold it: its name, its plan, and the answer it has given so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tidemill.algebra.explain import explain
from tidemill.catalog.entries import QueryEntry
from tidemill.errors import RunError
from tidemill.model.time import time_text, to_instant

if TYPE_CHECKING:
    from datetime import date, datetime

    import polars as pl

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.catalog import Catalog
    from tidemill.model.schema import Schema
    from tidemill.runtime.answers import Answer

__all__ = ["Query"]


class _Answers(Protocol):
    """What has the queries and their answers: a session."""

    @property
    def catalog(self) -> Catalog:
        """What is registered."""
        ...

    def answer(self, query: str) -> Answer:
        """What a query has given so far."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Query:
    """A registered continuous query."""

    name: str
    plan: Plan
    session: _Answers = field(compare=False)

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        return f"Query({self.name}: {columns})"

    @property
    def schema(self) -> Schema:
        """The columns of the answer."""
        return self.plan.schema

    def explain(self) -> str:
        """The logical plan as text."""
        return explain(self.plan)

    def results(self) -> pl.DataFrame:
        """The answer in interval form: its columns, and ``start`` and ``end`` in microseconds.

        Raises:
            RunError: The query has not been run, was dropped, or its answer is not kept.
        """
        return self._answer().results()

    def changes(self) -> pl.DataFrame:
        """The answer in signed form: its columns, ``time`` and ``sign``, in the order of time.

        Raises:
            RunError: The query has not been run, was dropped, or its answer is not kept.
        """
        return self._answer().changes()

    def snapshot(self, at: int | datetime | date | str | None = None) -> pl.DataFrame:
        """The rows that are valid at an instant.

        It is given in microseconds, as a calendar time or date, or as the text of one in ISO form
        such as ``2026-03-01T12:00:00``; without a zone it is UTC.

        While streams go on, an answer is known up to some instant. Without ``at`` it is the last
        one that is known; after the end of the streams, when all are known, it is that of the
        latest row that was read.

        Raises:
            RunError: It is no instant, or the query has not been run, was dropped, its answer is
                not kept, or is not known yet at that instant.
        """
        answer = self._answer()
        if not answer.is_whole:
            raise RunError(
                f'what "{self.name}" gave before this session was started is not kept, so its rows '
                "at an instant are not known",
                hint="write INTO parquet(…) to keep an answer; results() has what came since",
            )
        time = answer.present() if at is None else to_instant(at)
        if time is None:
            raise RunError(
                f'nothing is known yet of the answer of "{self.name}"',
                hint="wait until rows have come, for example with session.await_idle()",
            )
        if time >= answer.known:
            raise RunError(
                f'the answer of "{self.name}" is known up to {time_text(answer.known)}, and at '
                f"{time_text(time)} it can still change",
                hint="ask for an earlier instant, or for snapshot(), the last one that is known",
            )
        return answer.snapshot(time)

    def _answer(self) -> Answer:
        entry = self.session.catalog.find(self.name)
        if isinstance(entry, QueryEntry) and entry.plan != self.plan:
            raise RunError(
                f'query "{self.name}" was dropped, and another one has its name now',
                hint="take the query that session.sql() gave for it",
            )
        return self.session.answer(self.name)
