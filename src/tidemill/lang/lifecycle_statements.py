"""Statements about queries that live: they are changed, planned again, started and stopped.

They are part of ``statements``, and are imported from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.errors import Span
    from tidemill.lang.statements import Name, Provenance

__all__ = [
    "AlterProvenance",
    "AlterQuery",
    "Change",
    "Instant",
    "Lifecycle",
    "Migration",
    "PauseQuery",
    "ReplanQuery",
    "ResumeQuery",
    "StartMode",
    "StartQuery",
    "StopMode",
    "StopQuery",
]


@dataclass(frozen=True, slots=True)
class Instant:
    """A point in time as it was written, in microseconds since 1970; never negative."""

    microseconds: int
    span: Span | None = field(default=None, compare=False, repr=False)


class Change(Enum):
    """How an old and a new version of a query follow each other."""

    IMMEDIATE = "IMMEDIATE"
    DRAIN = "DRAIN"
    QUERY_ORDER = "QUERY ORDER"
    STREAM_ORDER = "STREAM ORDER"
    GRACEFUL = "GRACEFUL"
    GRACEFUL_DRAIN = "GRACEFUL DRAIN"
    EXACT = "EXACT"


class StartMode(Enum):
    """Which windows a query that starts answers from."""

    FRESH = "FRESH"
    COLD = "COLD"
    WARM = "WARM"
    HISTORY = "WITH HISTORY"


class StopMode(Enum):
    """What becomes of the windows that are open when a query stops."""

    IMMEDIATE = "IMMEDIATE"
    DRAIN = "DRAIN"


class Migration(Enum):
    """How a query goes from one plan to another that means the same."""

    GENMIG = "GENMIG"
    REPLAY = "REPLAY"
    MOVING_STATE = "MOVING STATE"
    PARALLEL_TRACK = "PARALLEL TRACK"
    AUTO = "AUTO"


@dataclass(frozen=True, slots=True)
class AlterQuery:
    """ALTER QUERY name AS query [USING variant] [AT instant]."""

    name: Name
    query: exp.Expr
    using: Change | None = None
    at: Instant | None = None


@dataclass(frozen=True, slots=True)
class ReplanQuery:
    """ALTER QUERY name REPLAN [USING migration]; without USING it is AUTO."""

    name: Name
    using: Migration | None = None


@dataclass(frozen=True, slots=True)
class AlterProvenance:
    """ALTER QUERY name WITH PROVENANCE [KEEP …] | WITHOUT PROVENANCE.

    Attributes:
        provenance: For how long what rows are made of is kept from now on; ``None`` if it is not.
    """

    name: Name
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class StartQuery:
    """START QUERY name [FRESH | COLD | WARM | WITH HISTORY] [AT instant]."""

    name: Name
    mode: StartMode | None = None
    at: Instant | None = None


@dataclass(frozen=True, slots=True)
class StopQuery:
    """STOP QUERY name [IMMEDIATE | DRAIN] [AT instant]."""

    name: Name
    mode: StopMode | None = None
    at: Instant | None = None


@dataclass(frozen=True, slots=True)
class PauseQuery:
    """PAUSE QUERY name [IMMEDIATE | DRAIN]."""

    name: Name
    mode: StopMode | None = None


@dataclass(frozen=True, slots=True)
class ResumeQuery:
    """RESUME QUERY name [WARM | COLD | FRESH]."""

    name: Name
    mode: StartMode | None = None


Lifecycle: TypeAlias = (
    AlterQuery | ReplanQuery | AlterProvenance | StartQuery | StopQuery | PauseQuery | ResumeQuery
)
