"""The generator: syntax trees back into text, without sqlglot's translations between dialects."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp
from sqlglot import generator as sqlglot_generator
from sqlglot.helper import seq_get

from tidemill.lang.durations import duration_text
from tidemill.lang.one_time import QueryAnswer
from tidemill.lang.types import type_text
from tidemill.lang.windows import StreamOperator, WindowClause, Windowed
from tidemill.lang.words import quote_function, quote_name

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Generator"]

_TESTS = (exp.Predicate, exp.Connector, exp.Not, exp.Escape)


def _anonymous(self: sqlglot_generator.Generator, node: exp.Anonymous) -> str:
    name = quote_function(node.name)
    # Without the quotes, POSITION(a IN (b), c) would be read as POSITION(a IN b).
    if name.upper() == "POSITION" and isinstance(seq_get(node.expressions, 0), _TESTS):
        name = f'"{name}"'
    return f"{name}({self.expressions(node, flat=True)})"


def _identifier(_: sqlglot_generator.Generator, node: exp.Identifier) -> str:
    return quote_name(node.name)


def _data_type(_: sqlglot_generator.Generator, node: exp.DataType) -> str:
    return type_text(node)


def _extract(self: sqlglot_generator.Generator, node: exp.Extract) -> str:
    return f"EXTRACT({self.sql(node.this)} FROM {self.sql(node.expression)})"


def _quantified(self: sqlglot_generator.Generator, node: exp.All | exp.Any | exp.Exists) -> str:
    return f"{node.key.upper()}({self.sql(node.this)})"


def _not(self: sqlglot_generator.Generator, node: exp.Not) -> str:
    """``x NOT IN (…)`` rather than ``NOT x IN (…)``; the two are read alike."""
    test = node.this
    match test:
        case exp.Is():
            return f"{self.sql(test.this)} IS NOT {self.sql(test.expression)}"
        case exp.In():
            query = self.sql(test, "query")
            values = query or f"({self.expressions(test, flat=True)})"
            return f"{self.sql(test.this)} NOT IN {values}"
        case exp.Between():
            bounds = f"{self.sql(test, 'low')} AND {self.sql(test, 'high')}"
            return f"{self.sql(test.this)} NOT BETWEEN {bounds}"
        case exp.Like() | exp.ILike():
            return _not_like(self, test)
        case exp.Escape(this=exp.Like() | exp.ILike() as like):
            return f"{_not_like(self, like)} ESCAPE {self.sql(test.expression)}"
        case _:
            return f"NOT {self.sql(test)}"


def _not_like(self: sqlglot_generator.Generator, test: exp.Like | exp.ILike) -> str:
    return f"{self.sql(test.this)} NOT {test.key.upper()} {self.sql(test.expression)}"


def _division(self: sqlglot_generator.Generator, node: exp.Div | exp.IntDiv | exp.Mod) -> str:
    sign = {exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%"}[type(node)]
    return self.binary(node, sign)


def _window_clause(self: sqlglot_generator.Generator, node: WindowClause) -> str:
    value = str if node.frame == "ROWS" else duration_text
    parts = []
    if node.partition_by:
        parts.append(f"PARTITION BY {self.expressions(node, key='partition_by', flat=True)}")
    parts.append(node.frame)
    if node.frame != "NOW":
        parts.append("UNBOUNDED" if node.size is None else value(node.size))
    if node.slide is not None:
        parts.append(f"SLIDE {value(node.slide)}")
    if node.internal:
        parts.append("INTERNAL")
    return f"[{' '.join(parts)}]"


def _windowed(self: sqlglot_generator.Generator, node: Windowed) -> str:
    return f"{self.sql(node.this)} {self.sql(node.window)}{_alias(self, node)}"


def _stream_operator(self: sqlglot_generator.Generator, node: StreamOperator) -> str:
    window = self.sql(node, "window")
    text = f"{node.kind}{window}({self.sql(node.this)}){_alias(self, node)}"
    return self.prepend_ctes(node, text)


def _query_answer(self: sqlglot_generator.Generator, node: QueryAnswer) -> str:
    return f"QUERY {self.sql(node.this)}{_alias(self, node)}"


def _alias(self: sqlglot_generator.Generator, node: exp.Expr) -> str:
    alias = self.sql(node, "alias")
    return f" AS {alias}" if alias else ""


class Generator(sqlglot_generator.Generator):
    """Writes queries and expressions."""

    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **sqlglot_generator.Generator.TRANSFORMS,
        exp.All: _quantified,
        exp.Anonymous: _anonymous,
        exp.Any: _quantified,
        exp.DataType: _data_type,
        exp.Div: _division,
        exp.Exists: _quantified,
        exp.Extract: _extract,
        exp.Identifier: _identifier,
        exp.IntDiv: _division,
        exp.Mod: _division,
        exp.Not: _not,
        QueryAnswer: _query_answer,
        StreamOperator: _stream_operator,
        WindowClause: _window_clause,
        Windowed: _windowed,
    }
