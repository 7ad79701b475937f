"""The language: text to statements, and back.

Statements are the dataclasses of ``statements``; the queries and expressions inside them are
sqlglot trees, with the nodes of ``windows`` for what SQL does not have.
"""

from tidemill.lang.dialect import Tidemill
from tidemill.lang.parse import parse, parse_one, parse_query, parse_script
from tidemill.lang.spans import span_of, value_span
from tidemill.lang.unparse import unparse
from tidemill.lang.windows import StreamOperator, WindowClause, Windowed

__all__ = [
    "StreamOperator",
    "Tidemill",
    "WindowClause",
    "Windowed",
    "parse",
    "parse_one",
    "parse_query",
    "parse_script",
    "span_of",
    "unparse",
    "value_span",
]
