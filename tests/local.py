"""Runs one plan on the local engine, cut into steps as a test likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plans import implement
from tidemill.engine.engine import Flow
from tidemill.engine.ingest import relation_flow
from tidemill.model.batch import END, ID, START, polars_schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.fragments import build_graph
from tidemill.runtime.answers import Answer
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Element, Row
    from tidemill.catalog.entries import RelationEntry
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["element_batch", "run_locally"]


def element_batch(schema: Schema, elements: Sequence[Element]) -> Batch:
    """Elements of a stream as a batch."""
    rows = [(*e.row, e.time, e.time + 1, e.id) for e in elements]
    types = {**polars_schema(schema), START: pl.Int64(), END: pl.Int64(), ID: pl.Int64()}
    return pl.DataFrame(rows, schema=types, orient="row")


def run_locally(  # noqa: PLR0913 — a test says everything
    plan: Plan,
    streams: Mapping[str, Sequence[Element]],
    relations: Mapping[str, Sequence[Row]],
    entries: Mapping[str, RelationEntry],
    *,
    partitions: int = 1,
    rows_per_step: int = 3,
) -> Answer:
    """The answer of a plan, whose streams arrive in the order of time, so many rows a step."""
    runner = LocalRunner(build_graph({"q": implement(plan)}), partitions=partitions)
    readers: dict[str, Iterator[Flow]] = {}
    for input_ in runner.graph.inputs:
        if input_.name in entries:
            types = polars_schema(input_.schema)
            frame = pl.DataFrame(list(relations[input_.name]), schema=types, orient="row")
            readers[input_.name] = iter([relation_flow(entries[input_.name], frame)])
        else:
            readers[input_.name] = _flows(input_.schema, streams[input_.name], rows_per_step)
    answer = Answer(plan.schema)
    done = False
    while not done:
        flows = {name: next(reader, Flow([], END_OF_TIME)) for name, reader in readers.items()}
        done = all(flow.watermark == END_OF_TIME and not flow.batches for flow in flows.values())
        answer.add(runner.step(flows)["q"])
    return answer


def _flows(schema: Schema, elements: Sequence[Element], size: int) -> Iterator[Flow]:
    ordered = sorted(elements, key=lambda e: (e.time, e.id))
    for first in range(0, len(ordered), size):
        rest = ordered[first + size :]
        watermark = rest[0].time if rest else ordered[-1].time
        yield Flow([element_batch(schema, ordered[first : first + size])], Time(watermark))
