"""The answers of Linear Road, from the raw reports, in plain Python: what the queries must say.

The reports are read second by second, and everything is kept in dictionaries. Nothing here knows
Tidemill; only ``rules.py`` is shared with the queries. The meaning is the one that ``queries.py``
states. A car sends at most one position report a second.

An answer is a bag of rows; the last two values of a row are the microseconds from which and up to
which it holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from benchmarks.linear_road.rules import (
    BALANCE,
    EAST,
    EXIT_LANE,
    EXPENDITURE,
    POSITION,
    SECOND,
    Rules,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["FOREVER", "Answers", "Report", "Row", "validate"]

FOREVER = 2**63 - 1
"""The end of what never ends."""

MINUTE = 60

Row: TypeAlias = tuple[int | float | None, ...]
Answers: TypeAlias = dict[str, Counter[Row]]
"""By the name of a query, its rows and how often each is there."""

Segment: TypeAlias = tuple[int, int, int]
"""Expressway, direction and segment."""

Place: TypeAlias = tuple[int, int, int, int, int]
"""Expressway, direction, segment, lane and position."""

_UP_TO_NOW = 1  # what is there at one instant ends at the next


class Report(NamedTuple):
    """A row of the input."""

    type: int
    time: int
    carid: int
    speed: int = -1
    exp_way: int = -1
    lane: int = -1
    dir: int = -1
    seg: int = -1
    pos: int = -1
    qid: int = -1
    s_init: int = -1
    s_end: int = -1
    dow: int = -1
    tod: int = -1
    day: int = -1


def validate(
    reports: Iterable[Report], history: Mapping[tuple[int, int, int], int], rules: Rules
) -> Answers:
    """All answers.

    Args:
        reports: The input, in the order of its time.
        history: What a car has paid, by car, day and expressway.
        rules: What makes a toll and an accident.
    """
    road = _Road(rules, history)
    for time, group in groupby(reports, key=lambda report: report.time):
        road.close_minutes(up_to=time // MINUTE)
        road.take(time, list(group))
    road.close_minutes(up_to=road.minute + 1)
    for place, since in road.accidents.items():
        road.answers["accidents"][*place, since, FOREVER] += 1
    return road.answers


@dataclass(slots=True)
class _Road:
    """What is known up to some second.

    Attributes:
        rules: What makes a toll and an accident.
        history: What a car has paid, by car, day and expressway.
        answers: The answers so far.
        minute: The minute that is going on.
        places: The last reports of each car.
        standing: The cars that are stopped at a place.
        accidents: The accidents that are there, and since when, in microseconds.
        speeds: By segment and car, the speeds that were reported in this minute.
        means: By segment, the mean speed of each minute that has one.
        tolls: By segment, the speed and toll of this minute.
        balances: By car, its balance and the time of the last notice.
    """

    rules: Rules
    history: Mapping[tuple[int, int, int], int]
    answers: Answers = field(default_factory=lambda: defaultdict(Counter))
    minute: int = 0
    places: dict[int, deque[Place]] = field(default_factory=dict)
    standing: dict[Place, set[int]] = field(default_factory=lambda: defaultdict(set))
    accidents: dict[Place, int] = field(default_factory=dict)
    speeds: dict[Segment, dict[int, list[int]]] = field(default_factory=dict)
    means: dict[Segment, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    tolls: dict[Segment, tuple[float, int]] = field(default_factory=dict)
    balances: dict[int, tuple[int, int]] = field(default_factory=dict)

    def take(self, time: int, reports: Sequence[Report]) -> None:
        """All that is reported and asked in one second."""
        positions = [report for report in reports if report.type == POSITION]
        entries = [report for report in positions if self._move(report)]
        self._look_for_accidents(time * SECOND)
        for entry in entries:
            self._alert(entry)
            self._charge(entry)
        for report in reports:
            self._reply(report)

    def _move(self, report: Report) -> bool:
        """Note the position of a car; whether it has entered a segment."""
        time, car = report.time, report.carid
        row = (time * SECOND, time, car, report.speed, report.exp_way, report.lane)
        self._note("positions", time, *row, report.dir, report.seg, report.pos)
        segment = _segment(report)
        self.speeds.setdefault(segment, {}).setdefault(car, []).append(report.speed)
        last = self.places.setdefault(car, deque(maxlen=self.rules.stopped_reports))
        known = bool(last) and last[-1][:3] == segment
        if last:
            self.standing[last[-1]].discard(car)
        last.append((*segment, report.lane, report.pos))
        if len(last) == self.rules.stopped_reports and len(set(last)) == 1:
            self.standing[last[-1]].add(car)
        if known or report.lane == EXIT_LANE:
            return False
        self._note("entries", time, time * SECOND, time, car, *segment)
        return True

    def _look_for_accidents(self, now: int) -> None:
        there = {
            place for place, cars in self.standing.items() if len(cars) >= self.rules.accident_cars
        }
        for place in self.accidents.keys() - there:
            self.answers["accidents"][*place, self.accidents.pop(place), now] += 1
        for place in there - self.accidents.keys():
            self.accidents[place] = now
        self.standing = defaultdict(set, {p: cars for p, cars in self.standing.items() if cars})

    def _accident_ahead(self, segment: Segment) -> int | None:
        """The segment of the nearest accident that concerns a segment."""
        exp_way, direction, seg = segment
        step = 1 if direction == EAST else -1
        concerned = {place[:3] for place in self.accidents}
        for distance in range(self.rules.zone + 1):
            if (exp_way, direction, seg + step * distance) in concerned:
                return seg + step * distance
        return None

    def _alert(self, entry: Report) -> None:
        accident = self._accident_ahead(_segment(entry))
        if accident is not None:
            self._note("alerts", entry.time, entry.time, entry.carid, *_segment(entry), accident)

    def _charge(self, entry: Report) -> None:
        time, car, segment = entry.time, entry.carid, _segment(entry)
        speed, toll = self.tolls.get(segment, (0.0, 0))
        self._note("notices", time, time, car, *segment, speed, toll)
        balance, _ = self.balances.get(car, (0, 0))
        self.balances[car] = (balance + toll, time)

    def _reply(self, report: Report) -> None:
        time, car = report.time, report.carid
        if report.type == BALANCE:
            balance, since = self.balances.get(car, (0, None))
            self._note("balances", time, time, car, report.qid, balance, since)
        if report.type == EXPENDITURE:
            paid = self.history.get((car, report.day, report.exp_way), 0)
            row = (time, car, report.qid, report.exp_way, report.day, paid)
            self._note("expenditures", time, *row)

    def close_minutes(self, *, up_to: int) -> None:
        """Let minutes go by, with nothing more reported in them, until one is going on."""
        while self.minute < up_to:
            self._close_minute()

    def _close_minute(self) -> None:
        closed, self.minute = self.minute, self.minute + 1
        holds = (self.minute * MINUTE * SECOND - 1, (self.minute + 1) * MINUTE * SECOND - 1)
        self.tolls = {}
        for segment, cars in self.speeds.items():
            mean = _mean([_mean(speeds) for speeds in cars.values()])
            self.means[segment][closed] = mean
            recent = range(self.minute - self.rules.average_minutes, self.minute)
            speed = _mean([self.means[segment][m] for m in recent if m in self.means[segment]])
            toll = self._toll(segment, speed, len(cars))
            self.tolls[segment] = (speed, toll)
            self.answers["statistics"][closed, *segment, mean, len(cars), *holds] += 1
            row = (self.minute, *segment, speed, len(cars), toll)
            self.answers["tolls"][*row, *holds] += 1
        self.speeds = {}

    def _toll(self, segment: Segment, speed: float, cars: int) -> int:
        surplus = cars - self.rules.free_cars
        if speed >= self.rules.slow_speed or surplus <= 0:
            return 0
        if self._accident_ahead(segment) is not None:
            return 0
        return self.rules.toll_factor * surplus**2

    def _note(self, query: str, time: int, *row: float | None) -> None:
        self.answers[query][*row, time * SECOND, time * SECOND + _UP_TO_NOW] += 1


def _segment(report: Report) -> Segment:
    return (report.exp_way, report.dir, report.seg)


def _mean(values: Sequence[float]) -> float:
    """The exact mean, rounded once.

    >>> _mean([0.1, 0.2, 0.3])
    0.2
    """
    ratios = [value.as_integer_ratio() for value in values]
    scale = max(denominator for _, denominator in ratios)  # all are powers of two
    whole = sum(numerator * (scale // denominator) for numerator, denominator in ratios)
    return whole / (scale * len(values))  # of whole numbers, so that it is rounded only here
