"""``spark``: every format of Spark's, by its name there; its options pass as they were written.

``spark('orc', 'data')`` can be written ``orc('data')``: a name that no other connector has is one
of Spark's formats. Whether Spark knows it, is known when Spark runs.
"""

from __future__ import annotations

from tidemill.connectors.connector import (
    Connector,
    Engine,
    Guarantee,
    Positions,
    SinkSide,
    SourceSide,
)
from tidemill.connectors.forms import FORM
from tidemill.connectors.options import Option, Text

__all__ = ["SPARK_FORMAT"]

_FORMAT = Option(
    "format",
    Text(),
    "What Spark calls the format",
    otherwise="the name before the parentheses",
    required=True,
    positional=True,
)
_PATH = Option("path", Text(), "Where, if the format has a path", positional=True)

SPARK_FORMAT = Connector(
    "spark",
    "A format of Spark's; also written as its name alone: orc(…), kafka(…)",
    SourceSide((_FORMAT, _PATH), Positions.FORMAT, relations=False),
    SinkSide((_FORMAT, _PATH, FORM), Guarantee.AT_LEAST_ONCE),
    frozenset({Engine.SPARK}),
    passes_options=True,
)
