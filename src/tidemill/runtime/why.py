"""The answer to WHY, as people hold it: a frame, a tree for the terminal, and JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError, suggestion
from tidemill.model.time import END_OF_TIME, time_text
from tidemill.provenance.encode import Encoded, Encoding, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.model.time import Time

__all__ = ["Why"]

_SHOWN = 8
"""So many rows of one kind are shown in a tree; of the others it is said how many there are."""


@dataclass(frozen=True, slots=True, repr=False)
class Why:
    """Why rows are there, have come or gone, or are not there.

    Attributes:
        frame: A line for each row that explains another one, or the rows of streams only; see the
            page of WHY for its columns.
        answers: The rows of the answer that are explained: their number (``answer``), the row as a
            struct (``row``), how often it is there (``copies``), and from when to when that is so.
        at: The instant, in microseconds since 1970.
        known: Up to when all that was read was known.
        batch: The last batch that counted; ``None`` if none did.
        streams: The columns of each stream and relation that has rows in the frame, and what they
            are called in its structs.
    """

    frame: pl.DataFrame
    answers: pl.DataFrame
    at: Time
    known: Time
    batch: int | None
    streams: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def rows(self, stream: str) -> pl.DataFrame:
        """The rows of one stream or relation in their own columns, each once.

        Behind them stands its id. Rows of a derived stream have none, nor have rows that were not
        taken.

        Raises:
            RunError: The stream is none of those that were read.
        """
        if stream not in self.streams:
            hint = suggestion(stream, self.streams, what="streams that have rows here")
            raise RunError(f'"{stream}" has no rows here', hint=hint)
        names = self.streams[stream]
        told = self.frame.filter(pl.col("stream") == stream, pl.col("row").is_not_null())
        columns = [pl.col("row").struct.field(new).alias(old) for old, new in names.items()]
        id_ = "id"
        while id_ in names:
            id_ = f"{id_}_"
        once = told.select(*columns, pl.col("id").alias(id_)).unique(maintain_order=True)
        return once.sort(id_, maintain_order=True)

    def sets(self) -> pl.DataFrame:
        """The rows of the answer, each with the set of rows that it was made of.

        Beside the columns of the answer stands ``provenance``: a list of ``stream`` and ``id``, in
        the order of these. A row that is there several times is told as often. Rows that operators
        have made, as WHY tells them step by step, are in no set.
        """
        found = self.frame.filter(pl.col("stream").is_not_null(), pl.col("id").is_not_null())
        origins = found.select("answer", pl.struct("stream", "id").alias("provenance")).unique()
        fields = pl.col("provenance").struct
        ordered = origins.sort("answer", fields.field("stream"), fields.field("id"))
        sets = ordered.group_by("answer", maintain_order=True).agg("provenance")
        told = self.answers.join(sets, on="answer", how="left", maintain_order="left")
        name = "provenance"
        while name in told.schema["row"].to_schema():  # type: ignore[attr-defined] # it is a struct
            name = f"{name}_"
        often = told.select(pl.exclude("copies").repeat_by("copies").explode())
        sets_ = pl.col("provenance").fill_null([]).alias(name)
        return often.select(pl.col("row").struct.unnest(), sets_)

    def expand(self) -> pl.DataFrame:
        """The rows of ``sets``, one for each row that they were made of, with its stream and id."""
        found = self.sets()
        name = found.columns[-1]
        return found.explode(name, empty_as_null=False, keep_nulls=False).unnest(name)

    def encoded(self, encoding: Encoding = Encoding.ADAPTIVE) -> dict[str, Encoded]:
        """The ids of ``sets``, by stream, as ``provenance/encode.py`` stores them.

        ``decode`` gives back a list of ids for each row of the answer, in the order of ``answers``.
        """
        origins = self.frame.filter(pl.col("stream").is_not_null(), pl.col("id").is_not_null())
        found: dict[str, Encoded] = {}
        for stream in sorted(origins["stream"].unique()):
            mine = origins.filter(pl.col("stream") == stream).select("answer", "id").unique()
            ids = mine.sort("answer", "id").group_by("answer", maintain_order=True).agg("id")
            told = self.answers.select("answer").join(
                ids, on="answer", how="left", maintain_order="left"
            )
            found[stream] = encode(told["id"].fill_null([]), encoding)
        return found

    def tree(self, rows: int = _SHOWN) -> str:
        """What explains what, as a text.

        Args:
            rows: How many rows of one kind are shown below a row.
        """
        if "reason" in self.frame.columns:
            return "\n".join(["no such row", *_reasons(self.frame, rows)])
        lines = []
        below = _by_parent(self.frame)
        for answer in self.answers.iter_rows(named=True):
            times = f" ({answer['copies']} times)" if answer["copies"] > 1 else ""
            row = _row_text(answer["row"], nulls=True)
            lines.append(f"{row}{times}{_span_text(answer)}{_mark(answer)}")
            lines += _branches(below, answer["answer"], None, "", rows)
        return "\n".join(lines) or "no row of the answer"

    def json(self) -> str:
        """All of it, for programs."""
        told = {
            "at": self.at,
            "known": self.known,
            "batch": self.batch,
            "answers": json.loads(self.answers.write_json()),
            "lines": json.loads(self.frame.write_json()),
        }
        return json.dumps(told, indent=2)

    def __repr__(self) -> str:
        batch = "" if self.batch is None else f", after batch {self.batch}"
        return f"Why at {time_text(self.at)}{batch}\n{self.tree()}"


def _by_parent(
    frame: pl.DataFrame,
) -> dict[tuple[int, int | None], list[dict[str, object]]]:
    """The lines of a frame by what they explain."""
    found: dict[tuple[int, int | None], list[dict[str, object]]] = {}
    for line in frame.iter_rows(named=True):
        found.setdefault((line["answer"], line.get("of")), []).append(line)
    return found


def _branches(
    below: Mapping[tuple[int, int | None], list[dict[str, object]]],
    answer: int,
    of: int | None,
    before: str,
    most: int,
) -> Iterator[str]:
    kinds: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for line in below.get((answer, of), ()):
        via = line["via"]
        assert isinstance(via, list), "it has the operators"
        kinds.setdefault((*via, line["stream"], line.get("operator")), []).append(line)
    groups = list(kinds.items())
    for place, ((*via, _stream, _operator), lines) in enumerate(groups):
        is_last = place == len(groups) - 1
        yield f"{before}{'└' if is_last else '├'}─ {' · '.join(map(str, via)) or 'directly'}"
        inner = f"{before}{'   ' if is_last else '│  '}"
        shown = lines[:most]
        for number, line in enumerate(shown):
            ends = number == len(shown) - 1 and len(lines) == len(shown)
            yield f"{inner}{'└' if ends else '├'}─ {_line_text(line)}"
            node = line.get("node")
            if isinstance(node, int):
                deeper = f"{inner}{'   ' if ends else '│  '}"
                yield from _branches(below, answer, node, deeper, most)
        if len(lines) > len(shown):
            yield f"{inner}└─ and {len(lines) - len(shown):,} more"


def _reasons(frame: pl.DataFrame, most: int) -> Iterator[str]:
    """Where candidates have ended, and these below it."""
    found: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for line in frame.iter_rows(named=True):
        found.setdefault((line["operator"], line["reason"], line["stream"]), []).append(line)
    for place, ((operator, reason, stream), lines) in enumerate(found.items()):
        is_last = place == len(found) - 1
        where = f"{operator}: " if operator else f"{stream}: "
        yield f"{'└' if is_last else '├'}─ {where}{reason}"
        inner = "   " if is_last else "│  "
        # A row of a stream that is read twice may have ended at one operator in two ways.
        there = list(dict.fromkeys(_line_text(line) for line in lines if line["row"] is not None))
        for number, text in enumerate(there[:most]):
            ends = number == len(there) - 1
            yield f"{inner}{'└' if ends else '├'}─ {text}"
        if len(there) > most:
            yield f"{inner}└─ and {len(there) - most:,} more"


def _line_text(line: Mapping[str, object]) -> str:
    row = line["row"]
    assert isinstance(row, dict), "a row is a struct"
    number = "" if line["id"] is None else f" {line['id']}"
    what = f"{line['stream']}{number}" if line["stream"] else "a row"
    # What was not taken is there at no time.
    return f"{what}  {_row_text(row)}{_span_text(line)}{_mark(line)}"


def _mark(line: Mapping[str, object]) -> str:
    """Whether a row came or went, if that is what is asked."""
    return f"  {line['change']}" if line.get("change") else ""


def _row_text(row: Mapping[str, object], *, nulls: bool = False) -> str:
    """The values of a row; a line has the columns of all streams, so most of it may be NULL."""
    shown = {name: "NULL" if value is None else value for name, value in row.items()}
    return ", ".join(f"{n}={v}" for n, v in shown.items() if nulls or row[n] is not None)


def _span_text(line: Mapping[str, object]) -> str:
    """From when to when a row is there, as far as that is known."""
    start, end = line["start"], line["end"]
    if _is_instant(start, end):
        return f"  at {_time_text(start)}"
    known = "" if start is None else f"  from {_time_text(start)}"
    if end is None and start is not None:
        return f"{known} on"
    if start is None and end is not None:
        return f"  until {_time_text(end)}"
    return known if end is None else f"{known} to {_time_text(end)}"


def _is_instant(start: object, end: object) -> bool:
    """Whether what is there from a start to an end is there at one instant only."""
    if isinstance(start, datetime) and isinstance(end, datetime):
        return end - start == timedelta(microseconds=1)
    return isinstance(start, int) and isinstance(end, int) and end - start == 1


def _time_text(time: object) -> str:
    if time == END_OF_TIME:
        return "the end"
    return time_text(time) if isinstance(time, int) else str(time)
