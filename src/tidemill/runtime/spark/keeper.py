"""The keeper: the state of a partition at rest, from batch to batch.

What operators remember is a list of immutable segments. Each is written once to the shelf, which
is Spark's state store and the truth, and once to the cache, files on this host that are mapped into
memory. A manifest in JSON says which segments there are. When a partition is opened again, by this
process or another one, segments come from the cache, or from the shelf where the cache has lost
them. A segment is stored under a name that no other attempt at the same batch uses, so a file in
the cache is what its name says, or it is not there.

Law: a stage that was saved and opened again behaves like the stage itself.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypedDict

from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.runtime.spark.stage import Progress, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from tidemill.physical.operator import State
    from tidemill.physical.state.table import Segment
    from tidemill.runtime.spark.cache import Cache
    from tidemill.runtime.spark.deployment import Deployment

__all__ = ["FORMAT", "Kept", "Shelf", "open_stage"]

FORMAT = 1
"""The version of the manifest."""


class Shelf(Protocol):
    """Where the state of one partition is kept for good."""

    def manifest(self) -> str | None:
        """What was written last; ``None`` at first."""
        ...

    def write_manifest(self, text: str) -> None:
        """Replace the manifest."""
        ...

    def read(self, name: str) -> bytes:
        """A segment."""
        ...

    def write(self, name: str, blob: bytes) -> None:
        """A new segment."""
        ...

    def remove(self, name: str) -> None:
        """Forget a segment."""
        ...


class Kept:
    """A stage and where its segments are stored.

    Attributes:
        stage: The stage.
        stored: The name of each segment on the shelf, by operator, table and number.
        token: What the manifest that it equals is called; another token means another state.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.stored: dict[tuple[str, str, int], str] = {}
        self.token = ""

    def save(self, shelf: Shelf, cache: Cache, token: str) -> None:
        """Write what is new, forget what is over, and say what there is.

        Args:
            shelf: Where the state is kept.
            cache: Where copies are kept.
            token: A name for this state that no other state has.
        """
        alive: dict[tuple[str, str, int], Segment] = {}
        for engine in self.stage.engines:
            for operator, state in engine.states.items():
                for name, table in state.tables.items():
                    alive |= {(operator, name, s.name): s for s in table.segments()}
        for key in self.stored.keys() - alive.keys():
            name = self.stored.pop(key)
            shelf.remove(name)
            cache.remove(name)
        for key in alive.keys() - self.stored.keys():
            name = f"{'.'.join(map(str, key))}.{token}"
            shelf.write(name, cache.write(name, alive[key].frame))
            self.stored[key] = name
        self.token = token
        shelf.write_manifest(json.dumps(self._manifest(), sort_keys=True))

    def frames(self) -> dict[str, pl.DataFrame]:
        """The rows of each segment, by its name on the shelf."""
        return {
            self.stored[operator, name, segment.name]: segment.frame
            for engine in self.stage.engines
            for operator, state in engine.states.items()
            for name, table in state.tables.items()
            for segment in table.segments()
            if (operator, name, segment.name) in self.stored
        }

    def _manifest(self) -> dict[str, object]:
        operators = {
            name: {
                "watermark": engine.watermarks[name],
                "numbers": state.numbers,
                "tables": {
                    table_name: {
                        **table.manifest(),
                        "stored": [self.stored[name, table_name, s.name] for s in table.segments()],
                    }
                    for table_name, table in state.tables.items()
                },
            }
            for engine in self.stage.engines
            for name, state in engine.states.items()
            if state.tables or state.numbers
        }
        return {
            "format": FORMAT,
            "token": self.token,
            "progress": asdict(self.stage.progress),
            "operators": operators,
        }


def open_stage(  # noqa: PLR0913 — which stage, and three places for its state
    deployment: Deployment,
    number: int,
    pid: int,
    shelf: Shelf,
    cache: Cache,
    *,
    at_hand: Mapping[str, pl.DataFrame] = MappingProxyType({}),
) -> Kept:
    """The stage as it was saved last; operators that were not there begin empty.

    Args:
        deployment: What runs where.
        number: The stage.
        pid: The partition.
        shelf: Where its state is kept.
        cache: Where copies are kept.
        at_hand: Segments that are in memory, by their names on the shelf.

    Raises:
        RunError: It was saved by a version that this one cannot read.
    """
    kept = Kept(Stage(deployment, number, pid))
    text = shelf.manifest()
    if text is None:
        return kept
    manifest = json.loads(text)
    if manifest["format"] != FORMAT:
        raise RunError(
            f"the checkpoint has format {manifest['format']}, and this version reads {FORMAT}",
            hint="go on with the version that wrote it, or choose a new checkpoint",
        )
    kept.token = manifest["token"]
    kept.stage.progress = Progress(**manifest["progress"])
    known = manifest["operators"]
    source = _Segments(shelf, cache, at_hand)
    remembered = {name: _AtRest(entry, source) for name, entry in known.items()}
    for engine in kept.stage.engines:
        engine.restore(remembered)
        for name in engine.states.keys() & known.keys():
            kept.stored |= dict(_places(name, engine.states[name], known[name]))
    _forget_others(kept, known, shelf, cache)
    return kept


class _Segments:
    """Reads segments, from memory or the cache if they are there."""

    def __init__(self, shelf: Shelf, cache: Cache, known: Mapping[str, pl.DataFrame]) -> None:
        self._shelf = shelf
        self._cache = cache
        self._known = known

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name in self._known:
            return self._known[name]
        frame = self._cache.read(name)
        return self._cache.restore(name, self._shelf.read(name)) if frame is None else frame


class _Entry(TypedDict):
    """What a manifest says about an operator."""

    watermark: int
    numbers: dict[str, int]
    tables: dict[str, dict[str, list[str]]]


class _AtRest:
    """The state of an operator, or of a stack of them, as a manifest describes it."""

    def __init__(self, entry: _Entry, source: _Segments) -> None:
        self._entry = entry
        self._source = source

    @property
    def numbers(self) -> Mapping[str, int]:
        """Its numbers."""
        return self._entry["numbers"]

    @property
    def watermark(self) -> Time:
        """How far time had come."""
        return Time(self._entry["watermark"])

    def fill(self, state: State) -> None:
        """Fill a new state with it."""
        state.numbers = dict(self._entry["numbers"])
        for name, table in state.tables.items():
            saved = self._entry["tables"][name]
            table.restore(saved, [self._source[stored] for stored in saved["stored"]])


def _places(
    operator: str, state: State, entry: _Entry
) -> Iterator[tuple[tuple[str, str, int], str]]:
    """Where the segments of a state are stored; what was written anew on loading is not yet."""
    for name, table in state.tables.items():
        stored = entry["tables"][name]["stored"]
        by_number = {int(place.split(".")[-2]): place for place in stored}
        for segment in table.segments():
            if segment.name in by_number:
                yield (operator, name, segment.name), by_number[segment.name]


def _forget_others(kept: Kept, known: dict[str, _Entry], shelf: Shelf, cache: Cache) -> None:
    """Remove the segments of operators that are no longer there."""
    here = set(kept.stored.values())
    for entry in known.values():
        for table in entry["tables"].values():
            for name in table["stored"]:
                if name not in here:
                    shelf.remove(name)
                    cache.remove(name)
