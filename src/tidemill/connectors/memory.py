"""``memory``: a frame that was put into the session, or an answer that the session keeps."""

from __future__ import annotations

from tidemill.connectors.connector import Connector, Guarantee, Positions, SinkSide, SourceSide
from tidemill.connectors.options import Option, Text

__all__ = ["MEMORY"]

_NAME = Option(
    "name",
    Text(),
    "What the frame was put as: session.put(name, frame)",
    otherwise="the name of the stream or relation",
    positional=True,
)

MEMORY = Connector(
    "memory",
    "Frames that were put into the session; as a sink, the answer that it keeps",
    SourceSide((_NAME,), Positions.REPLAYABLE),
    SinkSide((), Guarantee.SESSION),
)
