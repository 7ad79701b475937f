"""The sink of CREATE TABLE: the answer is kept by the engine itself.

Names that people write do not begin with @, so a table is made by CREATE TABLE only.
"""

from __future__ import annotations

from tidemill.connectors.connector import Connector, Guarantee, SinkSide
from tidemill.connectors.forms import Delivered
from tidemill.connectors.options import Choice, Option
from tidemill.lang.statements import ConnectorCall, Name

__all__ = ["ENDED_SINK", "TABLE", "TABLE_SINK"]

_FORM = Option(
    "form",
    Choice((Delivered.CHANGES.value, Delivered.RESULTS.value)),
    "What is written: changes with time and sign, from which rows with start and end are made;"
    " or these, of what has its end when it comes",
    default=Delivered.CHANGES.value,
)

TABLE = Connector(
    "@table",
    "The answer, kept by the engine for a time, to be asked for at any instant",
    sink=SinkSide((_FORM,), Guarantee.EXACTLY_ONCE),
)

TABLE_SINK = ConnectorCall(Name(TABLE.name))
ENDED_SINK = ConnectorCall(Name(TABLE.name), named=((_FORM.name, Delivered.RESULTS.value),))
"""That of a table whose rows come with their ends."""
