"""Type names: how the types of columns, parameters and casts are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import TokenType, exp

from tidemill.errors import closest
from tidemill.lang.spans import record

if TYPE_CHECKING:
    from tidemill.lang.cursor import Cursor

__all__ = ["read_type", "type_text"]

_TYPES: Final = {
    "BOOLEAN": exp.DType.BOOLEAN,
    "BOOL": exp.DType.BOOLEAN,
    "INT": exp.DType.INT,
    "INTEGER": exp.DType.INT,
    "BIGINT": exp.DType.BIGINT,
    "DOUBLE": exp.DType.DOUBLE,
    "REAL": exp.DType.FLOAT,
    "FLOAT": exp.DType.FLOAT,
    "DECIMAL": exp.DType.DECIMAL,
    "NUMERIC": exp.DType.DECIMAL,
    "VARCHAR": exp.DType.VARCHAR,
    "TEXT": exp.DType.TEXT,
    "STRING": exp.DType.TEXT,
    "DATE": exp.DType.DATE,
    "TIMESTAMP": exp.DType.TIMESTAMP,
}

_MOST_PARAMETERS: Final = {exp.DType.DECIMAL: 2, exp.DType.VARCHAR: 1, exp.DType.TEXT: 1}


def read_type(cursor: Cursor) -> exp.DataType:
    """Read a type, as ``BIGINT``, ``DOUBLE PRECISION`` or ``DECIMAL(10, 2)``."""
    start = cursor.index
    token = cursor.accept_type(TokenType.VAR)
    kind = _TYPES.get(token.text.upper()) if token else None
    if token is None or kind is None:
        cursor.index = start
        near = closest(token.text, _TYPES) if token else None
        listed = f"the types are {', '.join(_TYPES)}"
        if token:
            cursor.fail(f'unknown type "{token.text}"', hint=near or listed)
        cursor.fail_expected("a type", hint=listed)
    if kind is exp.DType.DOUBLE:
        cursor.accept("PRECISION")
    parameters = _read_parameters(cursor, _MOST_PARAMETERS.get(kind, 0))
    node = exp.DataType(this=kind, nested=False)
    if parameters:
        node.set("expressions", parameters)
    return record(node, cursor.span_from(start))


def type_text(node: exp.DataType) -> str:
    """The type as it is written."""
    name = {exp.DType.FLOAT: "REAL"}.get(node.this, node.this.value)
    parameters = ", ".join(parameter.this.name for parameter in node.expressions)
    return f"{name}({parameters})" if parameters else name


def _read_parameters(cursor: Cursor, most: int) -> list[exp.DataTypeParam]:
    if not most or not cursor.accept("("):
        return []
    parameters = cursor.separated(_read_parameter)
    if len(parameters) > most:
        cursor.fail(f"the type takes at most {most} parameter{'s' * (most > 1)}")
    cursor.expect(")")
    return list(parameters)


def _read_parameter(cursor: Cursor) -> exp.DataTypeParam:
    token = cursor.current
    if token is None or token.token_type is not TokenType.NUMBER or not token.text.isdigit():
        cursor.fail_expected("a whole number")
    cursor.index += 1
    return exp.DataTypeParam(this=exp.Literal.number(token.text))
