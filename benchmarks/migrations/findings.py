"""What Zhu (E5, E6) and Krämer (X15 to X17) have found about migrations, and whether it is here.

X18, that GENMIG is right for other rules than the order of joins, is a law:
``tests/laws/test_migrations.py``.
"""

from __future__ import annotations

from itertools import pairwise
from math import log
from statistics import fmean, median
from typing import TYPE_CHECKING

from benchmarks.migrations.ways import Way
from benchmarks.techniques.shapes import Shape, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.migrations.courses import Course
    from benchmarks.migrations.lengths import Length
    from benchmarks.migrations.migrating import Second

__all__ = [
    "OVERLOAD",
    "found_at_low_rates",
    "found_at_rates",
    "found_by_kraemer",
    "found_by_window",
    "found_when_overloaded",
    "slower",
]

OVERLOAD = 1.25
"""How many seconds the old plan takes for the rows of a second on a machine that is too slow."""

_SAME = 0.05
_TWO_WINDOWS = (1.9, 2.3)
_CUBE = 3
_WINDOW_ONLY = (
    "a joined row ends with the first of its parts, so nothing that came before is left after one"
    " window (min-purge in Zhu's words)"
)
_CUT = "both are cut at an instant of the streams, and give what they have at once"


def found_by_window(first: Sequence[Length], third: Sequence[Length]) -> Iterator[Shape]:
    """E5, settings 1 and 3: windows grow."""
    windows = [one.track / one.setting.window for one in (*first, *third)]
    ratios = f"{min(windows):.2f} to {max(windows):.2f} windows"
    yield Shape(
        "E5: the length of PARALLEL TRACK is linear in the window",
        max(windows) <= min(windows) * (1 + _SAME),
        ratios,
    )
    yield Shape(
        "E5: it is about two windows",
        _TWO_WINDOWS[0] <= min(windows) and max(windows) <= _TWO_WINDOWS[1],
        ratios,
        _WINDOW_ONLY,
    )
    rows = [_slope(a, b, a.computed, b.computed) for a, b in pairwise(first)]
    yield Shape(
        "E5, setting 1: MOVING STATE computes rows that grow with the window to the second or third"
        " power",
        2 <= rows[-1] <= _CUBE,  # noqa: PLR2004 — the second power
        f"powers from window to window: {listed(rows)}",
    )
    times = [_slope(a, b, a.moving, b.moving) for a, b in pairwise(first)]
    yield Shape(
        "E5, setting 1: and so does the time it takes",
        2 <= times[-1] <= _CUBE,  # noqa: PLR2004 — likewise
        f"powers from window to window: {listed(times)}",
        "with few rows, comparing plans and making operators takes as long as the rows",
    )
    yield from _crossing(third)


def _crossing(third: Sequence[Length]) -> Iterator[Shape]:
    shares = [one.moving / one.track for one in third]
    yield Shape(
        "E5, setting 3: MOVING STATE is shorter with small windows, and comes closer with larger"
        " ones",
        shares[0] < 1 and shares[-1] > shares[-2],
        "of PARALLEL TRACK: " + ", ".join(f"{share:.2%}" for share in shares),
        "with few rows, comparing plans and making operators takes most of the time",
    )
    last = third[-1]
    # The cube is the steepest it can be, so this is the soonest they could meet.
    window = (last.setting.window**_CUBE / last.moving) ** 0.5
    rows = last.computed * (window / last.setting.window) ** _CUBE
    yield Shape(
        "E5, setting 3: beyond some window PARALLEL TRACK is shorter",
        shares[-1] > 1,
        f"at {last.setting.window} s {shares[-1]:.2%} of it; growing with the third power they"
        f" would meet at {window:.0f} s",
        f"rows are joined by columns; {rows:,.0f} intermediate rows would have to be there first",
    )


def found_at_rates(second: Sequence[Length]) -> Iterator[Shape]:
    """E5, setting 2: a rate grows."""
    tracks = [one.track for one in second]
    yield Shape(
        "E5, setting 2: the length of PARALLEL TRACK does not depend on rates",
        max(tracks) <= min(tracks) * (1 + _SAME),
        f"{min(tracks):.2f} to {max(tracks):.2f} s",
    )
    rows = [one.computed for one in second]
    yield Shape(
        "E5, setting 2: MOVING STATE takes longer with higher rates",
        second[-1].moving > second[0].moving * (1 + _SAME),
        f"{second[-1].moving / second[0].moving:.1f} times, for {rows[-1] / rows[0]:.1f} times as"
        " many rows",
        "with few rows, comparing plans and making operators takes most of the time",
    )


def found_at_low_rates(low: Mapping[Way, Course]) -> Iterator[Shape]:
    """E6 with few rows."""
    old, new = (_between(low[way]) for way in (Way.OLD, Way.NEW))
    yield Shape(
        "E6, low: the old plan has about five times the intermediate rows of the new one",
        4 <= old / new <= 6,  # noqa: PLR2004 — about five
        f"{old / new:.1f} times",
    )
    moving, track = (_between_during(low[way]) for way in (Way.MOVING_STATE, Way.PARALLEL_TRACK))
    yield Shape(
        "E6, low: MOVING STATE has as few as the new plan sooner than PARALLEL TRACK",
        moving < track and _between(low[Way.PARALLEL_TRACK]) <= new * (1 + _SAME),
        f"on average {moving:,.0f} and {track:,.0f} during the migration",
    )
    yield Shape(
        "E6, low: output rates are the same",
        len({course.results for course in low.values()}) == 1,
        "the same results in every second",
    )


def found_when_overloaded(high: Mapping[Way, Course]) -> Iterator[Shape]:
    """E6 with many rows, on a machine that the old plan is too much for."""
    old, new = (_between(high[way]) for way in (Way.OLD, Way.NEW))
    yield Shape(
        "E6, high: the old plan has about four times the intermediate rows of the new one",
        3 <= old / new <= 5,  # noqa: PLR2004 — about four
        f"{old / new:.1f} times",
    )
    slow = slower(high)
    ends = {way: course.ended(slow)[-1] for way, course in high.items()}
    moved, both = Way.MOVING_STATE, Way.PARALLEL_TRACK
    yield Shape(
        "E6, high: if the old plan cannot keep up, the others are all done sooner, MOVING STATE"
        " before PARALLEL TRACK",
        ends[moved] < ends[both] < ends[Way.OLD],
        ", ".join(f"{way.value}: {ends[way]:.1f} s" for way in (Way.NEW, moved, both, Way.OLD)),
        f"the new plan saves {1 - high[Way.NEW].work / high[Way.OLD].work:.0%} of the work, as"
        " making the same results is most of it; so what a migration takes is not earned back soon",
    )
    gaps = {way: high[way].gap(slow) for way in (moved, both)}
    yield Shape(
        "E6, high: with MOVING STATE no results come for a long time; with PARALLEL TRACK they do",
        gaps[moved] > 2 * gaps[both],
        f"{gaps[moved]:.1f} s and {gaps[both]:.1f} s at most",
        "state is computed by columns, faster than a window of rows is processed, and nothing"
        " waits in queues",
    )
    kept = {way: _between_during(high[way]) for way in (moved, both)}
    yield Shape(
        "E6, high: PARALLEL TRACK has fewer intermediate rows during the migration than"
        " MOVING STATE",
        kept[both] < kept[moved],
        f"{kept[both]:,.0f} and {kept[moved]:,.0f}",
        "no rows wait in queues while state is moved, and two plans keep more than one",
    )


def slower(high: Mapping[Way, Course]) -> float:
    """How many times slower a machine is that is too slow for the old plan."""
    return OVERLOAD / high[Way.OLD].batch


def found_by_kraemer(fifteen: Mapping[Way, Course]) -> Iterator[Shape]:
    """X15 to X17."""
    genmig, track = fifteen[Way.GENMIG], fifteen[Way.PARALLEL_TRACK]
    window = genmig.setting.window
    yield Shape(
        "X15: GENMIG is over in one window",
        abs(genmig.length / window - 1) <= _SAME,
        f"{genmig.length:.2f} s of {window} s",
    )
    yield Shape(
        "X15: it takes half as long as PARALLEL TRACK",
        abs(genmig.length / track.length - 0.5) <= _SAME,
        f"GENMIG / PARALLEL TRACK: {genmig.length / track.length:.2f}",
        _WINDOW_ONLY,
    )
    silent = {way: sum(not one for one in _during(fifteen[way])) for way in fifteen}
    yield Shape(
        "X15: with GENMIG no second is without output",
        silent[Way.GENMIG] == 0,
        f"{silent[Way.GENMIG]} seconds",
    )
    track_peak = max(_during(track)) / fmean(_during(track))
    yield Shape(
        "X15: with PARALLEL TRACK a window is, and a burst follows",
        silent[Way.PARALLEL_TRACK] >= window - 1,
        f"{silent[Way.PARALLEL_TRACK]} seconds, peak / mean {track_peak:.2f}",
        _CUT,
    )
    more = [t.kept / g.kept for t, g in zip(track.during, genmig.during, strict=True)]
    yield Shape(
        "X16: PARALLEL TRACK keeps more than GENMIG during the migration",
        fmean(more) > 1 + _SAME,
        f"{fmean(more):.2f} times",
        "it is over as soon, and keeps the same until then",
    )
    before, after = (fmean(s.kept for s in part) for part in (genmig.before, genmig.after))
    yield Shape(
        "X16: both keep less afterwards, as the new plan does",
        after < before,
        f"{before:,.0f} rows before, {after:,.0f} after",
    )
    yield Shape(
        "X17: the work is more with PARALLEL TRACK than with GENMIG",
        track.work > genmig.work * (1 + _SAME),
        f"{track.work / genmig.work:.2f} times; GENMIG is {genmig.work / fifteen[Way.NEW].work:.2f}"
        " times that of the new plan alone",
        _CUT + ", so there is nothing that one of them has to leave out or put together",
    )
    speeds = [1 / median(s.cost for s in part) for part in _thirds(genmig)]
    yield Shape(
        "X17: results come slowest during the migration, and fastest after it",
        speeds[1] < speeds[0] < speeds[2],
        "batches in a second of the processor before, during, after: "
        + ", ".join(f"{speed:,.0f}" for speed in speeds),
        "making the results, which are the same, is most of the work",
    )


def _thirds(course: Course) -> tuple[tuple[Second, ...], ...]:
    return course.before, course.during, course.after


def _during(course: Course) -> list[int]:
    return [second.results for second in course.during]


def _between(course: Course) -> float:
    """Intermediate rows in the end, on average."""
    return fmean(second.between for second in course.after)


def _between_during(course: Course) -> float:
    return fmean(second.between for second in course.during)


def _slope(one: Length, other: Length, low: float, high: float) -> float:
    """By which power of the window something grows."""
    return log(high / low) / log(other.setting.window / one.setting.window)
