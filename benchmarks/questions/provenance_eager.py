"""What it costs to keep what rows are made of while a query runs (WITH PROVENANCE), on this engine.

A stream of two rows an instant, in files of 100,000, is read by a sum by key, with a checkpoint.
Each row is kept once, with its values, its id and from when to when it is in a window; sets of ids
beside each row of the answer, which Ariadne has, hold it once for each window that it is in. They
are made from the same stream, for a few keys, and stored as ``provenance/encode.py`` does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import tidemill
from benchmarks.harness.measure import Timing, measured
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.techniques.shapes import Shape, listed, table_of
from tidemill.provenance.encode import Encoding, encode, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from benchmarks.harness.question import Context

KEYS, PER_INSTANT, RANGE = 1_000, 2, 10_000
OVERLAPS = (1, 10, 100)
SELECTIVITIES = (0.05, 0.25, 0.5, 0.75, 1.0)
WINDOWS = (1_000, 10_000, 100_000)
FILE_ROWS = 100_000
SAMPLE = 5
"""Of so many keys sets are made."""

OFF, ON, LAZY = "nothing kept", "with provenance", "stream keeps all"
_SUM = "SELECT k, SUM(v) AS total FROM s [RANGE {range} SLIDE {slide}]{where} GROUP BY k"
_CHAIN = f"SELECT MAX(total) AS most FROM ({_SUM})"
_MOST_EXTRA = 0.5
_TARGET = 0.7


@dataclass(frozen=True, slots=True)
class Setting:
    """What is asked of the stream."""

    range: int = RANGE
    overlap: int = 10
    passing: float = 1.0
    text: str = _SUM

    @property
    def slide(self) -> int:
        """How far the window moves at once."""
        return self.range // self.overlap

    @property
    def query(self) -> str:
        """The query."""
        where = f" WHERE p < {round(1000 * self.passing)}" if self.passing < 1 else ""
        return self.text.format(range=self.range, slide=self.slide, where=where)


@dataclass(frozen=True, slots=True)
class Found:
    """What one setting gave.

    Attributes:
        rows: How many came.
        timings: Of each side.
        bytes: What is kept for each row that comes in, of the two sides that keep something.
        sets: What sets would take for each row that comes in, by encoding.
    """

    rows: int
    timings: Mapping[str, Timing]
    bytes: Mapping[str, float]
    sets: Mapping[Encoding, float]

    def ratio(self, side: str) -> float:
        """The throughput as a part of that of the query alone."""
        return self.timings[OFF].best / self.timings[side].best


def _rows(context: Context) -> pl.DataFrame:
    count = 4_000_000 if context.full else 600_000
    random = np.random.default_rng(context.seed)
    return pl.DataFrame(
        {
            "k": random.integers(0, KEYS, count),
            "v": random.integers(0, 100, count),
            "p": random.integers(0, 1_000, count),
            "at": np.arange(count) // PER_INSTANT,
        }
    )


def _write(directory: Path, rows: pl.DataFrame) -> None:
    directory.mkdir()
    for number, part in enumerate(rows.iter_slices(FILE_ROWS)):
        path = directory / f"{number:04d}.parquet"
        part.write_parquet(path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))


@dataclass(slots=True)
class _Runs:
    """Runs of one setting, each in a checkpoint of its own."""

    context: Context
    source: Path
    setting: Setting
    number: int = 0

    def run(self, side: str) -> Callable[[], tuple[int, int]]:
        """Read everything; what the answer is, is asked afterwards."""
        self.number += 1
        keep, recorded = "KEEP ALL" * (side == LAZY), "WITH PROVENANCE KEEP ALL" * (side == ON)
        session = tidemill.connect(checkpoint=self._state(side))
        session.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, p BIGINT, at BIGINT)"
            f" SOURCE parquet('{self.source}') ORDERED BY at {keep}"
        )
        query = session.query(f"CREATE QUERY q {recorded} AS {self.setting.query}")
        session.run()

        def answer() -> tuple[int, int]:
            changes = query.changes()
            return changes.height, changes.select((pl.nth(-3) * pl.col("sign")).sum()).item()

        return answer

    def _state(self, side: str) -> Path:
        words = (self.setting.range, self.setting.overlap, self.setting.passing, self.number)
        name = "-".join(map(str, words)) + f"-{side.replace(' ', '-')}"
        return self.context.folder / f"{name}{'-chain' * (self.setting.text is not _SUM)}"

    def kept(self, side: str) -> int:
        """How many bytes the last run of a side has kept."""
        place = {ON: "provenance", LAZY: "kept"}[side]
        last = max(self.context.folder.glob(f"*-{side.replace(' ', '-')}*"), key=os.path.getmtime)
        return sum(file.stat().st_size for file in (last / place).rglob("*") if file.is_file())


def look(context: Context, source: Path, rows: pl.DataFrame, setting: Setting) -> Found:
    """Run a setting with and without."""
    runs = _Runs(context, source, setting)
    sides = (OFF, ON, LAZY)
    timings = measured(
        {side: partial(runs.run, side) for side in sides},
        same=lambda one, other: one == other,
        repeat=5 if context.full else 3,
        progress=context.progress,
    )
    kept = {side: runs.kept(side) / rows.height for side in (ON, LAZY)}
    return Found(rows.height, timings, kept, _sets(rows, setting))


def _sets(rows: pl.DataFrame, setting: Setting) -> dict[Encoding, float]:
    """Bytes of sets for each row that comes in."""
    sample = rows.with_row_index("id").filter(pl.col("k") < SAMPLE)
    passing = sample.filter(pl.col("p") < 1_000 * setting.passing)
    sets: list[np.ndarray] = []
    for _, mine in passing.group_by("k", maintain_order=True):
        ids, times = mine["id"].cast(pl.Int64).to_numpy(), mine["at"].to_numpy()
        ends = np.arange(setting.slide, int(rows["at"][-1]) + 1, setting.slide)
        low, high = (np.searchsorted(times, ends - back) for back in (setting.range, 0))
        sets += [ids[a:b] for a, b in zip(low, high, strict=True) if b > a]
    told = pl.Series("ids", sets, dtype=pl.List(pl.Int64))
    encodings = (Encoding.SINGLE, Encoding.INTERVAL, Encoding.DELTA, Encoding.ADAPTIVE)
    return {one: size(encode(told, one)) / sample.height for one in encodings}


def answers(context: Context) -> Iterator[Table]:
    """Throughput and bytes, by overlap, selectivity and window, and of a chain of aggregates."""
    rows = _rows(context)
    source = context.folder / "in"
    _write(source, rows)
    find = partial(look, context, source, rows)
    overlaps = {overlap: find(Setting(overlap=overlap)) for overlap in OVERLAPS}
    yield _table("window / slide", "Sum by key, window 10 ms", overlaps)
    passing = {part: find(Setting(passing=part)) for part in SELECTIVITIES[:-1]}
    passing[SELECTIVITIES[-1]] = overlaps[10]
    yield _table("selectivity", "Sum by key above a filter, window 10 ms, overlap 10", passing)
    windows = {w: overlaps[10] if w == RANGE else find(Setting(w)) for w in WINDOWS}
    yield _table("window, us", "Sum by key, overlap 10", windows)
    chain = {"sum": overlaps[10], "greatest sum": find(Setting(text=_CHAIN))}
    yield _table("query", "A chain of aggregates, window 10 ms, overlap 10", chain)
    yield table_of("Ariadne (E4 to E7)", _shapes(overlaps, passing, windows))


def _table(
    name: str,
    title: str,
    found: Mapping[int, Found] | Mapping[float, Found] | Mapping[str, Found],
) -> Table:
    """Throughput and bytes by what was varied."""
    sets = tuple(next(iter(found.values())).sets)
    return Table(
        title,
        (
            *(name, "rows a second", "with provenance", "stream keeps all"),
            *("bytes a row", "of the stream"),
            *(f"sets, {one.value}" for one in sets),
        ),
        tuple(
            (
                value,
                one.rows / one.timings[OFF].best,
                one.ratio(ON),
                one.ratio(LAZY),
                one.bytes[ON],
                one.bytes[LAZY],
                *(one.sets[encoding] for encoding in sets),
            )
            for value, one in found.items()
        ),
        (
            (
                "With provenance, and if the stream keeps all: throughput as a part of that"
                " without. Bytes are in files, for each row that comes in; those of sets are"
                " payload."
            ),
        ),
    )


def _shapes(
    overlaps: Mapping[int, Found], passing: Mapping[float, Found], windows: Mapping[int, Found]
) -> Iterator[Shape]:
    by_part = [one.bytes[ON] for one in passing.values()]
    yield Shape(
        "E4: what is kept grows with selectivity", by_part == sorted(by_part), listed(by_part)
    )
    by_overlap = [one.bytes[ON] for one in overlaps.values()]
    singles = [one.sets[Encoding.SINGLE] for one in overlaps.values()]
    yield Shape(
        "E5: what is kept grows with the overlap",
        max(by_overlap) > 2 * min(by_overlap),
        f"{listed(by_overlap)}; sets, single: {listed(singles)}",
        "a row is kept once, with its start and end, in however many windows it is",
    )
    by_window = [one.bytes[ON] for one in windows.values()]
    yield Shape(
        "E6: what is kept grows with the window",
        max(by_window) > 2 * min(by_window),
        f"{listed(by_window)}",
        "for the same reason",
    )
    extra = [
        1 / one.ratio(ON) - 1 for part in (overlaps, passing, windows) for one in part.values()
    ]
    yield Shape(
        "E7: recording takes less than 50 % more time",
        max(extra) < _MOST_EXTRA,
        f"{min(extra):.0%} to {max(extra):.0%}, and it is not only what covers a set",
        "a tumbling sum does so little for a row that writing the row counts",
    )
    sums = [one.ratio(ON) for overlap, one in overlaps.items() if overlap > 1]
    yield Shape(
        f"ours: a sliding sum keeps {_TARGET:.0%} of its throughput",
        min(sums) >= _TARGET,
        ", ".join(f"{one:.0%}" for one in sums),
        "see the table",
    )


QUESTION = Question(
    "provenance_eager",
    "What it costs to keep what rows are made of while a query runs",
    answers,
)
