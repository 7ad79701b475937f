"""Saved state: a manifest in JSON, and each segment once, in Arrow's IPC format. No code, ever.

Law: a state that was saved and loaded behaves like the state itself, and saving it again gives
equal segments under equal names.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.physical.operator import State

__all__ = ["FORMAT", "Saved", "load_state", "save_state"]

FORMAT = 1
"""The version of the format; a later one can read an earlier one's state."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A state at rest.

    Attributes:
        manifest: What there is, as JSON.
        segments: The rows by the name of their segment, as Arrow IPC; a name always means the same
            rows, so one that is stored already need not be stored again. They are written when
            they are asked for, so that those that are not asked for cost nothing.
    """

    manifest: str
    segments: Mapping[str, bytes]


class _Written(Mapping[str, bytes]):
    """Segments as bytes, made when asked for; segments never change."""

    __slots__ = ("_frames",)

    def __init__(self, frames: dict[str, pl.DataFrame]) -> None:
        self._frames = frames

    def __getitem__(self, name: str) -> bytes:
        return _to_bytes(self._frames[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)


def save_state(state: State) -> Saved:
    """The state as a manifest and segments."""
    manifest = {
        "format": FORMAT,
        "numbers": state.numbers,
        "tables": {name: table.manifest() for name, table in state.tables.items()},
    }
    segments = {
        f"{name}/{segment.name}": segment.frame
        for name, table in state.tables.items()
        for segment in table.segments()
    }
    return Saved(json.dumps(manifest, sort_keys=True), _Written(segments))


def load_state(state: State, saved: Saved) -> None:
    """Fill a new state with what was saved."""
    manifest = json.loads(saved.manifest)
    assert manifest["format"] == FORMAT, "there is only one format so far"
    state.numbers = dict(manifest["numbers"])
    for name, table in state.tables.items():
        entry = manifest["tables"][name]
        frames = [_from_bytes(saved.segments[f"{name}/{s}"]) for s in entry["segments"]]
        table.restore(entry, frames)


def _to_bytes(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return buffer.getvalue()


def _from_bytes(data: bytes) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(data))
