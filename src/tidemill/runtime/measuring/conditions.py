"""Selectivities: of which share of rows, or of pairs of rows, conditions have been true.

Nothing is counted for them: operators tell how many rows they have taken and given anyway, and it
is known of which conditions these are (``optimizer.estimates.conditions``). How many pairs a join
had to judge follows from how many rows have come on both sides. What was counted is smoothed by the
time of streams.

Law: whatever was given to ``take`` before counts once, whenever and however often that is called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from tidemill.optimizer.estimates.conditions import Judge, judges, pairs
from tidemill.runtime.measuring.observed import decay

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.measuring.observed import Observed
    from tidemill.runtime.metrics import OperatorMetrics

__all__ = ["Conditions", "Counted"]


@dataclass(slots=True)
class Counted:
    """How often a condition was judged.

    Attributes:
        inputs: The streams and relations whose columns it reads.
        judged: How many rows, or pairs of rows, it was asked of, as they count now.
        true: Of how many of them it was true, as they count now.
        latest: Up to which time of the streams.
    """

    inputs: tuple[str, ...]
    judged: float = 0.0
    true: float = 0.0
    latest: int = 0

    @property
    def share(self) -> float | None:
        """The share that it is true of; ``None`` if that is not known."""
        return min(1.0, self.true / self.judged) if self.judged > 0 else None

    def add(self, judged: float, true: float, latest: int) -> None:
        """Count more, up to a time."""
        left = decay(max(latest - self.latest, 0)) if self.judged else 1.0
        self.judged = self.judged * left + judged
        self.true = self.true * left + true
        self.latest = max(latest, self.latest)

    def write(self) -> dict[str, object]:
        """What was counted, for ``json``."""
        return {
            "inputs": list(self.inputs),
            "judged": self.judged,
            "true": self.true,
            "latest": self.latest,
        }

    @classmethod
    def read(cls, written: Mapping[str, object]) -> Counted:
        """What was written.

        Raises:
            ValueError: It is something else.
        """
        match written:
            case {
                "inputs": list(inputs),
                "judged": float() | int() as judged,
                "true": float() | int() as true,
                "latest": int(latest),
            } if 0 <= true < inf and 0 <= judged < inf and all(isinstance(n, str) for n in inputs):
                return cls(tuple(inputs), judged, true, latest)
            case _:
                raise ValueError(f"{written} is not what was counted of a condition")


@dataclass(slots=True)
class _Taken:
    """An operator that is followed.

    Attributes:
        judge: What it applies.
        since: The time of its streams when it began; ``None`` if nothing had come.
        rows: How many rows had come then, by input.
        judged: How many pairs it has been known to judge.
        true: How many rows it has been known to give.
        warm: Whether it began with full windows.
    """

    judge: Judge
    since: int | None
    rows: dict[str, int]
    warm: bool
    judged: float = 0.0
    true: float = 0.0


@dataclass(slots=True)
class Conditions:
    """What is known of conditions.

    Attributes:
        counted: How often each was judged, by its canonical text.
    """

    counted: dict[str, Counted] = field(default_factory=dict)
    _taken: dict[str, _Taken] = field(default_factory=dict)
    _is_old: bool = False

    def go_on(self, counted: dict[str, Counted]) -> None:
        """Go on with what an earlier session has counted."""
        self.counted, self._is_old = counted, True

    def follow(
        self,
        plans: Iterable[PhysicalPlan],
        relations: Collection[str],
        seen: Mapping[str, Observed],
    ) -> None:
        """Follow the operators of plans from now on, and no others.

        Args:
            plans: What runs from now on.
            relations: The inputs that are relations.
            seen: What was observed of inputs so far.
        """
        found = judges(plans, relations)
        self._taken = {
            name: self._taken.get(name) or self._begun(judge, seen) for name, judge in found.items()
        }
        self._is_old = False

    def take(self, metrics: Mapping[str, OperatorMetrics], seen: Mapping[str, Observed]) -> None:
        """Take what operators have done so far.

        Args:
            metrics: What each has done since it began here.
            seen: What was observed of inputs in the same time.
        """
        for name, one in self._taken.items():
            done = metrics.get(name)
            if done is None or any(side.name not in seen for side in one.judge.sides):
                continue
            given = done.rows_out / one.judge.messages
            judged = float(done.rows_in) if len(one.judge.sides) == 1 else self._pairs(one, seen)
            if judged <= one.judged:
                continue
            inputs = tuple(dict.fromkeys(side.name for side in one.judge.sides))
            known = self.counted.setdefault(one.judge.condition, Counted(inputs))
            latest = max(seen[side.name].latest or 0 for side in one.judge.sides)
            known.add(judged - one.judged, max(given - one.true, 0.0), latest)
            one.judged, one.true = judged, given

    def _begun(self, judge: Judge, seen: Mapping[str, Observed]) -> _Taken:
        names = [side.name for side in judge.sides if not side.is_relation]
        rows = {name: seen[name].rows for name in names if name in seen}
        times = [seen[name].latest for name in names if name in seen]
        latest = max((time for time in times if time is not None), default=None)
        return _Taken(judge, latest, rows, warm=self._is_old)

    @staticmethod
    def _pairs(one: _Taken, seen: Mapping[str, Observed]) -> float:
        """How many pairs a join has had to judge since it began."""
        left, right = one.judge.sides
        rows, times = [], []
        for side in (left, right):
            observed = seen[side.name]
            is_all = side.is_relation
            rows.append(float(observed.rows - (0 if is_all else one.rows.get(side.name, 0))))
            if not is_all and observed.latest is not None:
                since = observed.first if one.since is None else one.since
                times.append(observed.latest - (since or 0))
        time = float(max(times, default=0))
        return pairs(left, right, (rows[0], rows[1]), time, warm=one.warm)
