"""NEXMark's queries, the streams they read, and what they say about DuckDB's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.nexmark.joins import JOINS
from benchmarks.nexmark.question import Question
from benchmarks.nexmark.rows import ROWS
from benchmarks.nexmark.totals import TOTALS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ASKED", "COLUMNS", "MACROS", "QUESTIONS", "Question", "declarations"]

QUESTIONS = tuple(sorted((*ROWS, *JOINS, *TOTALS), key=lambda question: int(question.name[1:])))
"""All queries of the benchmark, in the order of their numbers."""

ASKED = tuple(question for question in QUESTIONS if question.missing is None)
"""Those that the language can say."""

COLUMNS = {
    "person": "id BIGINT NOT NULL, name VARCHAR NOT NULL, email_address VARCHAR NOT NULL,"
    " credit_card VARCHAR NOT NULL, city VARCHAR NOT NULL, state VARCHAR NOT NULL,"
    " date_time TIMESTAMP, extra VARCHAR NOT NULL",
    "auction": "id BIGINT NOT NULL, item_name VARCHAR NOT NULL, description VARCHAR NOT NULL,"
    " initial_bid BIGINT NOT NULL, reserve BIGINT NOT NULL, date_time TIMESTAMP,"
    " expires TIMESTAMP NOT NULL, seller BIGINT NOT NULL, category BIGINT NOT NULL,"
    " extra VARCHAR NOT NULL",
    "bid": "auction BIGINT NOT NULL, bidder BIGINT NOT NULL, price BIGINT NOT NULL,"
    " channel VARCHAR NOT NULL, url VARCHAR NOT NULL, date_time TIMESTAMP, extra VARCHAR NOT NULL",
    "closed": "id BIGINT NOT NULL, seller BIGINT NOT NULL, category BIGINT NOT NULL,"
    " opened TIMESTAMP NOT NULL, date_time TIMESTAMP",
}
"""The columns of each stream."""

MACROS = """
CREATE MACRO step(slide) AS (getvariable('t') + 1) // (slide * 1000000) * slide * 1000000 - 1;
CREATE MACRO held(time, until, seconds) AS
  epoch_us(time) > until - seconds * 1000000::BIGINT AND epoch_us(time) <= until;
CREATE MACRO is_now(time) AS (getvariable('t') IS NULL OR epoch_us(time) = getvariable('t'));
CREATE MACRO is_past(time) AS epoch_us(time) <= getvariable('t');
CREATE MACRO in_range(time, seconds) AS held(time, getvariable('t'), seconds);
CREATE MACRO in_slide(time, seconds, slide) AS held(time, step(slide), seconds);
"""
"""What windows hold at the instant in the variable ``t``, in DuckDB; see ``Question``.

Where ``t`` is NULL, queries without windows are about all instants together.
"""


def declarations(directory: Path, *, disorder: int = 0, files_per_batch: int | None = None) -> str:
    """The statements that declare the streams and the relation of a directory.

    Args:
        directory: Where ``generator.write`` has put them.
        disorder: By how much less than this rows are out of order, in microseconds.
        files_per_batch: How many files of each stream make a batch; ``None`` leaves it open.
    """
    place = str(directory).replace("'", "''")
    cut = "" if files_per_batch is None else f", files_per_batch => {files_per_batch}"
    streams = [
        f"CREATE STREAM {name} ({columns}) SOURCE parquet('{place}/{name}', settle => 0{cut})"
        f" ORDERED BY date_time WITHIN {disorder} MICROSECONDS;"
        for name, columns in COLUMNS.items()
    ]
    side = (
        "CREATE RELATION side (key BIGINT NOT NULL, value VARCHAR NOT NULL)"
        f" SOURCE parquet('{place}/side', settle => 0);"
    )
    return "\n".join([*streams, side])
