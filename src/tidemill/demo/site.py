"""The auction site as a directory: for each stream some files, one after another in time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import polars as pl

from tidemill.demo.nexmark import BEGIN

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from tidemill.demo.nexmark import Events

__all__ = ["declarations", "write_site"]

_STREAMS = {
    "person": "id BIGINT NOT NULL, name VARCHAR, email_address VARCHAR, credit_card VARCHAR,"
    " city VARCHAR, state VARCHAR, date_time TIMESTAMP",
    "auction": "id BIGINT NOT NULL, item_name VARCHAR, description VARCHAR, initial_bid BIGINT,"
    " reserve BIGINT, date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT NOT NULL,"
    " category BIGINT",
    "bid": "auction BIGINT NOT NULL, bidder BIGINT NOT NULL, price BIGINT NOT NULL,"
    " channel VARCHAR, url VARCHAR, date_time TIMESTAMP",
    "closed": "id BIGINT NOT NULL, seller BIGINT NOT NULL, category BIGINT, date_time TIMESTAMP",
}


def write_site(events: Events, directory: Path, *, files: int) -> None:
    """Write the streams, each as so many Parquet files; a file has the events of a stretch of time.

    All streams are cut at the same times, so that they go on together.
    """
    stretch = (events.last - BEGIN) / files
    for name, rows in events.streams().items():
        (directory / name).mkdir(parents=True)
        for number in range(files):
            begin, end = BEGIN + number * stretch, BEGIN + (number + 1) * stretch
            is_last = number == files - 1
            inside = pl.col("date_time") >= begin
            mine = inside if is_last else inside & (pl.col("date_time") < end)
            _write(rows.filter(mine), directory / name / f"{number:04d}.parquet", end)


def _write(rows: pl.DataFrame, path: Path, end: datetime) -> None:
    rows.write_parquet(path)
    # Files are read in the order in which they came, which is that of the time in them.
    os.utime(path, (end.timestamp(), end.timestamp()))


def declarations(directory: Path) -> str:
    """The statements that declare the streams of a directory."""
    return "\n".join(
        f"CREATE STREAM {name} ({columns})\n"
        f"  SOURCE parquet('{_quoted(directory / name)}') ORDERED BY date_time;"
        for name, columns in _STREAMS.items()
    )


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
