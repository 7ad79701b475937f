"""How long a migration is: for how long two plans run, and how long it takes to move state (E5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.harness.comparable import same_rows
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.migrations.courses import ran, rows_at
from benchmarks.migrations.migrating import Migrating
from benchmarks.migrations.trees import rows_of
from benchmarks.migrations.ways import Way

if TYPE_CHECKING:
    from benchmarks.migrations.trees import Setting

__all__ = ["Length", "length_of"]

_TRIALS = 3


@dataclass(frozen=True, slots=True)
class Length:
    """How long migrations of a setting are.

    Attributes:
        setting: The setting.
        track: For how long both plans run with PARALLEL TRACK, in seconds of the streams.
        genmig: The same with GENMIG.
        moving: How long the processor works to move state, in seconds.
        computed: How many rows it computes: the intermediate results of the new tree.
    """

    setting: Setting
    track: float
    genmig: float
    moving: float
    computed: int


def length_of(setting: Setting, seed: int) -> Length:
    """How long migrations of a setting are that begin when its windows are full.

    Raises:
        WrongAnswerError: One of them changes the answer.
    """
    given = replace(setting, at=setting.window + 1, seconds=2 * setting.window + 4)
    rows = rows_of(given, seed)
    wanted = rows_at(ran(given, Way.OLD, rows)[1])
    found: dict[Way, float] = {}
    computed = 0
    for way in (Way.PARALLEL_TRACK, Way.GENMIG, Way.MOVING_STATE):
        course, answer = ran(given, way, rows)
        if not same_rows(wanted, rows_at(answer)):
            raise WrongAnswerError(f"{setting.name}: {way.value} gives another answer")
        assert 0 <= course.both - course.length <= 1, "both run until the old one has answered"
        found[way] = course.length
        computed = course.seconds[given.at].between
    query = Migrating(given, Way.MOVING_STATE)
    for number in range(given.at):
        query.step({name: frames[number] for name, frames in rows.items()})
    moving = min(query.trial() for _ in range(_TRIALS))
    return Length(setting, found[Way.PARALLEL_TRACK], found[Way.GENMIG], moving, computed)
