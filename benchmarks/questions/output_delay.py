"""How late answers are in the time of the streams, by who tells the time (Hammad et al.)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.techniques.delays import LOADS, Load, by_input, by_the_clock
from tidemill.optimizer.physical.techniques import Technique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell


_NOTE = (
    "By input, only a row that passes the selection tells the time; by the clock, a tick does, ten "
    "times in a gap."
)


def answers(context: Context) -> Iterator[Table]:
    """The delays of a sum, in mean gaps between the rows it sees."""
    rows: list[tuple[Cell, ...]] = []
    for rate, selectivity in LOADS:
        gap = 1 / (rate * selectivity)
        context.progress(f"rate {rate}, selectivity {selectivity}")
        load = Load(rate, selectivity, rows=400, window=20 * gap, seed=context.seed)
        late = by_input(load, Technique.PATTERN)
        few = Load(rate, selectivity, rows=40, window=20 * gap, seed=context.seed)
        delays = [by_the_clock(few, technique, gap / 10) for technique in Technique]
        rows.append(
            (
                rate,
                selectivity,
                gap,
                late.mean / gap,
                late.greatest / gap,
                math.log(late.count),
                *(found.greatest / gap for found in delays),
            )
        )
    yield Table(
        "Delays of a SUM over 20 gaps, in gaps; a gap is 1 / (rate x selectivity)",
        (
            "rate",
            "selectivity",
            "gap: s",
            "by input: mean",
            "by input: greatest",
            "ln(n)",
            *(f"by the clock, {technique.value}: greatest" for technique in Technique),
        ),
        tuple(rows),
        (_NOTE,),
    )


QUESTION = Question("output_delay", "How late answers are, by who tells the time", answers)
