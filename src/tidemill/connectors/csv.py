"""``csv``: the CSV files of a directory."""

from __future__ import annotations

from tidemill.connectors.connector import Connector
from tidemill.connectors.files import FILES_SINK, FILES_SOURCE

__all__ = ["CSV"]

CSV = Connector(
    "csv", "CSV files with a line of column names; an empty field is NULL", FILES_SOURCE, FILES_SINK
)
