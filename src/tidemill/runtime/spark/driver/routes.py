"""Routes: which channels of answers go where.

Several channels may go to one sink, if several instances of a query are at work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar, assert_never

from tidemill.runtime.callback import CallbackSink
from tidemill.runtime.console import ConsoleSink
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.sinks import FormatSink, TableSink
from tidemill.runtime.spark.worker.sink_writer import SinkWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.runtime.sinks import Sink

__all__ = ["Route", "Routes", "routes_of"]


_Sink = TypeVar("_Sink")


@dataclass(frozen=True, slots=True)
class Route(Generic[_Sink]):
    """A sink, and the channels whose rows it gets.

    Attributes:
        sink: The sink.
        channels: The channels.
    """

    sink: _Sink
    channels: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Routes:
    """Where answers go: to files by their channels, to others by their queries."""

    files: dict[str, tuple[FileSink, ...]] = field(default_factory=dict)
    callbacks: dict[str, Route[CallbackSink]] = field(default_factory=dict)
    consoles: dict[str, Route[ConsoleSink]] = field(default_factory=dict)
    formats: dict[str, Route[FormatSink]] = field(default_factory=dict)
    tables: dict[str, Route[TableSink]] = field(default_factory=dict)
    memory: list[str] = field(default_factory=list)

    def kept(self) -> frozenset[str]:
        """The channels that the driver needs."""
        named = (channel for route in self.called() for channel in route.channels)
        tables = (channel for route in self.tables.values() for channel in route.channels)
        return frozenset([*named, *tables, *self.memory])

    def called(self) -> list[Route[CallbackSink] | Route[ConsoleSink]]:
        """What is called here in the driver, in order."""
        return [*self.callbacks.values(), *self.consoles.values()]

    def only_formats(self) -> frozenset[str]:
        """The channels that nobody but formats of Spark's is to have."""
        return frozenset(self._to_formats()) - self.kept()

    def sink_writer(self) -> SinkWriter:
        """Where workers let the answers out."""
        return SinkWriter(self.files, self.kept(), self._to_formats())

    def _to_formats(self) -> list[str]:
        return [channel for route in self.formats.values() for channel in route.channels]


def routes_of(channels: Mapping[str, str], sinks: Mapping[str, Sink]) -> Routes:
    """Where the answers of queries go.

    Args:
        channels: The channel of each query's answer.
        sinks: Where the answers go that are not for memory.
    """
    routes = Routes()
    for query, channel in channels.items():
        sink = sinks.get(query)
        match sink:
            case None:
                routes.memory.append(channel)
            case FileSink():
                routes.files[channel] = (*routes.files.get(channel, ()), sink)
            case CallbackSink():
                routes.callbacks.setdefault(sink.query, Route(sink)).channels.append(channel)
            case ConsoleSink():
                routes.consoles.setdefault(sink.query, Route(sink)).channels.append(channel)
            case TableSink():
                routes.tables.setdefault(sink.query, Route(sink)).channels.append(channel)
            case FormatSink():
                routes.formats.setdefault(sink.query, Route(sink)).channels.append(channel)
            case _:
                assert_never(sink)
    return routes
