"""Ingest: from the rows a source delivers to elements with time, id and progress.

Two steps, since only the first can be taken where rows come in. ``timed`` gives each row its time
and its id, and sorts out rows without a valid time. A ``Gate`` knows how far the stream has come:
its watermark is the greatest time seen so far less the disorder that the source declares, and a row
that starts before it is late. Rows that are sorted out are counted and dropped or, if the stream
says so, kept with the reason; they never stop or change anything else. What is no row of the stream
at all, because a value is none of its column's type, is malformed; it stops the run if the stream
does not say otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.tree import streams_of
from tidemill.engine.engine import Flow
from tidemill.errors import RunError
from tidemill.lang.statements import LatePolicy, MalformedPolicy
from tidemill.model.batch import END, ID, START, TIME_TYPE, polars_schema
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.state.strings import compact_strings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.entries import RelationEntry, StreamEntry
    from tidemill.model.batch import Batch

__all__ = [
    "FILE",
    "LATE",
    "LINE",
    "MALFORMED",
    "PROBLEM",
    "REASON",
    "TEXT",
    "Gate",
    "Malformed",
    "Reached",
    "Refused",
    "check_keys",
    "file_id",
    "file_number",
    "latest_row",
    "place_in_file",
    "readable",
    "relation_flow",
    "timed",
]

REASON = "@reason"
LATE, MALFORMED = "late", "malformed"

FILE, LINE, PROBLEM, TEXT = "@file", "@line", "@problem", "@text"
_PLACE = {FILE: pl.String(), LINE: pl.Int64(), PROBLEM: pl.String(), TEXT: pl.String()}
"""Where a malformed row stands, what is wrong with it, and how it is written."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Rows that do not have the types of the schema.

    Attributes:
        rows: The columns of the schema, NULL where they could not be read, and FILE, LINE, PROBLEM
            and TEXT.
        where: What they were read from, for errors.
        unit: What LINE counts there.
    """

    rows: pl.DataFrame
    where: str
    unit: str = "line"

    def error(self) -> RunError:
        """The error about the first of them."""
        line, problem = self.rows.row(0, named=True)[LINE], self.rows[PROBLEM][0]
        place = f"a {self.unit}" if line is None else f"{self.unit} {line}"
        return RunError(
            f"{place} of {self.where} is malformed: {problem}",
            hint="fix it; a stream may be declared with MALFORMED QUARANTINE or MALFORMED DROP",
        )


@dataclass(slots=True)
class Refused:
    """The rows of a stream that were not taken.

    Attributes:
        stream: Whose rows they are.
        counts: How many, by reason.
        rows: The rows with the reason, if the stream keeps them.
        removed: How many rows that were kept have been removed to make room.
    """

    stream: StreamEntry
    counts: dict[str, int] = field(default_factory=dict)
    rows: list[pl.DataFrame] = field(default_factory=list)
    removed: int = 0

    def add(self, bad: pl.DataFrame) -> None:
        """Count rows with their reason, and keep them if the stream says so."""
        for reason, count in bad[REASON].value_counts().iter_rows():
            self.count(reason, count)
        if self.stream.late is LatePolicy.QUARANTINE and not bad.is_empty():
            self.keep(bad.select(*self.stream.schema.names, REASON))

    def add_malformed(self, found: Malformed) -> None:
        """Do with malformed rows what the stream says.

        Raises:
            RunError: It says that they are an error.
        """
        if self.stream.malformed is MalformedPolicy.FAIL:
            raise found.error()
        self.count(MALFORMED, found.rows.height)
        if self.stream.malformed is MalformedPolicy.QUARANTINE:
            self.keep(found.rows.with_columns(pl.lit(MALFORMED).alias(REASON)))

    def count(self, reason: str, rows: int) -> None:
        """Count rows that are not at hand."""
        if rows:
            self.counts[reason] = self.counts.get(reason, 0) + rows

    def held(self) -> pl.DataFrame:
        """The rows that were kept, with the reason in ``REASON``."""
        return pl.concat([pl.DataFrame(schema=self._types()), *self.rows])

    def kept(self) -> pl.DataFrame:
        """The rows that were kept, with the column ``reason``; with marks if there is such one."""
        taken = {name.lower() for name in self.stream.schema.names}
        names = {}
        for column in list(self._types())[len(self.stream.schema) :]:
            name = column.removeprefix("@")
            while name in taken:
                name = f"{name}_"
            names[column] = name
        return self.held().rename(names)

    def keep(self, bad: pl.DataFrame) -> None:
        """Keep rows with their reason; what they do not say is NULL."""
        missing = [pl.lit(None, t).alias(n) for n, t in self._types().items() if n not in bad]
        self.rows.append(compact_strings(bad.with_columns(missing).select(*self._types())))

    def _types(self) -> dict[str, pl.DataType]:
        """The columns of rows that are kept; where they stand is known of malformed ones."""
        place = _PLACE if self.stream.malformed is MalformedPolicy.QUARANTINE else {}
        return {**polars_schema(self.stream.schema), REASON: pl.String(), **place}


_ROW_BITS = 25


def file_id(file: int, rows: int) -> int:
    """The id of a row: those of later files, and of later rows of a file, are greater.

    Args:
        file: The number of the file.
        rows: How many rows of it come before.

    >>> file_id(2, 0) > file_id(1, 7)
    True

    Raises:
        RunError: There are more rows than ids.
    """
    if rows >> _ROW_BITS:
        raise RunError(f"a file has more than {1 << _ROW_BITS:,} rows", hint="write smaller files")
    return file << _ROW_BITS | rows


def file_number(row_id: int) -> int:
    """The number of the file that a row with an id stands in.

    >>> file_number(file_id(7, 3))
    7
    """
    return row_id >> _ROW_BITS


def place_in_file(row_id: int) -> int:
    """How many rows of its file come before a row with an id.

    >>> place_in_file(file_id(7, 3))
    3
    """
    return row_id & ((1 << _ROW_BITS) - 1)


def readable(stream: StreamEntry) -> Schema:
    """The columns that rows are read with: whether the time may be NULL is judged by ``timed``."""
    fields = (
        Field(f.name, f.type, f.nullable or f.name == stream.time_column) for f in stream.schema
    )
    return Schema(tuple(fields))


def timed(
    stream: StreamEntry,
    frame: pl.DataFrame,
    *,
    first_id: int | None,
    arrival: Time,
    refused: Refused,
) -> Batch:
    """The rows as elements, each with its time and id, without those that have no valid time.

    Args:
        stream: Whose rows they are.
        frame: The rows, with the columns and types of the stream.
        first_id: The id of the first row; the others follow. ``None`` if no operator needs ids.
        arrival: The time of the batch, which orders streams without a time column.
        refused: Where rows without a valid time go.
    """
    column = stream.time_column
    start = (
        pl.repeat(arrival, frame.height, dtype=TIME_TYPE, eager=True)
        if column is None
        else frame[column].cast(TIME_TYPE)
    )
    # Column by column: for a small frame, one call of the query engine takes ten times as long.
    elements = frame.hstack([start.alias(START), (start + 1).alias(END)])
    if first_id is not None:
        ids = pl.int_range(first_id, first_id + frame.height, dtype=TIME_TYPE, eager=True)
        elements = elements.hstack([ids.alias(ID)])
    if not _all_valid(start):
        reason = (
            pl.when(pl.col(START).is_null())
            .then(pl.lit("time is NULL"))
            .when(pl.col(START) < 0)
            .then(pl.lit("time is before 1970"))
            .when(pl.col(START) >= END_OF_TIME)
            .then(pl.lit("time is after the end of time"))
        )
        judged = elements.with_columns(reason.alias(REASON))
        refused.add(judged.filter(pl.col(REASON).is_not_null()))
        elements = judged.filter(pl.col(REASON).is_null()).drop(REASON)
    return elements


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a stream has come, as it is kept: all that a gate goes on from.

    Attributes:
        watermark: No element that starts before it is taken any more.
        rows: How many rows were delivered.
        latest: The greatest time of a row that was taken, in batches that are over.
        within: The greatest time in the batch that is being read; ``None`` between two of them.
    """

    watermark: int = 0
    rows: int = 0
    latest: int | None = None
    within: int | None = None


@dataclass(slots=True)
class Gate:
    """The progress of one stream.

    Attributes:
        stream: What is read.
        has_ids: Whether elements get ids.
        watermark: No element that starts before it is taken any more.
        rows: How many rows were delivered.
        latest: The greatest time of a row that was taken.
        earliest: The least time of a row that was taken since this gate is here, as far as rows are
            at hand; otherwise the greatest of the first batch.
        rows_before: How many rows were delivered before it was here.
        refused: The rows that were not taken.
    """

    stream: StreamEntry
    has_ids: bool = True
    watermark: Time = field(default=Time(0))
    rows: int = 0
    latest: Time | None = None
    earliest: Time | None = None
    rows_before: int = 0
    refused: Refused = field(init=False)
    _latest: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.refused = Refused(self.stream)

    def take(self, frame: pl.DataFrame, arrival: Time) -> Flow:
        """The elements of a batch, and how far time has come; ids count the rows."""
        admitted = self.take_piece(frame, arrival, self.rows)
        self.end_batch()
        return Flow([admitted], self.watermark)

    def take_piece(self, frame: pl.DataFrame, arrival: Time, first_id: int) -> Batch:
        """The elements of some rows of a batch, as if they had come with all others of it."""
        elements = timed(
            self.stream,
            frame,
            first_id=first_id if self.has_ids or self.stream.keep is not None else None,
            arrival=arrival,
            refused=self.refused,
        )
        self.rows += frame.height
        admitted = self.admit(elements)
        latest = admitted[START].max()
        assert latest is None or isinstance(latest, int), "times are integers"
        self._latest = latest if self._latest is None else max(self._latest, latest or 0)
        return admitted

    def end_batch(self) -> None:
        """All rows of the batch have been delivered: time has come as far as the latest of them."""
        self.advance(self._latest)
        self._latest = None

    def admit(self, elements: Batch) -> Batch:
        """The elements that are not late."""
        least = elements[START].min()
        assert least is None or isinstance(least, int), "times are integers"
        if least is None or least >= self.watermark:
            self._begin(least)
            return elements
        late = elements.filter(pl.col(START) < self.watermark)
        self.refused.add(late.with_columns(pl.lit(LATE).alias(REASON)))
        return elements.filter(pl.col(START) >= self.watermark)

    def advance(self, latest: int | None) -> None:
        """An element of this time has been seen."""
        if latest is not None:
            if self.earliest is None:
                self._begin(latest)
            self.latest = Time(max(latest, self.latest or 0))
            self.watermark = max(self.watermark, Time(latest - self.stream.within))

    def _begin(self, time: int | None) -> None:
        """An element of this time has come."""
        if time is not None:
            self.earliest = Time(time if self.earliest is None else min(time, self.earliest))

    @property
    def newest(self) -> Time | None:
        """The greatest time of a row that was taken, be its batch over or not."""
        times = [time for time in (self.latest, self._latest) if time is not None]
        return Time(max(times)) if times else None

    def reached(self) -> Reached:
        """How far it has come."""
        return Reached(self.watermark, self.rows, self.latest, self._latest)

    def go_on(self, reached: Reached) -> None:
        """Go on from where another gate of the stream was."""
        self.watermark, self.rows = Time(reached.watermark), reached.rows
        self.rows_before = reached.rows
        self.latest = None if reached.latest is None else Time(reached.latest)
        self._latest = reached.within

    def finish(self) -> Flow:
        """The end of the stream."""
        self.watermark = END_OF_TIME
        return Flow([], END_OF_TIME)


def latest_row(plan: Plan, gates: Mapping[str, Gate]) -> Time | None:
    """The time of the latest row that a query has read, given what came on each stream."""
    found = (gates[name].latest for name in streams_of(plan) if name in gates)
    return max((time for time in found if time is not None), default=None)


def _all_valid(starts: pl.Series) -> bool:
    """Whether every row has a valid time, which is the rule."""
    least, latest = starts.min(), starts.max()
    assert least is None or isinstance(least, int), "times are integers"
    assert latest is None or isinstance(latest, int), "times are integers"
    return (
        not starts.has_nulls()
        and (least is None or least >= 0)
        and (latest is None or latest < END_OF_TIME)
    )


def relation_flow(relation: RelationEntry, frame: pl.DataFrame, *, has_ids: bool = False) -> Flow:
    """The rows of a relation, valid always or in the periods their columns say; all at once.

    Args:
        relation: The relation.
        frame: Its rows.
        has_ids: Whether elements get ids, which are their places among those that are valid.
    """
    validity = relation.validity
    start = pl.lit(0, dtype=TIME_TYPE)
    end = pl.lit(END_OF_TIME, dtype=TIME_TYPE)
    if validity is not None:
        start = pl.max_horizontal(pl.col(validity.start).cast(TIME_TYPE).fill_null(0), start)
        if validity.end is not None:
            end = pl.col(validity.end).cast(TIME_TYPE).fill_null(END_OF_TIME)
    elements = frame.select(relation.schema.names).with_columns(start.alias(START), end.alias(END))
    valid = elements.filter(pl.col(START) < pl.col(END))
    if has_ids:
        ids = pl.int_range(valid.height, dtype=TIME_TYPE, eager=True)
        valid = valid.hstack([ids.alias(ID)])
    return Flow([valid], END_OF_TIME)


def check_keys(relation: RelationEntry, frame: pl.DataFrame) -> None:
    """Refuse rows that use a key again for something else (G-16).

    A result of the old row could be taken for one of the new row. The same content may come again.

    Raises:
        RunError: There are such rows.
    """
    if not relation.key or relation.validity is None:
        return
    periods = (relation.validity.start, relation.validity.end)
    contents = frame.select(
        n for n in relation.schema.names if n not in periods or n in relation.key
    )
    again = contents.unique().group_by(relation.key).len().filter(pl.col.len > 1)
    if again.is_empty():
        return
    least = again.sort(relation.key).row(0, named=True)
    key = ", ".join(f"{name} = {least[name]!r}" for name in relation.key)
    raise RunError(
        "a key may not be used again in a non-retroactive relation: "
        f'"{relation.name}" has different rows for {key}',
        hint="give the new row a key of its own, or leave KEY out of the declaration",
    )
