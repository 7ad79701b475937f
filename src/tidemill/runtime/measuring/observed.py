"""What has been observed of an input: how fast rows come, and what they are like.

Everything is smoothed by the time of the stream, not by that of the wall: after ``MEMORY``, a row
counts 1/e of what it did. The values of a column are those of the last one to two such periods.

The mean distance of rows is the ratio of two decayed sums: how much time has passed, and how many
rows came in it. The rows of a batch are taken to be spread evenly over the time it has brought.

Laws:
- The distance of a regular stream is exact, however it is cut into batches.
- That of any stream depends on the cut by no more than a factor ``exp(span / MEMORY)``, where the
  longest batch has brought so much time.

>>> seen = Observed()
>>> for start in (0, 10, 40):
...     seen.take(Sample(rows=3, least=start, latest=start + 10))
>>> round(seen.distance, 6)
6.25
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import exp, expm1, gcd, inf
from typing import TYPE_CHECKING, Final

from tidemill.optimizer.selectivity import seen as expected
from tidemill.runtime.measuring.sample import Sample
from tidemill.runtime.measuring.sketch import ERROR, Sketch

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MEMORY", "Observed", "decay", "values_behind"]

MEMORY: Final = 600_000_000
"""Ten minutes."""

_FEW: Final = 1_024
"""Values are forgotten when so many rows have been looked at since."""

_HALVINGS: Final = 60


@dataclass(slots=True)
class Observed:
    """What has been observed of an input.

    Attributes:
        identity: Which input it is; another one may have its name later.
        rows: How many rows have come.
        first: The least time of a row; ``None`` if none has come, or it is a relation.
        latest: The greatest time of a row, likewise.
        granule: Of what all times are multiples that were looked at; 0 if none was.
        elapsed: How much time has passed, as it counts now.
        counted: How many rows came in it, as they count now.
        looked_at: How many rows were looked at, as they count now.
        bytes: How many bytes these take, by column, likewise.
        nulls: How many of them are NULL, by column, likewise.
        recent: What was looked at in this period and in the one before.
        unseen: How many rows were looked at without a column, by column, as they count now.
    """

    identity: str = ""
    rows: int = 0
    first: int | None = None
    latest: int | None = None
    granule: int = 0
    elapsed: float = 0.0
    counted: float = 0.0
    looked_at: float = 0.0
    bytes: dict[str, float] = field(default_factory=dict)
    nulls: dict[str, float] = field(default_factory=dict)
    recent: tuple[Sample, Sample] = field(default_factory=lambda: (Sample(), Sample()))
    period: int = 0
    unseen: dict[str, float] = field(default_factory=dict)

    def take(self, sample: Sample) -> None:
        """Take what a batch says."""
        if sample.rows and sample.latest is not None:
            self._pass_time(sample)
        self.rows += sample.rows
        if sample.looked_at:
            self.granule = gcd(self.granule, sample.granule)
            self.looked_at += sample.looked_at
            for name, bytes_ in sample.bytes.items():
                self.bytes[name] = self.bytes.get(name, 0.0) + bytes_
            for name, nulls in sample.nulls.items():
                self.nulls[name] = self.nulls.get(name, 0.0) + nulls
            for name, unseen in sample.unseen.items():
                self.unseen[name] = self.unseen.get(name, 0.0) + unseen
        self.recent[0].merge(sample)

    @property
    def distance(self) -> float | None:
        """How far successive rows are apart; ``None`` if that is not known."""
        known = self.counted > 0 and self.elapsed > 0
        return self.elapsed / self.counted if known else None

    @property
    def row_bytes(self) -> float | None:
        """How many bytes a row takes; ``None`` if there is a column that was never looked at."""
        widths = self.widths
        return sum(widths.values()) if widths and widths.keys() >= self.unseen.keys() else None

    @property
    def widths(self) -> dict[str, float]:
        """How many bytes a value takes, by column, of columns that were looked at."""
        seen = {name: self.looked_at - self.unseen.get(name, 0.0) for name in self.bytes}
        return {name: self.bytes[name] / rows for name, rows in seen.items() if rows > 0}

    @property
    def recently(self) -> float:
        """How many rows there were in the time in which values are counted; at least one."""
        return max(1.0, float(sum(one.rows for one in self.recent)))

    def null_share(self, column: str) -> float | None:
        """How many of the values of a column are NULL; ``None`` if none was looked at."""
        seen = self.looked_at - self.unseen.get(column, 0.0)
        return min(1.0, self.nulls.get(column, 0.0) / seen) if seen > 0 else None

    def distinct(self, column: str) -> float | None:
        """How many values a column has; ``None`` if none was looked at."""
        now, before = self.recent
        both = [one.values[column] for one in (now, before) if column in one.values]
        looked_at = sum(one.looked_at - one.unseen.get(column, 0) for one in (now, before))
        nulls = now.nulls.get(column, 0) + before.nulls.get(column, 0)
        if not both or not looked_at:
            return None
        found = Sketch.merged(both).estimate()
        if self.latest is None and looked_at >= self.rows:
            return max(1.0, found)  # a relation: there are no others
        all_ = (now.rows + before.rows) * (looked_at - nulls) / looked_at
        return max(1.0, values_behind(found, looked_at - nulls, all_))

    def copy(self) -> Observed:
        """What is observed now, whatever comes."""
        recent = Sample(), Sample()
        for one, other in zip(recent, self.recent, strict=True):
            one.merge(other)
        return replace(
            self,
            bytes=dict(self.bytes),
            nulls=dict(self.nulls),
            unseen=dict(self.unseen),
            recent=recent,
        )

    def write(self) -> dict[str, object]:
        """What was observed, for ``json``."""
        return {
            "identity": self.identity,
            "rows": self.rows,
            "first": self.first,
            "latest": self.latest,
            "granule": self.granule,
            "elapsed": self.elapsed,
            "counted": self.counted,
            "looked_at": self.looked_at,
            "bytes": dict(self.bytes),
            "nulls": dict(self.nulls),
            "recent": [one.write() for one in self.recent],
            "period": self.period,
            "unseen": dict(self.unseen),
        }

    @classmethod
    def read(cls, written: Mapping[str, object]) -> Observed:
        """What was written; values that were hashed otherwise are not known any more.

        Raises:
            ValueError: It is something else.
        """
        match written:
            case {
                "identity": str(identity),
                "rows": int(rows),
                "first": int() | None as first,
                "latest": int() | None as latest,
                "granule": int(granule),
                "elapsed": float() | int() as elapsed,
                "counted": float() | int() as counted,
                "looked_at": float() | int() as looked_at,
                "bytes": dict(bytes_),
                "nulls": dict(nulls),
                "recent": [dict(now), dict(before)],
                "period": int(period),
                "unseen": dict(unseen),
            }:
                sums = (elapsed, counted, looked_at)
                by_column = (*bytes_.values(), *nulls.values(), *unseen.values())
                if not all(0 <= one < inf for one in (rows, granule, *sums, *by_column)):
                    raise ValueError("what was observed is out of range")
                recent = _read(now), _read(before)
                seen = identity, rows, first, latest, granule
                return cls(*seen, *sums, bytes_, nulls, recent, period, unseen)
            case _:
                raise ValueError(f"{sorted(written)} was not observed")

    def _pass_time(self, sample: Sample) -> None:
        """Let what was observed count less, and count what is new."""
        assert sample.least is not None, "there are rows"
        assert sample.latest is not None, "there are rows"
        is_first = self.latest is None
        since = sample.least if self.latest is None else self.latest
        span = max(sample.latest - since, 0)
        rows = sample.rows - is_first  # the first row of all is after none
        self.first = sample.least if self.first is None else min(self.first, sample.least)
        self.latest = since + span
        left, new = decay(span), _weight(span)
        self.elapsed = self.elapsed * left + new
        self.counted = self.counted * left + (rows * new / span if span else rows)
        self.looked_at *= left
        self.bytes = {name: bytes_ * left for name, bytes_ in self.bytes.items()}
        self.nulls = {name: nulls * left for name, nulls in self.nulls.items()}
        self.unseen = {name: unseen * left for name, unseen in self.unseen.items()}
        period = self.latest // MEMORY
        if is_first:
            self.period = period
        elif period > self.period and self.recent[0].looked_at >= _FEW:
            self.recent, self.period = (Sample(), self.recent[0]), period


def decay(span: float) -> float:
    """What counted 1 before so much time counts now."""
    return exp(-span / MEMORY)


def values_behind(found: float, rows: float, all_: float) -> float:
    """How many values a column has of which some were found in some of its rows.

    Values are taken to be equally frequent, so it is the number of which so many are expected. The
    sketch may be wrong by its error: if nearly each row has a value of its own, all of them may.

    Args:
        found: How many values were found.
        rows: In how many rows.
        all_: How many rows there are; there are no more values than these.

    >>> round(values_behind(632.3, 1000, 1e6)), values_behind(1000, 1000, 1e6)
    (1000, 1000000.0)
    """
    if found >= rows * (1 - 2 * ERROR):
        return max(all_, 0.0) if rows else 0.0
    least, most = found, max(all_, found)
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        if expected(middle, rows) < found:
            least = middle
        else:
            most = middle
    return most


def _weight(span: float) -> float:
    """How much time has passed in a span, as it counts at its end."""
    return -MEMORY * expm1(-span / MEMORY)


def _read(written: Mapping[str, object]) -> Sample:
    try:
        return Sample.read(written)
    except ValueError:
        return Sample()
