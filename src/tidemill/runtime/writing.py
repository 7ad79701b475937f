"""Writing files of text: rows as CSV, and as JSON, one object a line.

Both have the same text for what is no finite number: ``NaN``, ``Infinity`` and ``-Infinity``. JSON
has no such numbers, so there they are strings, which our reader takes for a DOUBLE.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
from polars import selectors

from tidemill.model.doubles import special_text

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_csv", "write_json"]


def write_csv(frame: pl.DataFrame, path: Path) -> None:
    """Write a file of CSV with a line of names."""
    special = _special(frame)
    frame.with_columns(_text(_named(name)).alias(name) for name in special).write_csv(path)


def _text(x: pl.Expr) -> pl.Expr:
    return special_text(x).fill_null(x.cast(pl.String))


def write_json(frame: pl.DataFrame, path: Path) -> None:
    r"""Write a file of JSON objects.

    >>> import math, tempfile; from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "file.json"
    >>> write_json(pl.DataFrame({"n": [1, 2], "x": [math.inf, 0.5]}), path)
    >>> path.read_text()
    '{"n":1,"x":"Infinity"}\n{"n":2,"x":0.5}\n'
    """
    special = _special(frame)
    if not special:
        frame.write_ndjson(path)
        return
    members = pl.concat_str([_member(name, special) for name in frame.columns], separator=",")
    lines = frame.select(pl.concat_str(pl.lit("{"), members, pl.lit("}\n"))).to_series()
    path.write_text("".join(lines), encoding="utf-8")


def _member(name: str, special: list[str]) -> pl.Expr:
    """A column as ``"name":value``."""
    value = _named(name)
    written = pl.struct(value).struct.json_encode().str.strip_prefix("{").str.strip_suffix("}")
    if name not in special:
        return written
    begin = pl.lit(f"{json.dumps(name, ensure_ascii=False)}:")
    quoted = pl.concat_str(begin, pl.lit('"'), special_text(value), pl.lit('"'))
    return quoted.fill_null(written)


def _special(frame: pl.DataFrame) -> list[str]:
    """The columns that have something that is no finite number."""
    floats = frame.select(selectors.float())
    return [column.name for column in floats if not column.is_finite().all()]


def _named(name: str) -> pl.Expr:
    return selectors.by_name(name).as_expr()  # to Polars some names are patterns
