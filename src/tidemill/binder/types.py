"""From type names in the text to types."""

from __future__ import annotations

from sqlglot import exp

from tidemill.errors import BindError
from tidemill.lang.spans import span_of
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    MAX_PRECISION,
    TIMESTAMP,
    VARCHAR,
    DataType,
    decimal,
)

__all__ = ["bind_type"]

_TYPES = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": INTEGER,
    "SMALLINT": INTEGER,
    "INT": INTEGER,
    "BIGINT": BIGINT,
    "FLOAT": DOUBLE,
    "DOUBLE": DOUBLE,
    "CHAR": VARCHAR,
    "VARCHAR": VARCHAR,
    "TEXT": VARCHAR,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP,
    "DATETIME": TIMESTAMP,
}
_DEFAULT_PRECISION, _DEFAULT_SCALE = 18, 3


def bind_type(node: exp.DataType) -> DataType:
    """The type a name stands for.

    Raises:
        BindError: It is not a type of the language.
    """
    name = node.this.name if isinstance(node.this, exp.DType) else str(node.this)
    if name == "DECIMAL":
        return _bind_decimal(node)
    if name not in _TYPES:
        raise BindError(
            f"type {name} is not supported",
            span=span_of(node),
            hint="the types are BOOLEAN, INTEGER, BIGINT, DOUBLE, DECIMAL(p, s), VARCHAR, DATE "
            "and TIMESTAMP",
        )
    return _TYPES[name]


def _bind_decimal(node: exp.DataType) -> DataType:
    numbers = [int(parameter.this.name) for parameter in node.expressions]
    if not numbers:
        return decimal(_DEFAULT_PRECISION, _DEFAULT_SCALE)
    precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        raise BindError(
            f"DECIMAL({precision},{scale}) does not exist",
            span=span_of(node),
            hint=f"precision goes from 1 to {MAX_PRECISION}, scale from 0 to the precision",
        )
    return decimal(precision, scale)
