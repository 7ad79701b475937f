"""The commit: how far a pipeline has come, said after each step, as a whole.

It is the part of the manifest of state that is no operator's: which step is next, what came on each
stream and how far it has been read, and up to when answers are known.

Law: a pipeline that goes on from a commit, with the state that was saved with it, gives what the
one gives that was there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tidemill.engine.ingest import Reached
from tidemill.history.replay import Replay
from tidemill.physical.state.damaged import DamagedError
from tidemill.runtime.damage import require_types
from tidemill.runtime.local.growing import Position
from tidemill.runtime.local.intake import Silent

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Commit", "StreamCommit", "read_commit", "write_commit"]


@dataclass(frozen=True, slots=True)
class StreamCommit:
    """How far a stream has come.

    Attributes:
        reached: How far time has come on it.
        silent: When something came on it.
        position: How far its source has been read.
        taken: How many files of it had been taken.
    """

    reached: Reached
    silent: Silent
    position: Position
    taken: int


@dataclass(frozen=True, slots=True)
class Commit:
    """How far a pipeline has come.

    Attributes:
        step: The number of the next step.
        now: The time of what came last.
        ran: The last epoch whose queries have run; -1 if none have.
        streams: How far each stream has come that is read.
        fed: The inputs that have had the rows of their relations.
        known: Up to when the answer of each query is known.
        ended: Whether the streams have ended.
        replays: The inputs that are being filled with kept rows.
        left: How far streams had come that were read before, whether they are read anew or not.
    """

    step: int = 0
    now: int = 0
    ran: int = -1
    streams: Mapping[str, StreamCommit] = field(default_factory=dict)
    fed: tuple[str, ...] = ()
    known: Mapping[str, int] = field(default_factory=dict)
    ended: bool = False
    replays: Mapping[str, Replay] = field(default_factory=dict)
    left: Mapping[str, Reached] = field(default_factory=dict)


def write_commit(commit: Commit) -> dict[str, object]:
    """The commit as it is written."""
    return {"commit": asdict(commit)}


def read_commit(found: Mapping[str, object]) -> Commit:
    """The commit as it was before it was written as JSON.

    Raises:
        DamagedError: It is not what was written.
    """
    match found:
        case {"commit": dict(written)}:
            pass
        case _:
            raise DamagedError("it does not say how far the streams have come")
    try:
        require_types(written, Commit)
        streams = {name: _stream(one) for name, one in written.pop("streams").items()}
        replays = {name: Replay(**one) for name, one in written.pop("replays", {}).items()}
        left = {name: Reached(**one) for name, one in written.pop("left", {}).items()}
        told = {**written, "fed": tuple(written["fed"])}
        return Commit(**told, streams=streams, replays=replays, left=left)
    except (TypeError, KeyError, AttributeError) as error:
        raise DamagedError(f"how far the streams have come: {error}") from error


def _stream(found: Mapping[str, object]) -> StreamCommit:
    match found:
        case {
            "reached": dict(reached),
            "silent": dict(silent),
            "position": dict(position),
            "taken": int(taken),
        }:
            return StreamCommit(Reached(**reached), Silent(**silent), Position(**position), taken)
        case _:
            raise TypeError(f"{found} is not how far a stream has come")
