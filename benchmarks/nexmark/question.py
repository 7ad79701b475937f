"""A query of the benchmark: what it asks, in Tidemill's SQL and in DuckDB's."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """A query of the benchmark.

    The SQL for DuckDB gives the rows at one instant, from tables of everything that ever happened.
    What a window holds at that instant is said by four functions of a row's time:

    - ``is_now(time)``: the row happens at the instant, as without a window;
    - ``in_range(time, seconds)``: it is in ``[RANGE seconds]``;
    - ``in_slide(time, seconds, slide)``: it is in ``[RANGE seconds SLIDE slide]``;
    - ``is_past(time)``: it has happened by then, as in ``[RANGE UNBOUNDED]``.

    Attributes:
        name: What the benchmark calls it.
        title: What it asks.
        sql: The continuous query, or ``None`` if the language cannot say it.
        duckdb: The same about one instant; ``None`` like ``sql``.
        stateless: Whether it looks at one row at a time. Then DuckDB can give the rows of all
            instants together, too.
        missing: Why the language cannot say it.
        remark: In what it differs from the benchmark.
    """

    name: str
    title: str
    sql: str | None = None
    duckdb: str | None = None
    stateless: bool = False
    missing: str | None = None
    remark: str = ""
