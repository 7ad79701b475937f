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
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.INT: INTEGER,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: DOUBLE,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.VARCHAR: VARCHAR,
    exp.DType.TEXT: VARCHAR,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
}
_DEFAULT_PRECISION, _DEFAULT_SCALE = 18, 3


def bind_type(node: exp.DataType) -> DataType:
    """The type a name stands for.

    Raises:
        BindError: It is a DECIMAL with more digits than there can be.
    """
    if node.this is exp.DType.DECIMAL:
        return _bind_decimal(node)
    return _TYPES[node.this]


def _bind_decimal(node: exp.DataType) -> DataType:
    # What is longer than any precision is as wrong as its first digits are.
    numbers = [int(parameter.this.name[:9]) for parameter in node.expressions]
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
