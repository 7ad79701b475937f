"""The rules of Linear Road: the road, and the numbers that tolls and accidents depend on.

These constants are all that the queries and the validator share. The benchmark's numbers are the
defaults; a small simulation needs a smaller ``free_cars``, or there would never be a toll.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BALANCE",
    "EAST",
    "ENTRY_LANE",
    "EXIT_LANE",
    "EXPENDITURE",
    "MILE",
    "POSITION",
    "REPORT_SECONDS",
    "SECOND",
    "SEGMENTS",
    "TRAVEL_TIME",
    "WEST",
    "Rules",
]

SECOND = 1_000_000
"""The microseconds of a second."""

MILE = 5280
"""The feet of a segment."""

SEGMENTS = 100
"""The segments of an expressway, the same for both directions."""

EAST, WEST = 0, 1
"""The directions: positions grow eastward."""

ENTRY_LANE, EXIT_LANE = 0, 4
"""The ramps; cars travel in the lanes between."""

REPORT_SECONDS = 30
"""A car that is on the road reports its position so often."""

POSITION, BALANCE, EXPENDITURE, TRAVEL_TIME = 0, 2, 3, 4
"""The types of input: a position report, and three kinds of requests."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a toll and an accident.

    Attributes:
        free_cars: A segment with at most so many cars is free.
        slow_speed: A segment whose average speed is not below this is free.
        toll_factor: What a square of surplus cars costs.
        average_minutes: Over how many minutes the speed is averaged.
        stopped_reports: A car that has reported one place so many times in a row is stopped.
        accident_cars: So many stopped cars at one place are an accident.
        zone: An accident concerns its own segment and so many behind it.
    """

    free_cars: int = 50
    slow_speed: int = 40
    toll_factor: int = 2
    average_minutes: int = 5
    stopped_reports: int = 4
    accident_cars: int = 2
    zone: int = 4
