"""The keeper: saves the state of a partition in the state store, and opens it again.

What operators remember is a list of immutable segments. The new ones of a batch are written in one
pack to the store, which is Spark's state store and the truth, and to the cache, files on this host
that are mapped into memory. A manifest in JSON says which segments there are. When a partition is
opened again, by this process or another one, segments come from the cache, or from the store where
the cache has lost them. A pack has a name that no other attempt at the same batch uses, so a file
in the cache is what its name says, or it is not there.

Law:    a stage that was saved and opened again behaves like the stage itself.
Space:  at least half of a pack is in use. What is left of others is written anew, so that a segment
        is written as often as the logarithm of its size, at most.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict

import pyarrow as pa

from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.runtime.spark.state.packs import DamagedError, Place, packed, unpacked
from tidemill.runtime.spark.worker.stage import Progress, Stage

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    import polars as pl

    from tidemill.physical.operator import State
    from tidemill.physical.state.table import Table
    from tidemill.runtime.spark.state.cache import Cache
    from tidemill.runtime.spark.worker.deployment import Deployment

__all__ = ["FORMAT", "Kept", "StateStore", "open_stage"]

FORMAT = 3
"""The version of the manifest."""


_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, AssertionError, DamagedError)
"""What goes wrong if a manifest is not what was written, or a pack is not there."""


class StateStore(Protocol):
    """Where the state of one partition is kept for good."""

    def manifest(self) -> str | None:
        """What was written last; ``None`` at first."""
        ...

    def write_manifest(self, text: str) -> None:
        """Replace the manifest."""
        ...

    def read(self, name: str) -> bytes:
        """A pack.

        Raises:
            LookupError: It is not there.
        """
        ...

    def write(self, name: str, blob: bytes) -> None:
        """A new pack."""
        ...

    def remove(self, name: str) -> None:
        """Forget a pack."""
        ...


_Key: TypeAlias = tuple[str, str, int]
"""A segment, by operator, table and number."""


class Kept:
    """A stage and where its segments are stored.

    Attributes:
        stage: The stage.
        stored: Where each segment is on the store.
        packs: How many bytes each pack on the store has.
        token: What the manifest that it equals is called; another token means another state.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.stored: dict[_Key, Place] = {}
        self.packs: dict[str, int] = {}
        self.token = ""

    def save(self, store: StateStore, cache: Cache, token: str) -> None:
        """Write what is new, forget what is over, and say what there is.

        Args:
            store: Where the state is kept.
            cache: Where copies are kept.
            token: A name for this state that no other state has.
        """
        alive = {
            (operator, name, segment.name): segment.frame
            for operator, name, table in self._tables()
            for segment in table.segments()
        }
        used = self._used(alive.keys())
        keep = {pack for pack, size in self.packs.items() if 2 * used[pack] >= size}
        self.stored = {
            key: place for key, place in self.stored.items() if key in alive and place.pack in keep
        }
        new = [key for key in alive if key not in self.stored]
        for pack, blob, places in packed(token, (alive[key] for key in new)):
            store.write(pack, blob)
            cache.write(pack, blob)
            self.packs[pack] = len(blob)
            self.stored |= {new[number]: place for number, place in places}
        for pack in self.packs.keys() - {place.pack for place in self.stored.values()}:
            del self.packs[pack]
            store.remove(pack)
            cache.remove(pack)
        self.token = token
        store.write_manifest(json.dumps(self._manifest(), sort_keys=True))

    def frames(self) -> dict[Place, pl.DataFrame]:
        """The rows of each segment, by its place on the store."""
        return {
            self.stored[operator, name, segment.name]: segment.frame
            for operator, name, table in self._tables()
            for segment in table.segments()
            if (operator, name, segment.name) in self.stored
        }

    def _tables(self) -> Iterator[tuple[str, str, Table]]:
        for engine in self.stage.engines:
            for operator, state in engine.states.items():
                for name, table in state.tables.items():
                    yield operator, name, table

    def _used(self, alive: Container[_Key]) -> Counter[str]:
        """How many bytes of each pack are in use."""
        used: Counter[str] = Counter()
        for key, place in self.stored.items():
            if key in alive:
                used[place.pack] += place.length
        return used

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
            "packs": self.packs,
            "operators": operators,
        }


def open_stage(  # noqa: PLR0913 — which stage, and three places for its state
    deployment: Deployment,
    number: int,
    pid: int,
    store: StateStore,
    cache: Cache,
    *,
    at_hand: Mapping[Place, pl.DataFrame] = MappingProxyType({}),
) -> Kept:
    """The stage as it was saved last; operators that were not there begin empty.

    Args:
        deployment: What runs where.
        number: The stage.
        pid: The partition.
        store: Where its state is kept.
        cache: Where copies are kept.
        at_hand: Segments that are in memory, by their places on the store.

    Raises:
        RunError: It is damaged, or was saved by a version that this one cannot read.
    """
    kept = Kept(Stage(deployment, number, pid))
    text = store.manifest()
    if text is None:
        return kept
    try:
        _restore(kept, text, store, cache, at_hand)
    except _DAMAGE as error:
        where = f"the state of partition {pid} of stage {number}"
        raise RunError(
            f"{where} in the checkpoint is damaged: {type(error).__name__}: {error}",
            hint="restore the checkpoint from a copy, or choose a new one",
        ) from error
    return kept


def _restore(
    kept: Kept, text: str, store: StateStore, cache: Cache, at_hand: Mapping[Place, pl.DataFrame]
) -> None:
    """Fill a new stage with what a manifest describes."""
    manifest = json.loads(text)
    if manifest["format"] != FORMAT:
        raise RunError(
            f"the checkpoint has format {manifest['format']}, and this version reads {FORMAT}",
            hint="go on with the version that wrote it, or choose a new checkpoint",
        )
    kept.token, kept.packs = manifest["token"], manifest["packs"]
    kept.stage.progress = Progress(**manifest["progress"])
    known = manifest["operators"]
    source = _Segments(store, cache, at_hand)
    remembered = {name: _AtRest(entry, source) for name, entry in known.items()}
    for engine in kept.stage.engines:
        engine.restore(remembered)
        for name in engine.states.keys() & known.keys():
            kept.stored |= dict(_places(name, engine.states[name], known[name]))


class _Segments:
    """Reads segments, from memory or the cache if they are there."""

    def __init__(
        self, store: StateStore, cache: Cache, known: Mapping[Place, pl.DataFrame]
    ) -> None:
        self._store = store
        self._cache = cache
        self._known = known
        self._packs: dict[str, pa.Buffer] = {}

    def __getitem__(self, place: Place) -> pl.DataFrame:
        if place in self._known:
            return self._known[place]
        if place.pack not in self._packs:
            self._packs[place.pack] = self._cache.read(place.pack) or self._fetched(place.pack)
        try:
            return unpacked(self._packs[place.pack], place)
        except DamagedError:
            self._packs[place.pack] = self._fetched(place.pack)
            return unpacked(self._packs[place.pack], place)

    def _fetched(self, pack: str) -> pa.Buffer:
        """A pack from the store, of which a copy is kept."""
        blob = self._store.read(pack)
        self._cache.write(pack, blob)
        return pa.py_buffer(blob)


class _Entry(TypedDict):
    """What a manifest says about an operator."""

    watermark: int
    numbers: dict[str, int]
    tables: dict[str, _TableEntry]


class _TableEntry(TypedDict):
    """What a manifest says about a table."""

    segments: list[int]
    stored: list[tuple[str, int, int, str]]


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
            table.restore(saved, [self._source[Place(*place)] for place in saved["stored"]])


def _places(operator: str, state: State, entry: _Entry) -> Iterator[tuple[_Key, Place]]:
    """Where the segments of a state are stored; what was written anew on loading is not yet."""
    for name, table in state.tables.items():
        saved = entry["tables"][name]
        stored = dict(zip(saved["segments"], saved["stored"], strict=True))
        for segment in table.segments():
            if segment.name in stored:
                yield (operator, name, segment.name), Place(*stored[segment.name])
