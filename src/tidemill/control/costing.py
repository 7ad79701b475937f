"""What is known of a query whose cost is asked for: what has come, and what was measured.

Of a query that runs, or has run, the mean distance of rows over the whole run is taken, so that
estimates can be compared with what was done in it; of one that has not, what it is planned with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tidemill.algebra.tree import streams_of
from tidemill.errors import RunError
from tidemill.optimizer.cost import PACE
from tidemill.optimizer.estimates.flow import width
from tidemill.optimizer.explain.cost import Known
from tidemill.optimizer.statistics import Edge
from tidemill.runtime.measuring.known import statistics_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.control.queries import LivingQueries
    from tidemill.engine.ingest import Gate
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics

__all__ = ["known_of"]

_SECOND: Final = 1_000_000.0


def known_of(queries: LivingQueries, planned: Planned) -> Known:
    """What is known of a query.

    Args:
        queries: The session's.
        planned: The query.
    """
    look = queries.look
    pace = replace(PACE, partitions=planned.target.partitions or 1)
    new = Known(planned.statistics, pace)
    try:
        figures = look.figures(planned)
    except RunError:
        return new
    job = look.active
    assert job is not None, "it has run"
    gates = {name: job.gates[name] for name in streams_of(planned.bound) if name in job.gates}
    seconds, steps = _elapsed(gates), job.progress().batches
    if not seconds:
        return new
    known = statistics_of(queries.catalog, queries.measured())
    statistics = replace(known, inputs={**known.inputs, **_over_the_run(known, gates)})
    return Known(statistics, replace(pace, step=seconds / max(steps, 1)), figures, seconds)


def _elapsed(gates: Mapping[str, Gate]) -> float:
    """How many seconds of the streams' time have gone by."""
    begun = [gate.earliest for gate in gates.values() if gate.earliest is not None]
    last = [gate.latest for gate in gates.values() if gate.latest is not None]
    return max(max(last) - min(begun), 0) / _SECOND if begun and last else 0.0


def _over_the_run(known: Statistics, gates: Mapping[str, Gate]) -> dict[str, Edge]:
    """What is known of streams of which some rows came, with how far apart they came."""
    found: dict[str, Edge] = {}
    for name, gate in gates.items():
        rows = gate.rows - gate.rows_before
        if gate.earliest is not None and gate.latest is not None and rows > 1:
            apart = max((gate.latest - gate.earliest) / (rows - 1), 1 / rows)
            edge = known.inputs.get(name) or Edge(apart, row_bytes=width(gate.stream.schema))
            found[name] = replace(edge, distance=apart, is_measured=True)
    return found
