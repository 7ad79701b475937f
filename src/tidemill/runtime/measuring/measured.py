"""What a pipeline has found out of its inputs and of conditions, and how that is kept.

It is kept in a file beside the state, from time to time and when the pipeline stops, and not with
each batch: it is no part of any answer, so it may be a little old, or missing, and what cannot be
read is as if it had never been there. The file is replaced as a whole, so it is never torn. It says
after which batch it was written; batches before that are not counted again.

Law: nothing here is a reason to refuse anything, and nothing here changes an answer.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final

from tidemill.runtime.durable import write_durably
from tidemill.runtime.measuring.conditions import Conditions, Counted
from tidemill.runtime.measuring.observed import Observed
from tidemill.runtime.measuring.sample import sample_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    import polars as pl

    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.measuring.sample import Sample
    from tidemill.runtime.metrics import OperatorMetrics

__all__ = ["STATISTICS_FILE", "Measured", "load_measured"]

STATISTICS_FILE: Final = "statistics.json"

_FORMAT: Final = 1
_KEEP_EVERY: Final = 30.0
"""How often it is kept while a pipeline runs, in seconds."""


@dataclass(slots=True)
class Measured:
    """What has been found out.

    Attributes:
        inputs: Of streams and relations, by name.
        conditions: Of conditions.
        batch: The last batch that is counted; -1 if none is.
        path: Where it is kept; ``None`` if it is not.
    """

    inputs: dict[str, Observed] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)
    batch: int = -1
    path: Path | None = None
    _turn: Lock = field(default_factory=Lock)
    _kept: float = field(default_factory=monotonic)
    _written: bytes = b""

    def take(self, batch: int, samples: Mapping[str, Sample]) -> None:
        """Take what a batch says, by stream; one that is counted already says nothing new."""
        if batch > self.batch:
            self.take_late(samples)
            self.batch = batch

    def take_late(self, samples: Mapping[str, Sample]) -> None:
        """Take what is still to be said of batches that are counted."""
        with self._turn:
            for name, sample in samples.items():
                if sample.rows or sample.looked_at:
                    self.inputs.setdefault(name, Observed()).take(sample)

    def open(self, stream: str, identity: str) -> None:
        """Begin to observe a stream, or go on if it is the one that had this name before."""
        with self._turn:
            if stream not in self.inputs or self.inputs[stream].identity != identity:
                self.inputs[stream] = Observed(identity)

    def take_relation(self, name: str, identity: str, rows: pl.DataFrame) -> None:
        """Take the rows of a relation, which are all there are."""
        found = Observed(identity)
        found.take(sample_of(rows))
        with self._turn:
            self.inputs[name] = found

    def follow(self, plans: Iterable[PhysicalPlan], relations: Collection[str]) -> None:
        """Follow the operators of plans from now on, and no others."""
        with self._turn:
            self.conditions.follow(plans, relations, self.inputs)

    def take_metrics(self, metrics: Mapping[str, OperatorMetrics]) -> None:
        """Take what operators have done so far, by fingerprint."""
        with self._turn:
            self.conditions.take(metrics, self.inputs)

    def observed(self, name: str) -> Observed:
        """What was observed of an input, as it is now."""
        with self._turn:
            found = self.inputs.get(name)
            return Observed() if found is None else found.copy()

    def counted(self) -> dict[str, Counted]:
        """What was counted of conditions, as it is now."""
        with self._turn:
            return {text: replace(one) for text, one in self.conditions.counted.items()}

    def is_due(self) -> bool:
        """Whether it is time to keep it."""
        return self.path is not None and monotonic() - self._kept > _KEEP_EVERY

    def keep(self) -> None:
        """Keep it, if there is a place; where it cannot be written, the old one stays."""
        if self.path is None:
            return
        with self._turn:
            written = json.dumps(self._write()).encode()
            if written != self._written and self.inputs:
                with suppress(OSError):
                    write_durably(self.path, written)
            self._written, self._kept = written, monotonic()

    def _write(self) -> dict[str, object]:
        return {
            "format": _FORMAT,
            "batch": self.batch,
            "inputs": {name: one.write() for name, one in self.inputs.items()},
            "conditions": {text: one.write() for text, one in self.conditions.counted.items()},
        }


def load_measured(directory: Path) -> Measured:
    """What a checkpoint has kept; nothing, if there is none or it cannot be read."""
    found = Measured(path=directory / STATISTICS_FILE)
    with suppress(OSError, ValueError, RecursionError, OverflowError):
        match json.loads((directory / STATISTICS_FILE).read_bytes()):
            case {
                "format": int(format_),
                "batch": int(batch),
                "inputs": dict(inputs),
                "conditions": dict(conditions),
            } if format_ == _FORMAT:
                read = {name: Observed.read(_mapping(one)) for name, one in inputs.items()}
                counted = {t: Counted.read(_mapping(one)) for t, one in conditions.items()}
                found.inputs, found.batch = read, batch
                found.conditions.go_on(counted)
            case _:
                pass
    return found


def _mapping(found: object) -> Mapping[str, object]:
    if not isinstance(found, dict):
        raise ValueError(f"{found} is no mapping")  # noqa: TRY004 — it was written so
    return found
