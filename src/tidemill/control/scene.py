"""The scene of an explanation: what is asked, of which instant, and where its rows are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import polars as pl

from tidemill.algebra.plan import Relation, Source
from tidemill.binder.times import time_type
from tidemill.errors import RunError
from tidemill.lang.statements import WhyKind
from tidemill.model.batch import END, START, TIME_TYPE, polars_schema, polars_type
from tidemill.model.time import END_OF_TIME, Time, time_text
from tidemill.model.types import BIGINT
from tidemill.provenance.changes import CHANGE, change_of, trace_change
from tidemill.provenance.computing import asked_of
from tidemill.provenance.lines import field_name, flattened, stepwise
from tidemill.provenance.missing import missing
from tidemill.provenance.missing_lines import missing_lines, refused_rows
from tidemill.provenance.trace import COPIES, NODE, Trace, trace
from tidemill.runtime.why import Why

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.binder.why import BoundWhy
    from tidemill.control.asked import Asked
    from tidemill.control.recorded import Recorded
    from tidemill.control.tracing import Kept
    from tidemill.lang.statements import Why as WhyStatement
    from tidemill.model.schema import Schema
    from tidemill.model.types import DataType
    from tidemill.provenance.leaves import Ends

__all__ = ["Scene", "told"]


@dataclass(frozen=True, slots=True)
class Scene:
    """What is asked, of which instant, and what is kept.

    Attributes:
        asked: What is known.
        kept: Where rows are found: in what streams have kept, or in what is kept with the query.
        plan: What is computed at the instant.
        bound: What is asked.
        at: The instant.
        known: Up to when all is known.
        batch: The last batch that counts; ``None`` if none does.
        ends: Nodes of the plan whose rows are not explained further.
    """

    asked: Asked
    kept: Kept | Recorded
    plan: Plan
    bound: BoundWhy
    at: Time
    known: Time
    batch: int | None
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
        since = {name: kept.since for name, kept in self.asked.past.streams.items()}
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
        times = time_type(self.plan, self.asked.catalog)
        streams = _streams(read, lines)
        shown = _typed(lines, times), _typed(answers, times)
        return Why(*shown, self.at, self.known, self.batch, streams)


def told(
    statement: WhyStatement, scene: Scene, refused: Callable[[str], pl.DataFrame | None]
) -> Why:
    """The answer to WHY."""
    match statement.kind:
        case WhyKind.ROWS:
            return scene.rows(flat=statement.flat)
        case WhyKind.CHANGE:
            return scene.change()
        case WhyKind.NOT:
            return scene.missing(refused)
        case _:
            assert_never(statement.kind)


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
    there = dict(lines["row"].struct.schema)
    return {
        called: {
            name: field_name(there, called, name, type_)
            for name, type_ in polars_schema(schema).items()
        }
        for called, schema in read
    }
