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
from typing import TYPE_CHECKING, assert_never

import polars as pl

from tidemill.algebra.explain import describe
from tidemill.algebra.expr import Call, Column, Expr, Literal, conjunction
from tidemill.algebra.plan import Relation, Source, Union
from tidemill.algebra.tree import share, walk
from tidemill.binder.one_time import Question
from tidemill.binder.times import time_type
from tidemill.catalog.entries import QueryEntry
from tidemill.control.tracing import Kept
from tidemill.errors import RunError, suggestion
from tidemill.lang.statements import WhyKind
from tidemill.model.batch import END, START, TIME_TYPE, polars_type
from tidemill.model.time import END_OF_TIME, Time, time_text
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.provenance.changes import CHANGE, change_of, trace_change
from tidemill.provenance.lines import flattened, stepwise
from tidemill.provenance.missing import ENDS_COLUMNS, missing
from tidemill.provenance.missing_lines import missing_lines, refused_rows
from tidemill.provenance.trace import COPIES, NODE, Trace, asked_of, trace
from tidemill.runtime.why import Why

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.binder.why import BoundWhy
    from tidemill.control.asked import Asked
    from tidemill.control.asking import Asking
    from tidemill.lang.statements import Why as WhyStatement
    from tidemill.model.schema import Schema
    from tidemill.model.types import DataType
    from tidemill.provenance.annotate import Ends

__all__ = ["Explaining", "row_condition"]


@dataclass(frozen=True, slots=True)
class Explaining:
    """What a session has to explain answers with.

    Attributes:
        asking: What it has to answer questions with.
        refused: Gives the rows of a stream that were not taken and are kept, with the reason;
            ``None`` if there are none at hand.
    """

    asking: Asking
    refused: Callable[[str], pl.DataFrame | None]

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

        def once() -> Why:
            scene = self._scene(bound, at)
            match statement.kind:
                case WhyKind.ROWS:
                    return scene.rows(flat=statement.flat)
                case WhyKind.CHANGE:
                    return scene.change()
                case WhyKind.NOT:
                    return scene.missing(self.refused)
                case _:
                    assert_never(statement.kind)

        return self.asking.when_known(once, wait)

    def _scene(self, bound: BoundWhy, at: Time | None) -> _Scene:
        """What is asked of, at the boundary that there is now."""
        question = _question(bound.plan)
        asked = self.asking.asked(question)
        time = _instant(asked, question, at)
        parts: dict[tuple[object, ...], Plan] = {}
        plan = share(_plan(asked, bound, time), parts)
        ends: dict[int, str] = {}
        if bound.down_to is not None:
            ends[id(share(bound.down_to.plan, parts))] = bound.down_to.name
        return _Scene(Kept(asked), plan, bound, time, asked.known(question), ends)

    def reads(
        self, statement: WhyStatement, bound: BoundWhy
    ) -> tuple[list[str], dict[str, object]]:
        """What would be read to answer, as lines of text and as JSON."""
        at = None if statement.at is None else Time(statement.at.microseconds)
        lines, told = self.asking.reads(_question(bound.plan), at)
        steps = [describe(node) for node in walk(bound.plan) if isinstance(node, ENDS_COLUMNS)][
            ::-1
        ]
        lines.append("computed again with the ids of rows, in this process")
        lines += [f"  and then what made the rows of {step}" for step in steps]
        return lines, {**told, "steps": steps}


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is asked, of which instant, and what is kept."""

    kept: Kept
    plan: Plan
    bound: BoundWhy
    at: Time
    known: Time
    ends: Ends

    def rows(self, *, flat: bool) -> Why:
        """Why rows are there."""
        ends = self.ends
        found = trace(self.plan, self.bound.condition, self.at, self.kept.elements, ends)
        rows = self.kept.rows_of
        lines = flattened(found, rows, ends) if flat else stepwise(found, rows, ends)
        return self._why(lines, _answers(found, self.plan), self._read(found))

    def change(self) -> Why:
        """Why rows came or went."""
        ends = self.ends
        condition, compute = self.bound.condition, self.kept.elements
        found = trace_change(self.plan, condition, self.at, compute, ends)
        lines = stepwise(found, self.kept.rows_of, ends)
        moved = change_of(self.at, "start", "end").alias("change")
        answers = _answers(found, self.plan, pl.col(CHANGE).alias("change"))
        return self._why(lines.with_columns(moved), answers, self._read(found))

    def missing(self, refused: Callable[[str], pl.DataFrame | None]) -> Why:
        """Why rows are not there.

        Raises:
            RunError: There are such rows.
        """
        compute, condition = self.kept.elements, self.bound.condition
        there = compute(asked_of(self.plan, condition), self.at, self.at, {})
        if there.height:
            rows = "a row meets" if there.height == 1 else f"{there.height:,} rows meet"
            raise RunError(
                f"WHY NOT asks about rows that are not there, and at {time_text(self.at)} {rows}"
                " the condition",
                hint="write WHY, which says what they were made of",
            )
        since = {name: kept.since for name, kept in self.kept.asked.past.streams.items()}
        found = missing(self.plan, condition, self.at, compute, since)
        lines = missing_lines(found, refused_rows(found, refused, compute))
        leaves = [(one.path.leaf.name, one.path.leaf.schema) for one in found]
        return self._why(lines, numbered_rows(self.plan), leaves)

    def _read(self, found: Trace) -> list[tuple[str, Schema]]:
        """The streams, relations and derived streams that rows were found of, with columns."""
        told: list[tuple[str, Schema]] = []
        for one in found.found:
            plan = one.leaf.plan
            assert isinstance(plan, Source | Relation), "it has ids"
            told.append((plan.name, plan.schema))
        made = [one.leaf.plan for one in found.made]
        return told + [(self.ends[id(p)], p.schema) for p in made if id(p) in self.ends]

    def _why(
        self, lines: pl.DataFrame, answers: pl.DataFrame, read: Sequence[tuple[str, Schema]]
    ) -> Why:
        times = time_type(self.plan, self.kept.asked.catalog)
        batch = self.kept.asked.past.batch
        streams = _streams(read, lines)
        shown = _typed(lines, times), _typed(answers, times)
        return Why(*shown, self.at, self.known, batch, streams)


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
        raise RunError(
            f'query "{bound.entry.name}" answers nothing at {time_text(time)}: it was stopped',
            hint="ask for an instant at which it runs; SHOW QUERIES says what has become of it",
        )
    return reduce(Union, plans)


def _answers(found: Trace, plan: Plan, *more: pl.Expr) -> pl.DataFrame:
    return found.answers.select(
        pl.col(NODE).alias("answer"),
        *more,
        pl.struct(plan.schema.names).alias("row"),
        pl.col(COPIES).alias("copies"),
        pl.col(START).alias("start"),
        pl.col(END).alias("end"),
    )


def numbered_rows(plan: Plan) -> pl.DataFrame:
    """No rows of an answer."""
    row = pl.Struct({one.name: polars_type(one.type) for one in plan.schema})
    types = {"answer": TIME_TYPE, "row": row, "copies": TIME_TYPE}
    return pl.DataFrame(schema={**types, "start": TIME_TYPE, "end": TIME_TYPE})


def _typed(frame: pl.DataFrame, time: DataType) -> pl.DataFrame:
    """The same with times of the type that the readers of the answer have."""
    if time == BIGINT:
        return frame
    times = pl.col("start", "end")
    return frame.with_columns(pl.when(times < END_OF_TIME).then(times).cast(polars_type(time)))


def _streams(read: Sequence[tuple[str, Schema]], lines: pl.DataFrame) -> dict[str, dict[str, str]]:
    """The columns of each stream with rows in the lines, and what structs call them."""
    fields = lines.schema["row"]
    assert isinstance(fields, pl.Struct), "a row is a struct"
    there = {one.name for one in fields.fields}
    return {
        called: {name: name if name in there else f"{called}.{name}" for name in schema.names}
        for called, schema in read
    }
