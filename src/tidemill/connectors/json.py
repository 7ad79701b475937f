"""``json``: the JSON files of a directory."""

from __future__ import annotations

from tidemill.connectors.connector import Connector
from tidemill.connectors.files import FILES_SINK, FILES_SOURCE

__all__ = ["JSON"]

JSON = Connector("json", "Files with one JSON object a line", FILES_SOURCE, FILES_SINK)
