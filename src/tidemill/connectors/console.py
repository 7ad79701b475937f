"""``console``: standard output of the process that runs the session."""

from __future__ import annotations

from tidemill.connectors.connector import Connector, Guarantee, SinkSide
from tidemill.connectors.forms import FORM
from tidemill.connectors.options import Option, Whole

__all__ = ["CONSOLE"]

_ROWS = Option("rows", Whole(), "How many rows of a batch are printed at most", default=20)

CONSOLE = Connector(
    "console",
    "Tables on standard output, one for each batch that has rows",
    sink=SinkSide((_ROWS, FORM), Guarantee.AT_LEAST_ONCE),
)
