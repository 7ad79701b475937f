"""State at rest in memory: the production path, with a dictionary as its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.model.time import Time
from tidemill.physical.state.at_rest import Remembered, Saved, read_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.engine.engine import Engine
    from tidemill.physical.operator import State
    from tidemill.physical.state.at_rest import Manifest, SavedState

__all__ = ["StateStore", "at_rest", "opened", "refill", "reopen", "save", "save_again"]


class StateStore:
    """State that is kept in a dictionary."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.segments: dict[str, bytes] = {}

    def manifest(self) -> str | None:
        return self.text

    def write_manifest(self, text: str) -> None:
        self.text = text

    def read(self, name: str) -> bytes:
        return self.segments[name]

    def write(self, name: str, blob: bytes) -> None:
        assert name not in self.segments, "a pack is written once"
        self.segments[name] = blob

    def remove(self, name: str) -> None:
        del self.segments[name]


def opened(store: StateStore) -> Manifest:
    """What a store holds."""
    manifest = read_manifest(store)
    assert manifest is not None, "something was saved"
    return manifest


def save(state: State) -> StateStore:
    """A store with the state of one operator."""
    store = StateStore()
    Saved().save({"operator": Remembered(state, Time(0))}, store, "t0")
    return store


def refill(state: State, store: StateStore) -> None:
    """Fill a new state with what was saved."""
    opened(store).states["operator"].fill(state)


def save_again(state: State, store: StateStore) -> None:
    """Save a state that was filled from the store, under the same token."""
    manifest, states = opened(store), {"operator": Remembered(state, Time(0))}
    manifest.saved(states).save(states, store, manifest.token)


def at_rest(engine: Engine) -> Mapping[str, SavedState]:
    """What an engine remembers, saved."""
    store = StateStore()
    Saved().save(engine.remembered(), store, "t0")
    return opened(store).states


def reopen(old: Engine, new: Engine) -> None:
    """Let an engine go on with what another one has saved."""
    new.restore(at_rest(old))
