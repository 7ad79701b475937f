"""State at rest: what operators remember, in a store, from batch to batch. No code, ever.

What operators remember is a list of immutable segments. The new ones are written to the store in
one pack (``packs.py``), and copies of packs may be kept where they are read sooner. A manifest in
JSON says what there is:

    {"format": 3, "token": …, "packs": {pack: bytes}, …,
     "operators": {name: {"watermark": …, "numbers": {…},
                          "tables": {name: {"segments": […], "stored": [place, …], …}}}}}

A state that remembers nothing by its nature is not listed; one that is empty is. A pack has a name
that no other attempt at the same batch uses, so a copy is what its name says, or it is not there.

Law:    a state that was saved and filled again behaves like the state itself, and saving it again
        writes no segment.
Space:  at least half of a pack is in use. What is left of others is written anew, so that a segment
        is written as often as the logarithm of its size, at most.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypedDict

import pyarrow as pa

from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.physical.state.damaged import DamagedError
from tidemill.physical.state.packs import Place, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    import polars as pl

    from tidemill.physical.operator import State

__all__ = [
    "FORMAT",
    "Copies",
    "Manifest",
    "Remembered",
    "Saved",
    "SavedState",
    "StateStore",
    "read_manifest",
]

FORMAT = 3
"""The version of the manifest; a later one can read an earlier one's state."""


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


class Copies(Protocol):
    """Where copies of packs are kept, which may be lost at any time."""

    def read(self, name: str) -> pa.Buffer | None:
        """The bytes of a pack, if it is here."""
        ...

    def write(self, name: str, blob: bytes) -> None:
        """Keep a pack."""
        ...

    def remove(self, name: str) -> None:
        """Forget a pack."""
        ...


class Remembered(NamedTuple):
    """What an operator, or a stack of them, remembers, and how far time has come for it."""

    state: State
    watermark: Time


_Key: TypeAlias = tuple[str, str, int]
"""A segment, by operator, table and number."""


class Saved:
    """Which segments of some states are stored, and where.

    Attributes:
        stored: Where each segment is on the store.
        packs: How many bytes each pack on the store has.
        token: What the manifest that it equals is called; another token means another state.
    """

    def __init__(self) -> None:
        self.stored: dict[_Key, Place] = {}
        self.packs: dict[str, int] = {}
        self.token = ""

    def save(
        self,
        states: Mapping[str, Remembered],
        store: StateStore,
        token: str,
        *,
        copies: Copies | None = None,
        facts: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Write what is new, forget what is over, and say what there is.

        Args:
            states: The states by name.
            store: Where they are kept.
            token: A name for these states that no others have.
            copies: Where copies are kept.
            facts: What the manifest is to say besides.
        """
        alive = {
            (operator, name, segment.name): segment.frame
            for operator, (state, _) in states.items()
            for name, table in state.tables.items()
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
            if copies is not None:
                copies.write(pack, blob)
            self.packs[pack] = len(blob)
            self.stored |= {new[number]: place for number, place in places}
        for pack in self.packs.keys() - {place.pack for place in self.stored.values()}:
            del self.packs[pack]
            store.remove(pack)
            if copies is not None:
                copies.remove(pack)
        self.token = token
        store.write_manifest(json.dumps({**facts, **self._manifest(states)}, sort_keys=True))

    def frames(self, states: Mapping[str, Remembered]) -> dict[Place, pl.DataFrame]:
        """The rows of each segment that is stored, by its place."""
        return {
            self.stored[operator, name, segment.name]: segment.frame
            for operator, (state, _) in states.items()
            for name, table in state.tables.items()
            for segment in table.segments()
            if (operator, name, segment.name) in self.stored
        }

    def _used(self, alive: Container[_Key]) -> Counter[str]:
        """How many bytes of each pack are in use."""
        used: Counter[str] = Counter()
        for key, place in self.stored.items():
            if key in alive:
                used[place.pack] += place.length
        return used

    def _manifest(self, states: Mapping[str, Remembered]) -> dict[str, object]:
        operators = {
            name: {
                "watermark": watermark,
                "numbers": state.numbers,
                "tables": {
                    table_name: {
                        **table.manifest(),
                        "stored": [self.stored[name, table_name, s.name] for s in table.segments()],
                    }
                    for table_name, table in state.tables.items()
                },
            }
            for name, (state, watermark) in states.items()
            if state.remembers
        }
        return {
            "format": FORMAT,
            "token": self.token,
            "packs": self.packs,
            "operators": operators,
        }


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a store holds.

    Attributes:
        facts: What it says besides.
        states: The states at rest, by the names of their operators or stacks.
        token: What it is called.
        packs: How many bytes each pack has.
    """

    facts: Mapping[str, object]
    states: Mapping[str, SavedState]
    token: str
    packs: dict[str, int]

    def saved(self, states: Mapping[str, Remembered]) -> Saved:
        """Where the segments are of states that were filled; of others it is not said."""
        saved = Saved()
        saved.token, saved.packs = self.token, dict(self.packs)
        for name in states.keys() & self.states.keys():
            saved.stored |= dict(self.states[name].places(name, states[name].state))
        return saved


def read_manifest(
    store: StateStore,
    *,
    copies: Copies | None = None,
    at_hand: Mapping[Place, pl.DataFrame] = MappingProxyType({}),
) -> Manifest | None:
    """What a store holds; ``None`` if nothing was saved.

    Segments are read when a state is filled, from where they come soonest.

    Args:
        store: Where states are kept.
        copies: Where copies are kept.
        at_hand: Segments that are in memory, by their places on the store.

    Raises:
        RunError: It was saved by a version that this one cannot read.
        DamagedError: It is not what was written.
    """
    text = store.manifest()
    if text is None:
        return None
    try:
        found = json.loads(text)
        version = found.pop("format")
        if version != FORMAT:
            raise RunError(
                f"the checkpoint has format {version}, and this version reads {FORMAT}",
                hint="go on with the version that wrote it, or choose a new checkpoint",
            )
        source = _Segments(store, copies, at_hand)
        entries, token, packs = (found.pop(key) for key in ("operators", "token", "packs"))
        states = {name: SavedState(name, entry, source) for name, entry in entries.items()}
    except _DAMAGE as error:
        raise DamagedError(f"the manifest: {type(error).__name__}: {error}") from error
    return Manifest(found, states, token, packs)


class _Segments:
    """Reads segments, from memory or a copy if they are there."""

    def __init__(
        self, store: StateStore, copies: Copies | None, known: Mapping[Place, pl.DataFrame]
    ) -> None:
        self._store = store
        self._copies = copies
        self._known = known
        self._packs: dict[str, pa.Buffer] = {}

    def __getitem__(self, place: Place) -> pl.DataFrame:
        if place in self._known:
            return self._known[place]
        if place.pack not in self._packs:
            copy = None if self._copies is None else self._copies.read(place.pack)
            self._packs[place.pack] = copy or self._fetched(place.pack)
        try:
            return unpacked(self._packs[place.pack], place)
        except DamagedError:
            self._packs[place.pack] = self._fetched(place.pack)
            return unpacked(self._packs[place.pack], place)

    def _fetched(self, pack: str) -> pa.Buffer:
        """A pack from the store, of which a copy is kept."""
        blob = self._store.read(pack)
        if self._copies is not None:
            self._copies.write(pack, blob)
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


_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""What goes wrong if a manifest is not what was written, or a pack is not there."""


class SavedState:
    """The state of an operator, or of a stack of them, at rest.

    Attributes:
        numbers: Its numbers.
        watermark: How far time had come.
    """

    def __init__(self, name: str, entry: _Entry, source: _Segments) -> None:
        self._name = name
        self._tables = entry["tables"]
        self._source = source
        self.numbers: Mapping[str, int] = dict(entry["numbers"])
        self.watermark = Time(entry["watermark"])

    def fill(self, state: State) -> None:
        """Fill a new state with it.

        Raises:
            DamagedError: It is not what was written, or not the state of this operator.
        """
        try:
            state.take_shape(self._tables.keys())
        except DamagedError as error:
            raise DamagedError(f"operator {self._name}: {error}") from error
        if self._tables.keys() != state.tables.keys():
            raise DamagedError(
                f"operator {self._name} has the tables {_names(self._tables)}, and needs "
                f"{_names(state.tables)}"
            )
        state.numbers = dict(self.numbers)
        for name, table in state.tables.items():
            saved = self._tables[name]
            try:
                table.restore(saved, [self._source[Place(*place)] for place in saved["stored"]])
            except (*_DAMAGE, DamagedError) as error:
                kind = "" if isinstance(error, DamagedError) else f"{type(error).__name__}: "
                where = f'table "{name}" of operator {self._name}'
                raise DamagedError(f"{where}: {kind}{error}") from error

    def places(self, operator: str, state: State) -> Iterator[tuple[_Key, Place]]:
        """Where the segments of a state are stored; what was written anew on filling is not yet."""
        for name, table in state.tables.items():
            saved = self._tables[name]
            stored = dict(zip(saved["segments"], saved["stored"], strict=True))
            for segment in table.segments():
                if segment.name in stored:
                    yield (operator, name, segment.name), Place(*stored[segment.name])


def _names(tables: Mapping[str, object]) -> str:
    return ", ".join(f'"{name}"' for name in tables) or "none"
