"""Explaining: why rows of an answer are there, from what streams have kept.

It is asked like a question (``asking.py``): of one instant that is known, at one boundary. What the
query computes is computed again, over the kept rows that can matter at the instant, with hidden
columns (``provenance/``). So nothing needs to be done while the query runs, and what is said is the
same on both engines, in every process, and after every restart.

Law: the rows of the answer are those that ``AS OF`` gives at the instant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.explain import describe
from tidemill.algebra.expr import Call, Column, Expr, Literal, conjunction
from tidemill.algebra.plan import Union
from tidemill.algebra.tree import share, walk
from tidemill.binder.one_time import Question
from tidemill.catalog.entries import QueryEntry
from tidemill.control.instances import record_of
from tidemill.control.recorded import (
    NotRecordedError,
    Recorded,
    is_recorded,
    recorded_at,
    recorded_reads,
    says_nothing,
)
from tidemill.control.recording import recordings
from tidemill.control.scene import Scene, told
from tidemill.control.tracing import Kept
from tidemill.errors import RunError, suggestion
from tidemill.lang.statements import WhyKind
from tidemill.model.batch import polars_type
from tidemill.model.time import Time
from tidemill.model.types import BOOLEAN
from tidemill.provenance.missing import ENDS_COLUMNS
from tidemill.runtime.one_time import NotKeptError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.binder.why import BoundWhy
    from tidemill.control.asked import Asked
    from tidemill.control.asking import Asking
    from tidemill.control.recorded import Tables
    from tidemill.history.table_view import TableView
    from tidemill.lang.statements import Why as WhyStatement
    from tidemill.model.schema import Schema
    from tidemill.runtime.why import Why

__all__ = ["Explaining", "row_condition"]


@dataclass(frozen=True, slots=True)
class Explaining:
    """What a session has to explain answers with.

    Attributes:
        asking: What it has to answer questions with.
        refused: Gives the rows of a stream that were not taken and are kept, with the reason;
            ``None`` if there are none at hand.
        views: Looks at tables.
    """

    asking: Asking
    refused: Callable[[str], pl.DataFrame | None]
    views: Callable[[list[QueryEntry]], Mapping[str, TableView]]

    def answer(
        self,
        statement: WhyStatement,
        bound: BoundWhy,
        row: Mapping[str, object] | None = None,
        wait: float | None = None,
    ) -> Why:
        """The answer to WHY.

        Args:
            statement: What is asked.
            bound: The same, bound.
            row: Values that columns of the rows have, besides the condition.
            wait: For how many seconds to wait for the instant to be known.

        Raises:
            RunError: The instant is not known, or what is needed is not kept.
        """
        at = None if statement.at is None else Time(statement.at.microseconds)
        if row:
            has_them = row_condition(bound.plan.schema, row)
            bound = replace(bound, condition=conjunction(bound.condition, has_them))

        return self.asking.when_known(lambda: self._answer_now(statement, bound, at), wait)

    def _answer_now(self, statement: WhyStatement, bound: BoundWhy, at: Time | None) -> Why:
        """The answer: from what is kept with the query, or from what its streams have kept."""
        refusal: RunError | None = None
        if statement.kind is not WhyKind.NOT and _can_be_recorded(bound):
            assert isinstance(bound.entry, QueryEntry), "what it is made of is kept with it"
            try:
                tables, time = self._tables(bound.entry, at)
                return told(statement, self._recorded(bound, tables, time), self.refused)
            except NotRecordedError as error:
                refusal = _not_recorded(bound.entry, error)
            except RunError as error:
                refusal = error
        try:
            return told(statement, self._scene(bound, at), self.refused)
        except NotKeptError:
            if refusal is None:
                raise
            raise refusal from None

    def _tables(self, query: QueryEntry, at: Time | None) -> tuple[Tables, Time]:
        """What is kept with a query at an instant.

        Raises:
            RunError: Nothing is.
        """
        record = record_of(query)
        found = [r.table for one in record.instances for r in recordings(query, record, one)]
        return recorded_at(query, at, self.views(found))

    def _recorded(self, bound: BoundWhy, tables: Tables, time: Time) -> Scene:
        """What is asked of, in what is kept with the query."""
        assert isinstance(bound.entry, QueryEntry), "what it is made of is kept with it"
        asked = self.asking.asked(_question(bound.plan))
        plan = share(_plan(asked, bound, time), {})
        source = Recorded(tables, Kept(asked))
        return Scene(asked, source, plan, bound, time, tables.known, tables.batch, {})

    def _scene(self, bound: BoundWhy, at: Time | None) -> Scene:
        """What is asked of, at the boundary that there is now, in what streams have kept."""
        question = _question(bound.plan)
        asked = self.asking.asked(question)
        time = _instant(asked, question, at)
        parts: dict[tuple[object, ...], Plan] = {}
        plan = share(_plan(asked, bound, time), parts)
        ends: dict[int, str] = {}
        if bound.down_to is not None:
            ends[id(share(bound.down_to.plan, parts))] = bound.down_to.name
        known, batch = asked.known(question), asked.past.batch
        return Scene(asked, Kept(asked), plan, bound, time, known, batch, ends)

    def reads(
        self, statement: WhyStatement, bound: BoundWhy
    ) -> tuple[list[str], dict[str, object]]:
        """What would be read to answer, as lines of text and as JSON."""
        at = None if statement.at is None else Time(statement.at.microseconds)
        if (recorded := self._reads_recorded(statement, bound, at)) is not None:
            return recorded
        lines, told = self.asking.reads(_question(bound.plan), at)
        steps = [describe(node) for node in walk(bound.plan) if isinstance(node, ENDS_COLUMNS)][
            ::-1
        ]
        lines.append("computed again with the ids of rows, in this process")
        lines += [f"  and then what made the rows of {step}" for step in steps]
        return lines, {**told, "steps": steps}

    def _reads_recorded(
        self, statement: WhyStatement, bound: BoundWhy, at: Time | None
    ) -> tuple[list[str], dict[str, object]] | None:
        """What would be read of what is kept with the query; ``None`` if it is not read."""
        if statement.kind is WhyKind.NOT or not _can_be_recorded(bound):
            return None
        assert isinstance(bound.entry, QueryEntry), "what it is made of is kept with it"
        try:
            tables, time = self._tables(bound.entry, at)
        except RunError:
            return None
        return recorded_reads(bound.entry, tables, time)


def _can_be_recorded(bound: BoundWhy) -> bool:
    """Whether what is asked may be kept with a query."""
    return (
        isinstance(bound.entry, QueryEntry) and bound.down_to is None and is_recorded(bound.entry)
    )


def _not_recorded(query: QueryEntry, error: NotRecordedError) -> RunError:
    return RunError(
        f'this is not kept with query "{query.name}": {error}',
        hint="WHY and WHY ALL are answered from what is kept WITH PROVENANCE; write KEEP behind its"
        " streams for others",
    )


def row_condition(schema: Schema, row: Mapping[str, object]) -> Expr:
    """That columns have some values; ``None`` is NULL.

    Raises:
        RunError: There is no such column, or it cannot have the value.
    """
    parts: list[Expr] = []
    for name, value in row.items():
        if name not in schema.names:
            hint = suggestion(name, schema.names)
            raise RunError(f'the answer has no column "{name}"', hint=hint)
        type_ = schema[name].type
        try:
            known = pl.Series([value], dtype=polars_type(type_), strict=True).item()
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
            raise RunError(
                f'column "{name}" is {type_}, and cannot be {value!r}',
                hint="give a value of its type",
            ) from error
        same = Column(name, type_), Literal(known, type_)
        parts.append(Call("is_not_distinct", same, BOOLEAN))
    return conjunction(*parts)


def _question(plan: Plan) -> Question:
    """The question that asks for all rows of a plan."""
    return Question(plan, plan.schema.names, (), None, 0, {})


def _instant(asked: Asked, question: Question, at: Time | None) -> Time:
    """The instant that is asked of, which is known.

    Raises:
        RunError: It is not known, or streams do not keep their past.
    """
    asked.require_kept(question)
    time = asked.now(question) if at is None else at
    asked.require_known(question, time)
    return time


def _plan(asked: Asked, bound: BoundWhy, time: Time) -> Plan:
    """What is computed at the instant: of a query that was changed, what its parts compute."""
    if not isinstance(bound.entry, QueryEntry):
        return bound.plan
    plans = asked.plans(bound.entry, time)
    if not plans:
        raise says_nothing(bound.entry, time)
    return reduce(Union, plans)
