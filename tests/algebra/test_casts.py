"""Where CAST departs from DuckDB, and other literal cases; the law is in tests/laws."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from tidemill.algebra.casts import cast_value
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    DataType,
    decimal,
)

if TYPE_CHECKING:
    from tidemill.model.types import Value

CASES: list[tuple[Value, DataType, Value]] = [
    ("1.5", INTEGER, None),  # DuckDB rounds
    ("1e3", INTEGER, None),
    ("1_000", INTEGER, None),
    ("0x10", INTEGER, None),
    (" +12\n", INTEGER, 12),
    ("2147483648", INTEGER, None),
    ("0" * 5000 + "7", INTEGER, 7),
    ("9" * 5000, INTEGER, None),
    ("1e" + "9" * 5000, decimal(5, 2), None),
    ("0." + "0" * 5000 + "1", decimal(5, 2), Decimal("0.00")),
    ("1_0.5", DOUBLE, None),
    ("1e400", DOUBLE, float("inf")),
    ("1e999999999999", decimal(5, 2), None),
    ("1e-999999999999", decimal(5, 2), Decimal("0.00")),
    ("0e999999999999", decimal(5, 2), Decimal("0.00")),
    ("1.005e1", decimal(5, 2), Decimal("10.05")),
    (1e300, decimal(38, 0), None),
    (2.5, BIGINT, 2),
    (Decimal("2.5"), BIGINT, 3),
    (0.15, decimal(2, 1), Decimal("0.2")),
    (Decimal("0.05"), VARCHAR, "0.05"),  # DuckDB: .05 for a DECIMAL(2,2)
    (1e16, VARCHAR, "1e+16"),
    (True, VARCHAR, "true"),
    (" true", BOOLEAN, None),
    ("2020/01/02", DATE, None),
    ("2020-1-2", DATE, None),
    ("epoch", DATE, None),
    ("infinity", TIMESTAMP, None),
    ("10000-01-01", DATE, None),
    ("2020-01-02 03:04:05", DATE, date(2020, 1, 2)),
    (" 2020-01-02 ", TIMESTAMP, datetime.fromisoformat("2020-01-02")),
    ("2020-01-02 24:00:00", TIMESTAMP, None),
    ("2020-01-02T03:04:05+01:30", TIMESTAMP, datetime.fromisoformat("2020-01-02T01:34:05")),
    ("2020-01-02T03:04:05-01", TIMESTAMP, datetime.fromisoformat("2020-01-02T04:04:05")),
    ("0001-01-01T00:00:00+01", TIMESTAMP, None),
    ("2020-01-02T03:04:05+99", TIMESTAMP, None),
    (
        "2020-01-02T03:04:05.1234567",
        TIMESTAMP,
        datetime.fromisoformat("2020-01-02T03:04:05.123456"),
    ),
    (datetime.fromisoformat("2020-01-02T03:04:05.120"), VARCHAR, "2020-01-02 03:04:05.12"),
]


@pytest.mark.parametrize(
    ("value", "target", "expected"), CASES, ids=[f"{str(v)[:30]} to {t}" for v, t, _ in CASES]
)
def test_cast(value: Value, target: DataType, expected: Value) -> None:
    converted = cast_value(value, target)
    assert (type(converted), converted) == (type(expected), expected)
