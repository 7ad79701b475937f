"""``callback``: a function of the session, called with the new rows of each batch."""

from __future__ import annotations

from tidemill.connectors.connector import Connector, Guarantee, SinkSide
from tidemill.connectors.forms import FORM
from tidemill.connectors.options import Option, Text

__all__ = ["CALLBACK"]

_NAME = Option(
    "name",
    Text(),
    "What the function is registered as: session.callback(name, function)",
    required=True,
    positional=True,
)

CALLBACK = Connector(
    "callback",
    "A function of the session, called with the new rows of each batch",
    sink=SinkSide((_NAME, FORM), Guarantee.AT_LEAST_ONCE),
)
