"""Metrics: what each operator has done and what it remembers, over all partitions and batches.

Engines measure, each for one partition (``engine.Metrics``). What was done is told as the
difference to what was told before, and what is remembered as it is now. A collector adds the first
up, and keeps the second by place. So nothing is lost when a partition is opened again, by this
process or another one, and a batch that is delivered again is counted once.

Law: the rows into an operator are those out of the operators, or from the inputs, that it reads;
``state_rows`` is what the states of its partitions hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import polars as pl

from tidemill.engine.engine import Metrics
from tidemill.optimizer.explain.physical import Figures, describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.engine.adaptations import Adaptation
    from tidemill.model.time import Time
    from tidemill.physical.fragments import Graph, Node

__all__ = ["Adapted", "Collector", "OperatorMetrics", "metrics_frame"]

_COLUMNS = {
    "queries": pl.List(pl.String()),
    "operator": pl.String(),
    "fingerprint": pl.String(),
    "stage": pl.Int64(),
    "rows_in": pl.Int64(),
    "rows_out": pl.Int64(),
    "seconds": pl.Float64(),
    "state_rows": pl.Int64(),
    "state_bytes": pl.Int64(),
    "watermark": pl.Int64(),
}


@dataclass(frozen=True, slots=True)
class OperatorMetrics:
    """What an operator has done in this run, and what it remembers now.

    Attributes:
        queries: The queries it works for.
        operator: Its text, as EXPLAIN shows it.
        fingerprint: Its name: that of the part of the plan.
        stage: The stage it runs in; 0 is where rows come in.
        rows_in: How many rows it has taken, on all ports.
        rows_out: How many rows it has given.
        seconds: How long it has worked, all partitions added up.
        state_rows: How many rows it remembers; ``None`` before the first batch.
        state_bytes: How many bytes they take; ``None`` before the first batch.
        watermark: How far time has come for it, in the partition where it has come least far, in
            microseconds; ``None`` before the first batch.
    """

    queries: tuple[str, ...]
    operator: str
    fingerprint: str
    stage: int
    rows_in: int
    rows_out: int
    seconds: float
    state_rows: int | None
    state_bytes: int | None
    watermark: Time | None

    def figures(self) -> Figures:
        """What EXPLAIN ANALYZE shows of it."""
        return Figures(
            self.rows_in,
            self.rows_out,
            self.seconds,
            self.state_rows or 0,
            self.state_bytes or 0,
            self.watermark,
        )


@dataclass(frozen=True, slots=True)
class _Known:
    """An operator that runs."""

    node: Node
    stage: int
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Adapted:
    """What a join has decided about its tree.

    Attributes:
        queries: The queries it works for.
        place: In which partition of which stage.
        what: What it has decided.
    """

    queries: tuple[str, ...]
    place: str
    what: Adaptation


class Collector:
    """The metrics of the operators of a graph."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._texts: dict[str, str] = {}
        self._done: dict[str, Metrics] = {}
        self._latest: dict[str, int] = {}
        self._now: dict[str, Mapping[str, Metrics]] = {}
        self._adapted: list[Adapted] = []
        self._turn = Lock()

    def begin(self, graph: Graph) -> None:
        """Go on with another graph; operators that are the same keep what they have."""
        known = {
            node.name: _Known(node, fragment.stage, fragment.queries.get(node.name, ()))
            for fragment in graph.fragments
            for node in fragment.nodes
        }
        with self._turn:
            self._known = known
            self._done = {name: self._done.get(name, Metrics()) for name in known}
            self._latest = {name: self._latest.get(name, -1) for name in known}

    def take(
        self,
        batch: int,
        done: Iterable[Mapping[str, Metrics]],
        now: Mapping[str, Mapping[str, Metrics]],
    ) -> None:
        """Take what operators tell about a batch.

        Args:
            batch: Its number; an operator that has told about it before has told all.
            done: What was done in it, in parts that add up.
            now: What is remembered after it, by place; what a place told before is over.
        """
        with self._turn:
            for figures in done:
                for name, metrics in figures.items():
                    if batch > self._latest.get(name, batch):
                        total = self._done[name]
                        total.rows_in += metrics.rows_in
                        total.rows_out += metrics.rows_out
                        total.seconds += metrics.seconds
            self._adapted += [
                Adapted(self._known[name].queries, place, one)
                for place, figures in now.items()
                for name, metrics in figures.items()
                if batch > self._latest.get(name, batch)
                for one in metrics.adapted
            ]
            self._latest = {name: max(batch, latest) for name, latest in self._latest.items()}
            self._now |= now

    def adapted(self) -> list[Adapted]:
        """What joins have decided since this was asked last."""
        with self._turn:
            told, self._adapted = self._adapted, []
        return told

    def state(self) -> tuple[int, int]:
        """How many rows are remembered, and how many bytes they take."""
        with self._turn:
            found = [
                metrics
                for figures in self._now.values()
                for name, metrics in figures.items()
                if name in self._known
            ]
        return sum(m.state_rows for m in found), sum(m.state_bytes for m in found)

    def metrics(self) -> dict[str, OperatorMetrics]:
        """The metrics of each operator, by its fingerprint; those of earlier stages first."""
        with self._turn:
            return {name: self._metrics_of(name) for name in self._known}

    def _metrics_of(self, name: str) -> OperatorMetrics:
        known, done = self._known[name], self._done[name]
        now = [figures[name] for figures in self._now.values() if name in figures]
        if name not in self._texts:
            self._texts[name] = describe(known.node.apply)
        return OperatorMetrics(
            known.queries,
            self._texts[name],
            name,
            known.stage,
            done.rows_in,
            done.rows_out,
            done.seconds,
            sum(m.state_rows for m in now) if now else None,
            sum(m.state_bytes for m in now) if now else None,
            min((m.watermark for m in now), default=None),
        )


def metrics_frame(metrics: Iterable[OperatorMetrics]) -> pl.DataFrame:
    """Metrics as a table, one row an operator."""
    rows = [
        {name: getattr(m, name) for name in _COLUMNS} | {"queries": list(m.queries)}
        for m in metrics
    ]
    return pl.DataFrame(rows, schema=_COLUMNS)
