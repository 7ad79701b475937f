"""NEXMark's queries, the streams they read, and what they say about DuckDB's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.nexmark.joins import JOINS
from benchmarks.nexmark.question import Question
from benchmarks.nexmark.rows import ROWS
from benchmarks.nexmark.totals import TOTALS
from tidemill.demo.site import columns_of
from tidemill.demo.site import declarations as of_streams

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill.demo.nexmark import Site

__all__ = ["ASKED", "COLUMNS", "MACROS", "QUESTIONS", "Question", "declarations"]

QUESTIONS = tuple(sorted((*ROWS, *JOINS, *TOTALS), key=lambda question: int(question.name[1:])))
"""All queries of the benchmark, in the order of their numbers."""

ASKED = tuple(question for question in QUESTIONS if question.missing is None)
"""Those that the language can say."""

COLUMNS = columns_of(padded=True)
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


def declarations(site: Site, directory: Path, *, files_per_batch: int | None = None) -> str:
    """The statements that declare the streams and the relation of a directory.

    Args:
        site: What has been written.
        directory: Where ``generator.write`` has put it.
        files_per_batch: How many files of each stream make a batch; ``None`` leaves it open.
    """
    place = str(directory).replace("'", "''")
    streams = of_streams(site, directory, files_per_batch=files_per_batch)
    side = (
        "CREATE RELATION side (key BIGINT NOT NULL, value VARCHAR NOT NULL)"
        f" SOURCE parquet('{place}/side', settle => 0);"
    )
    return f"{streams}\n{side}"
