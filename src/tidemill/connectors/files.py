"""Files of a directory: what the connectors ``parquet``, ``csv`` and ``json`` have in common."""

from __future__ import annotations

from tidemill.connectors.connector import Guarantee, Positions, SinkSide, SourceSide
from tidemill.connectors.forms import FORM
from tidemill.connectors.options import Flag, Number, Option, Text, Whole

__all__ = ["FILES_SINK", "FILES_SOURCE", "SETTLE"]

SETTLE = 1.0
"""For how many seconds a file must not have changed, if its source does not say."""

FILES_SOURCE = SourceSide(
    (
        Option(
            "path",
            Text(),
            "A file, a directory, or a pattern with *, ? or […] in its last part",
            required=True,
            positional=True,
        ),
        Option("files_per_batch", Whole(), "How many files make a batch", default=1),
        Option(
            "settle",
            Number("seconds"),
            "For how long a file must not have changed before it is read",
            default=SETTLE,
        ),
    ),
    Positions.REPLAYABLE,
)

FILES_SINK = SinkSide(
    (
        Option(
            "path",
            Text(),
            "The directory, which belongs to one query",
            required=True,
            positional=True,
        ),
        Option(
            "replace",
            Flag(),
            "Whether a query that begins empties a directory that another one wrote",
            default=False,
        ),
        FORM,
    ),
    Guarantee.EXACTLY_ONCE,
)
