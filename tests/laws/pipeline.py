"""The stages of the pipeline on Spark, without Spark: their state is kept in dictionaries."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stores import StateStore
from tidemill.runtime.spark.state.cache import Cache
from tidemill.runtime.spark.state.keeper import Kept, open_stage
from tidemill.runtime.spark.worker.wire import from_arrow, to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tidemill.runtime.spark.worker.deployment import Deployment
    from tidemill.runtime.spark.worker.wire import Message

__all__ = ["PIDS", "Pipeline", "through_the_wire"]

PIDS = (2, 3, 4, 6)
"""The numbers of partitions."""


class Pipeline:
    """All partitions of all stages, with their state at rest between batches."""

    def __init__(self, deployed: Deployment, directory: Path) -> None:
        self.deployed = deployed
        self.directory = directory
        self.stores: dict[tuple[int, int], StateStore] = {}
        self.open: dict[tuple[int, int], Kept] = {}
        self.stepped: str | None = None

    def step(self, number: int, messages: list[Message], *, reopen: bool) -> list[Message]:
        """The messages that come out of the last stage."""
        for stage in range(1, self.deployed.stages + 1):
            out: list[Message] = []
            for pid in self.deployed.pids:
                place = stage, pid
                store = self.stores.setdefault(place, StateStore())
                cache = Cache(self.directory / f"{stage}-{pid}", limit=1 << 30)
                if reopen or place not in self.open:
                    self.open[place] = open_stage(
                        self.deployed, stage, pid, store, cache, ran=self._ran()
                    )
                kept = self.open[place]
                out += kept.stage.step([m for m in messages if m.pid == pid])
                kept.save(store, cache, f"t{number}")
                assert_little_waste(kept, store)
            messages = through_the_wire(out)
        self.stepped = self.deployed.version
        return messages

    def _ran(self) -> int:
        """The last epoch that has run; in another version all queries may be of one epoch."""
        is_same = self.stepped == self.deployed.version
        return self.deployed.graph.epoch if is_same else -1


def assert_little_waste(kept: Kept, store: StateStore) -> None:
    """What is on the store is in use, at least half of each pack."""
    assert kept.saved.packs == {name: len(blob) for name, blob in store.segments.items()}
    used = Counter(dict.fromkeys(kept.saved.packs, 0))
    for place in kept.saved.stored.values():
        used[place.pack] += place.length
    assert all(2 * used[name] >= size for name, size in kept.saved.packs.items())


def through_the_wire(messages: Iterable[Message]) -> list[Message]:
    """The messages as they arrive."""
    return list(from_arrow(to_arrow(messages)))
