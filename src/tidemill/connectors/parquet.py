"""``parquet``: the Parquet files of a directory."""

from __future__ import annotations

from tidemill.connectors.connector import Connector
from tidemill.connectors.files import FILES_SINK, FILES_SOURCE

__all__ = ["PARQUET"]

PARQUET = Connector("parquet", "Parquet files", FILES_SOURCE, FILES_SINK)
