"""The rows that were not taken, as people see them: how many, why, and those that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError, suggestion

if TYPE_CHECKING:
    from tidemill.runtime.runs import Runs

__all__ = ["quarantined", "refused_rows"]


def refused_rows(job: Runs) -> pl.DataFrame:
    """How many rows of each stream a job did not take, and why."""
    rows = [
        (name, reason, count)
        for name, gate in sorted(job.gates.items())
        for reason, count in sorted(gate.refused.counts.items())
    ]
    types = {"stream": pl.String, "reason": pl.String, "rows": pl.Int64}
    return pl.DataFrame(rows, schema=types, orient="row")


def quarantined(job: Runs, stream: str) -> pl.DataFrame:
    """The rows of a stream that a job did not take and has kept.

    Raises:
        RunError: No query reads the stream.
    """
    gates = job.gates
    found = next((name for name in gates if name.lower() == stream.lower()), None)
    if found is None:
        raise RunError(
            f'no query has read a stream "{stream}"',
            hint=suggestion(stream, gates, what="streams"),
        )
    return job.quarantine(found)
