"""What a query sees of a window that slides while it is read: Golab's experiments C1 to C7.

In simulated time, with costs that stand in ``isolation/load.py``; only their ratios mean something.
WS is what Tidemill does: a reader takes the state of a batch boundary, and what it needs is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.isolation.experiments import GAP, LONG, Sizes, long_scans, mixed, periodic, reached
from benchmarks.isolation.findings import findings
from benchmarks.isolation.scheduling import Scheduler
from benchmarks.techniques.shapes import table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell
    from benchmarks.isolation.experiments import Figures
    from benchmarks.isolation.levels import Levels

SCANS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""How long scans are, in times between two slides."""

_COUNTED = (
    "Times are means over the workloads, which are the same for all schedulers; what slides waited "
    "and copies are the greatest. Staleness counts from when a slide was due, also if it waited. "
    "SERIAL does not pay for a watch on conflicts, 0.05 ms a step."
)
_TAKES_BACK = (
    "TTU aborts nothing as long as a sub-window is read between any two slides. A scheduler that "
    "takes back reads the old copy again instead of beginning anew."
)


def answers(context: Context) -> Iterator[Table]:
    """C1 to C4 with periodic queries, C5 to C7 with one-time queries too, and what was found."""
    runs, runs_mixed, runs_long = (40, 200, 20) if context.full else (8, 12, 2)
    yield _reached(reached(Sizes((8,), 5, context.seed)))
    alone = periodic(Sizes((10, 20, 40, 60), runs, context.seed), context.progress)
    yield _periodic(alone, runs)
    both = mixed(Sizes((10, 20, 40), runs_mixed, context.seed), context.progress)
    yield _mixed(both, runs_mixed)
    context.progress("long scans")
    yield _long(long_scans(SCANS, runs_long, context.seed))
    yield table_of("Isolation: C1 to C7", findings(alone, both))


def _reached(found: Mapping[Scheduler, Levels]) -> Table:
    return Table(
        "What the histories of each scheduler are",
        ("scheduler", "serializable", "WS", "not older than its start", "LWS", "commits in order"),
        tuple(
            (scheduler.value, is_.csr, is_.ws, is_.strong, is_.lws, is_.cps)
            for scheduler, is_ in found.items()
        ),
        ("SERIAL reads the latest state because slides wait: the state itself is late.",),
    )


def _periodic(alone: Mapping[tuple[float, int], Mapping[Scheduler, Figures]], runs: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (t, n), group in alone.items():
        for scheduler, f in group.items():
            times = (f.staleness / 1000, f.between / 1000, f.throughput)
            rows.append((t / 1000, n, scheduler.value, f.aborts, *times, f.waited / 1000, f.copies))
    return Table(
        "Periodic queries over a window that slides",
        (
            *("sub-window: s", "sub-windows", "scheduler", "aborted", "staleness: s"),
            *("between answers: s", "answers/s", "slide waited: s", "copies kept"),
        ),
        tuple(rows),
        (f"{runs} workloads.", _COUNTED),
    )


def _mixed(both: Mapping[int, Mapping[Scheduler, Figures]], runs: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for n, group in both.items():
        for scheduler, f in group.items():
            times = (f.response, f.once_staleness, f.staleness, f.between)
            rows.append((n, scheduler.value, f.aborts, *(time / 1000 for time in times)))
    return Table(
        f"With a one-time query every {GAP / 1000:g} s, which goes first; "
        f"sub-windows of {LONG / 1000:g} s",
        (
            *("sub-windows", "scheduler", "aborted", "one-time, response: s", "staleness: s"),
            *("periodic, staleness: s", "between answers: s"),
        ),
        tuple(rows),
        (f"{runs} workloads.",),
    )


def _long(found: Mapping[float, Mapping[tuple[Scheduler, bool], Figures]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for length, group in found.items():
        most = group[Scheduler.WS, False].throughput
        lws, ttu = group[Scheduler.LWS, False], group[Scheduler.TTU, False]
        shares = (f.throughput / most for f in (lws, ttu, group[Scheduler.LWS, True]))
        copies = group[Scheduler.WS, False].copies
        waited = group[Scheduler.SERIAL, False].waited / 1000
        rows.append((length, lws.aborts, ttu.aborts, *shares, ttu.met, copies, waited))
    return Table(
        "Scans that take longer than a slide lasts, 20 sub-windows of 1 s",
        (
            *("scan / slide", "LWS: aborted", "TTU: aborted", "LWS / WS: answers", "TTU / WS"),
            *("LWS that takes back / WS", "TTU: slides in a scan", "WS: copies"),
            "SERIAL: slide waited, s",
        ),
        tuple(rows),
        (_TAKES_BACK,),
    )


QUESTION = Question("isolation", "What a query sees of a window that slides meanwhile", answers)
