"""The ways in which another tree can take over, or none of them."""

from __future__ import annotations

from enum import Enum

from tidemill.lang.statements import Migration

__all__ = ["RUNNING_BESIDE", "Way"]


class Way(Enum):
    """How another tree takes over."""

    OLD = "old only"
    NEW = "new only"
    GENMIG = "GENMIG"
    PARALLEL_TRACK = "PARALLEL TRACK"
    MOVING_STATE = "MOVING STATE"
    REPLAY = "REPLAY"
    ADAPT = "JoinTree.adapt"
    ADAPTING_OLD = "JoinTree, old only"


RUNNING_BESIDE = {
    Way.GENMIG: Migration.GENMIG,
    Way.PARALLEL_TRACK: Migration.PARALLEL_TRACK,
    Way.REPLAY: Migration.REPLAY,
}
"""The ways in which a second instance of the query runs."""
