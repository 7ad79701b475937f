"""The auction site as a directory: for each stream some files, one after another in time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidemill.demo.events import SECOND
from tidemill.demo.nexmark import STREAMS

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill.demo.nexmark import Site

__all__ = ["columns_of", "declarations", "write_site"]

_COLUMNS = {
    "person": "id BIGINT NOT NULL, name VARCHAR NOT NULL, email_address VARCHAR NOT NULL,"
    " credit_card VARCHAR NOT NULL, city VARCHAR NOT NULL, state VARCHAR NOT NULL,"
    " date_time TIMESTAMP",
    "auction": "id BIGINT NOT NULL, item_name VARCHAR NOT NULL, description VARCHAR NOT NULL,"
    " initial_bid BIGINT NOT NULL, reserve BIGINT NOT NULL, date_time TIMESTAMP,"
    " expires TIMESTAMP NOT NULL, seller BIGINT NOT NULL, category BIGINT NOT NULL",
    "bid": "auction BIGINT NOT NULL, bidder BIGINT NOT NULL, price BIGINT NOT NULL,"
    " channel VARCHAR NOT NULL, url VARCHAR NOT NULL, date_time TIMESTAMP",
    "closed": "id BIGINT NOT NULL, seller BIGINT NOT NULL, category BIGINT NOT NULL,"
    " opened TIMESTAMP NOT NULL, date_time TIMESTAMP",
}


def columns_of(*, padded: bool) -> dict[str, str]:
    """The columns of each stream, as they are declared."""
    extra = ", extra VARCHAR NOT NULL" if padded else ""
    return {name: columns + extra * (name != "closed") for name, columns in _COLUMNS.items()}


def write_site(site: Site, directory: Path, *, files: int) -> None:
    """Write the streams, each as so many Parquet files.

    A file has what arrives in a stretch of time. All streams are cut at the same times, so that
    they go on together, and engines that read one file of each in a batch see the same batches.
    """
    for name in STREAMS:
        (directory / name).mkdir(parents=True, exist_ok=True)
    for number, (begin, end) in enumerate(site.cuts(files)):
        for name, rows in site.arriving(begin, end).items():
            path = directory / name / f"{number:04d}.parquet"
            rows.write_parquet(path)
            # Some engines read files in the order in which they came.
            os.utime(path, (end // SECOND + number, end // SECOND + number))


def declarations(site: Site, directory: Path, *, files_per_batch: int | None = None) -> str:
    """The statements that declare the streams of a directory.

    Args:
        site: What has been written.
        directory: Where ``write_site`` has put it.
        files_per_batch: How many files of each stream make a batch; ``None`` leaves it open.
    """
    place = str(directory).replace("'", "''")
    cut = "" if files_per_batch is None else f", files_per_batch => {files_per_batch}"
    return "\n".join(
        f"CREATE STREAM {name} ({columns}) SOURCE parquet('{place}/{name}', settle => 0{cut})"
        f" ORDERED BY date_time WITHIN {site.disorder} MICROSECONDS;"
        for name, columns in columns_of(padded=site.padded).items()
    )
