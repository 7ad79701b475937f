"""What is known of a query whose cost is asked for: what has come, and what was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tidemill.algebra.tree import streams_of
from tidemill.errors import RunError
from tidemill.optimizer.cost import PACE
from tidemill.optimizer.explain.cost import UNKNOWN, Known
from tidemill.optimizer.statistics import Edge, Statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.control.look import Look
    from tidemill.engine.ingest import Gate
    from tidemill.optimizer.planner import Planned

__all__ = ["known_of"]

_SECOND: Final = 1_000_000.0


def known_of(look: Look, planned: Planned) -> Known:
    """What is known of a query: of one that has not run, nothing but how it is planned.

    Args:
        look: The session.
        planned: The query.
    """
    partitions = planned.target.partitions or 1
    new = replace(UNKNOWN, pace=replace(PACE, partitions=partitions))
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
    pace = replace(new.pace, step=seconds / max(steps, 1))
    return Known(_rates(gates), pace, figures, seconds)


def _elapsed(gates: Mapping[str, Gate]) -> float:
    """How many seconds of the streams' time have gone by."""
    begun = [gate.earliest for gate in gates.values() if gate.earliest is not None]
    last = [gate.latest for gate in gates.values() if gate.latest is not None]
    return max(max(last) - min(begun), 0) / _SECOND if begun and last else 0.0


def _rates(gates: Mapping[str, Gate]) -> Statistics:
    """How far apart rows came, of streams of which some did."""
    found: dict[str, Edge] = {}
    for name, gate in gates.items():
        rows = gate.rows - gate.rows_before
        if gate.earliest is not None and gate.latest is not None and rows > 1:
            apart = max((gate.latest - gate.earliest) / (rows - 1), 1 / rows)
            found[name] = Edge(apart, is_measured=True)
    return Statistics(found)
