"""The contract of a connector: what rows can be read from or written to, said in one value.

A connector says its name, what it can be, its options with their types, what it guarantees as a
sink, whether it can go back to a position as a source, and which engines have it. What it says is
checked when a stream, relation or query is created (``check.py``); how rows are read and written is
the matter of the engines, each of which has a table from connectors to readers and writers. A
connector of another package brings its own reader and writer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import polars as pl

    from tidemill.connectors.options import Option, Value

__all__ = [
    "Connector",
    "Engine",
    "Given",
    "Guarantee",
    "Positions",
    "Reader",
    "SinkSide",
    "SourceSide",
    "Take",
    "Use",
    "Writer",
]


class Engine(StrEnum):
    """Where queries run."""

    LOCAL = "local"
    SPARK = "spark"


class Use(StrEnum):
    """What a statement uses a connector for."""

    STREAM = "the source of a stream"
    RELATION = "the source of a relation"
    SINK = "a sink"


class Guarantee(StrEnum):
    """How often a row of an answer is there, whatever fails.

    A batch that has failed is delivered again, under its number and with its rows. Files of a
    batch are replaced; whatever else has taken the batch already gets it a second time.
    """

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    SESSION = "in this session"  # exactly once, until the session ends


class Positions(StrEnum):
    """Whether a source gives the same rows again from a position that was noted."""

    REPLAYABLE = "replayable"
    FORMAT = "as the format says"
    NONE = "none"  # rows that were not processed when a run stops are lost


Given: TypeAlias = "Mapping[str, Value]"
"""The values of the options, by name: those that are given, and the defaults of others."""

Reader: TypeAlias = "Callable[[Given], Iterable[pl.DataFrame]]"
"""Reads the rows of a source, batch by batch, for the local engine."""

Take: TypeAlias = "Callable[[pl.DataFrame, int], object]"
"""Takes the new rows of a batch and its number; a batch may come twice, with the same number."""

Writer: TypeAlias = "Callable[[Given], Take]"
"""Opens a sink: what takes its batches. Opening writes nothing."""


@dataclass(frozen=True, slots=True)
class SourceSide:
    """A connector as a source.

    Attributes:
        options: What can be said, those without names in their order.
        positions: Whether it can go back to a position.
        relations: Whether relations can be read from it, too.
        read: For a connector of another package, how the local engine reads it, and both engines
            read a relation.
        format: For a connector of another package, the format of Spark's that reads it, with the
            options that are given.
    """

    options: tuple[Option, ...]
    positions: Positions
    relations: bool = True
    read: Reader | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class SinkSide:
    """A connector as a sink.

    Attributes:
        options: What can be said, those without names in their order.
        guarantee: How often a row is there.
        open: For a connector of another package, how both engines write to it.
        format: For a connector of another package, the format of Spark's that writes it.
    """

    options: tuple[Option, ...]
    guarantee: Guarantee
    open: Writer | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Connector:
    """What rows can be read from or written to.

    Attributes:
        name: What it is called, in lower case.
        documentation: What it is, in one sentence without a full stop.
        source: What it is as a source, if it can be one.
        sink: What it is as a sink, if it can be one.
        engines: Which engines have it.
        passes_options: Whether options that are not listed are passed on as they were written.
    """

    name: str
    documentation: str
    source: SourceSide | None = None
    sink: SinkSide | None = None
    engines: frozenset[Engine] = frozenset(Engine)
    passes_options: bool = False

    def options(self, use: Use) -> tuple[Option, ...] | None:
        """The options it has for a use; ``None`` if it cannot be used so."""
        if use is Use.SINK:
            return None if self.sink is None else self.sink.options
        if self.source is None or (use is Use.RELATION and not self.source.relations):
            return None
        return self.source.options

    @property
    def holds_secrets(self) -> bool:
        """Whether a value that is given to it may be a secret."""
        sides = (self.options(Use.STREAM) or (), self.options(Use.SINK) or ())
        return self.passes_options or any(option.secret for side in sides for option in side)
