"""What the contributors of an answer row take, by how they are stored (Ariadne, E4 to E6).

The sets are those of an aggregate over a time window above a filter: of the rows in a window, the
ones that pass. A row comes in each instant, and ids follow one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benchmarks.harness.measure import measured
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.techniques.shapes import Shape, listed, table_of
from tidemill.engine.ingest import file_id
from tidemill.provenance.encode import Encoded, Encoding, covering, decode, encode, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.harness.question import Context

WINDOW, SELECTIVITY = 100, 0.25
SLIDES = (1, 2, 5, 10, 50, 100)
SELECTIVITIES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
WINDOWS = (50, 100, 200, 500, 1000, 2000)

SINGLE, INTERVAL, DELTA, DICTIONARY, ADAPTIVE = (each.value for each in Encoding)
ALONE, PLAIN, COVERING = "dictionary, set by set", "adaptive, no blocks", "covering"
SIDES: Mapping[str, Callable[[pl.Series], Encoded]] = {
    **{each.value: partial(encode, encoding=each) for each in Encoding},
    PLAIN: partial(encode, encoding=Encoding.ADAPTIVE, compressed_from=None),
    ALONE: partial(encode, encoding=Encoding.DICTIONARY, full_every=1, compressed_from=0),
}
ALL = (*SIDES, COVERING)

_ABOUT_SIDES = (
    "Of 64 sets the first is told in full by delta; dictionary compresses them as one block, and"
    " set by set as the seed does. Adaptive without blocks compresses none. Covering is the"
    " interval that lazy provenance records: what is to be replayed."
)
_ABOUT_FILES = "Polars compresses with zstd: what is compressed already is not made smaller."
_ABOUT_TIMES = "The sets that come back are the same from all, or no time counts."
_ENDS = 16
"""Bytes of the two ends of a run."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is asked of the stream."""

    window: int = WINDOW
    slide: int = 1
    selectivity: float = SELECTIVITY


@dataclass(frozen=True, slots=True)
class Found:
    """What one setting gave, for each side by name.

    Attributes:
        bytes: Of an answer row.
        in_file: Of an answer row, in a Parquet file.
        encoding: Microseconds to encode an answer row.
        decoding: Microseconds to decode one.
        answers_per_row: How many answer rows there are for each row that comes in.
    """

    bytes: dict[str, float]
    in_file: dict[str, float]
    encoding: dict[str, float]
    decoding: dict[str, float]
    answers_per_row: float

    def by_input(self, side: str) -> float:
        """Bytes for each row that comes in."""
        return self.bytes[side] * self.answers_per_row


def sets_of(setting: Setting, count: int, seed: int) -> pl.Series:
    """The contributors of some answers."""
    starts = np.arange(count) * setting.slide
    rows = starts[-1] + setting.window
    passed = np.flatnonzero(np.random.default_rng(seed).random(rows) < setting.selectivity)
    low, high = (np.searchsorted(passed, starts + more) for more in (0, setting.window))
    ids = passed + file_id(3, 0)
    sets = [ids[a:b] for a, b in zip(low, high, strict=True)]
    return pl.Series("ids", sets).cast(pl.List(pl.Int64))


def look(context: Context, setting: Setting) -> Found:
    """Store the sets of a setting in each way."""
    sets = sets_of(setting, 20_000 if context.full else 1_500, context.seed)
    stored = {name: store(sets) for name, store in SIDES.items()}
    repeat = 5 if context.full else 1
    there = measured(
        {name: partial(_encoded, store, sets) for name, store in SIDES.items()},
        same=pl.Series.equals,
        repeat=repeat,
        progress=context.progress,
    )
    back = measured(
        {name: partial(_decoded, given) for name, given in stored.items()},
        same=pl.Series.equals,
        repeat=repeat,
        progress=context.progress,
    )
    interval = measured(
        {COVERING: partial(_covered, sets)}, same=pl.DataFrame.equals, repeat=repeat
    )
    each = 1 / len(sets)
    bounds = covering(sets)
    return Found(
        {name: size(given) * each for name, given in stored.items()}
        | {COVERING: 8 * bounds.width * bounds.height * each},
        {name: _in_file(given.frame) * each for name, given in stored.items()}
        | {COVERING: _in_file(bounds) * each},
        {name: timing.best * 1e6 * each for name, timing in (there | interval).items()},
        {name: timing.best * 1e6 * each for name, timing in back.items()},
        1 / setting.slide,
    )


def _encoded(store: Callable[[pl.Series], Encoded], sets: pl.Series) -> Callable[[], pl.Series]:
    return partial(decode, store(sets))


def _decoded(encoded: Encoded) -> Callable[[], pl.Series]:
    sets = decode(encoded)
    return lambda: sets


def _covered(sets: pl.Series) -> Callable[[], pl.DataFrame]:
    bounds = covering(sets)
    return lambda: bounds


def _in_file(frame: pl.DataFrame) -> int:
    buffer = BytesIO()
    frame.write_parquet(buffer)
    return buffer.tell()


def answers(context: Context) -> Iterator[Table]:
    """Bytes and times by overlap, selectivity and window, and which shapes are found."""
    slides = {slide: look(context, Setting(slide=slide)) for slide in SLIDES}
    yield from _tables("slide, window 100, 25 % pass", slides)
    yield Table(
        "Bytes for each row that comes in, by slide",
        ("slide", *ALL),
        tuple((s, *(found.by_input(name) for name in ALL)) for s, found in slides.items()),
    )
    passing = {part: look(context, Setting(selectivity=part)) for part in SELECTIVITIES}
    yield from _tables("selectivity, window 100, slide 1", passing)
    windows = {window: look(context, Setting(window=window)) for window in WINDOWS}
    yield from _tables("window, slide 1, 25 % pass", windows)
    yield table_of("Ariadne (E4 to E6)", _shapes(slides, passing, windows))


def _tables(by: str, found: Mapping[int, Found] | Mapping[float, Found]) -> Iterator[Table]:
    name = by.partition(",")[0]
    yield Table(
        f"Bytes of an answer row, by {by}",
        (name, *ALL),
        tuple((value, *(one.bytes[side] for side in ALL)) for value, one in found.items()),
        (_ABOUT_SIDES,),
    )
    yield Table(
        f"Bytes of an answer row in a Parquet file, by {by}",
        (name, *ALL),
        tuple((value, *(one.in_file[side] for side in ALL)) for value, one in found.items()),
        (_ABOUT_FILES,),
    )
    yield Table(
        f"Microseconds of an answer row to encode, and to decode, by {by}",
        (name, *(f"{side}{what}" for side in SIDES for what in ("", ", decoded")), COVERING),
        tuple(
            (
                value,
                *(cell for side in SIDES for cell in (one.encoding[side], one.decoding[side])),
                one.encoding[COVERING],
            )
            for value, one in found.items()
        ),
        (_ABOUT_TIMES,),
    )


def _shapes(
    slides: Mapping[int, Found], passing: Mapping[float, Found], windows: Mapping[int, Found]
) -> Iterator[Shape]:
    yield from _by_slide(slides)
    yield from _by_selectivity(passing)
    yield from _by_window(windows, passing[SELECTIVITIES[0]])
    lengths = {
        found.bytes[COVERING] for part in (slides, passing, windows) for found in part.values()
    }
    yield Shape("covering is constant", len(lengths) == 1, listed(sorted(lengths)))


def _by_slide(slides: Mapping[int, Found]) -> Iterator[Shape]:
    for side in (SINGLE, INTERVAL):
        products = [found.by_input(side) * slide for slide, found in slides.items()]
        yield Shape(
            f"E5: bytes of {side} fall linearly with the slide",
            _alike(products),
            f"bytes × slide: {listed(products)}",
        )
    first, near, last = (slides[SLIDES[i]].bytes for i in (0, -2, -1))
    best = min((SINGLE, INTERVAL, DELTA, ALONE), key=first.__getitem__)
    yield Shape(
        "E5: delta is the best at slide 1, of what Ariadne has",
        best == DELTA,
        f"delta {first[DELTA]:.1f}, single {first[SINGLE]:.1f}, interval {first[INTERVAL]:.1f},"
        f" {ALONE} {first[ALONE]:.1f}; in blocks {first[DICTIONARY]:.1f}",
        f"{best} is better",
    )
    yield Shape(
        "E5: delta is worse than single at large slides",
        last[DELTA] > last[SINGLE],
        f"slide {SLIDES[-1]}: {last[DELTA]:.1f} for {last[SINGLE]:.1f}, by the byte that says"
        f" that a set is full; slide {SLIDES[-2]}: {near[DELTA]:.1f} for {near[SINGLE]:.1f}",
    )


def _by_selectivity(passing: Mapping[float, Found]) -> Iterator[Shape]:
    low, full = passing[SELECTIVITIES[0]].bytes, passing[1.0].bytes
    shares = [found.bytes[INTERVAL] / found.bytes[SINGLE] for found in passing.values()]
    singles = [found.bytes[SINGLE] for found in passing.values()]
    yield Shape("E4: single grows with selectivity", _rises(singles), listed(singles))
    yield Shape(
        "E4: interval is worse than single where few pass, and better where many do",
        low[INTERVAL] > low[SINGLE] and full[INTERVAL] < full[SINGLE],
        f"interval as a part of single: {listed(shares)}",
    )
    top = max(passing, key=lambda part: passing[part].bytes[INTERVAL])
    yield Shape("E4: interval takes most at 50 to 75 %", 0.5 <= top <= 0.75, f"at {top:.0%}")  # noqa: PLR2004
    yield Shape(
        "E4: interval is nearly two ids at 100 %",
        full[INTERVAL] == _ENDS,
        f"{full[INTERVAL]:.1f}",
    )


def _by_window(windows: Mapping[int, Found], small: Found) -> Iterator[Shape]:
    each = [found.bytes[SINGLE] / window for window, found in windows.items()]
    yield Shape(
        "E6: single grows linearly with the window", _alike(each), f"bytes / window: {listed(each)}"
    )
    sizes = {
        found.bytes[SINGLE]: (found.bytes[ALONE], found.bytes[DICTIONARY])
        for found in (small, *windows.values())
    }
    alone, blocks = ([pair[i] / plain for plain, pair in sizes.items()] for i in (0, 1))
    yield Shape(
        "E6: dictionary helps only above a threshold",
        alone[0] > 0.9 and alone[-1] < 0.5,  # noqa: PLR2004 — next to nothing, and a lot
        f"sets of {listed([*sizes])} bytes, as parts of single: set by set"
        f" {', '.join(f'{part:.2f}' for part in alone)}; in blocks of 64"
        f" {', '.join(f'{part:.2f}' for part in blocks)}, so small sets gain, too",
        "all sets are compressed well",
    )


def _alike(numbers: Sequence[float]) -> bool:
    return max(numbers) < 1.1 * min(numbers)


def _rises(numbers: Sequence[float]) -> bool:
    return list(numbers) == sorted(numbers)


QUESTION = Question(
    "provenance_encodings",
    "What the contributors of an answer row take, as they are stored",
    answers,
)
