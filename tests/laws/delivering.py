"""A query with a sink that lives: what the sink is given, step by step, and what it makes of it.

It is what a session and the local engine do (``control/delivered.py``, ``runtime/local``), with the
runner alone and without text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hypothesis import reject

from laws.living import LivingQuery
from tidemill.connectors.forms import Delivered
from tidemill.control.delivered import cut_of, got, marked, released
from tidemill.errors import PlanError
from tidemill.physical.cut_answer import cut_answer
from tidemill.runtime.shapes import Shape, new_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from laws.arrivals import Step
    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Row
    from tidemill.catalog.records import Instance
    from tidemill.control.standpoint import Standpoint
    from tidemill.model.batch import Batch
    from tidemill.model.spans import Cut, Span
    from tidemill.model.time import Time
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Reader", "SinkQuery"]


@dataclass
class SinkQuery(LivingQuery):
    """A query whose answer goes to a sink.

    Attributes:
        shape: What the sink gets.
        harm: What mutants do to spans.
        given: What the sink was given, with the instances that it is from.
        cuts: How the answers of instances are cut now.
    """

    shape: Shape = field(default_factory=Shape)
    harm: Callable[[Span], Span] = replace
    given: list[tuple[pl.DataFrame, set[int]]] = field(default_factory=list)
    cuts: dict[int, Cut | None] = field(default_factory=dict)

    def here(self, *plans: Plan) -> Standpoint:
        """What is known now, and what the sink gets."""
        return replace(super().here(*plans), sink=self.shape.delivered)

    def known(self) -> dict[int, Time]:
        """Up to when the sink has got the answers of instances."""
        delivered = self.shape.delivered
        return {number: got(delivered, time) for number, time in super().known().items()}

    def step(self, step: Step) -> None:
        """Let a step arrive."""
        self.record = released(self.shape.delivered, marked(self.record), self.known())
        try:
            super().step(step)
        except PlanError as error:
            if "stay for ever" not in str(error):
                raise
            reject()  # a window over rows that never end has no finite answer

    def take(self, given: Mapping[str, list[Batch]]) -> None:
        """What all instances give goes to the sink together."""
        mine = {name: [b for b in given[name] if b.height] for name in given if name[0] == "q"}
        batches = [batch for found in mine.values() for batch in found]
        if batches:
            rows = new_rows(self.record.current.plan.schema, batches, self.shape)
            self.given.append((rows, {int(name[2:]) for name, found in mine.items() if found}))

    def plan_of(self, one: Instance) -> PhysicalPlan:
        """What an instance runs with now, cut as it is now."""
        cut = cut_of("q", self.shape.delivered, self.record, one, self.known())
        self.cuts[one.number] = cut
        return cut_answer(super().plan_of(one), self._harmed(cut), one.epoch)

    def _harmed(self, cut: Cut | None) -> Cut | None:
        return None if cut is None else replace(cut, spans=tuple(map(self.harm, cut.spans)))


@dataclass
class Reader:
    """What has become of what a sink was given, applied in the order in which it came.

    Attributes:
        delivered: What the sink gets.
        key: For upserts, the places of the key in a row.
        disorder: How often something came of an instant before one that had come.
    """

    delivered: Delivered
    key: tuple[int, ...] = ()
    disorder: int = 0
    moves: list[tuple[int, Row, int]] = field(default_factory=list)
    _by_key: dict[Row, Row] = field(default_factory=dict)

    def take(self, frame: pl.DataFrame) -> None:
        """Take the rows of one delivery."""
        for *values, first, last in frame.rows():
            row = tuple(values)
            match self.delivered:
                case Delivered.RESULTS:
                    self.moves += [(first, row, 1), (last, row, -1)]
                    continue
                case Delivered.CHANGES:
                    self._move(first, row, last)
                case Delivered.UPSERTS:
                    self._upsert(first, row, last)

    def _move(self, time: int, row: Row, sign: int) -> None:
        self.disorder += bool(self.moves) and time < self.moves[-1][0]
        self.moves.append((time, row, sign))

    def _upsert(self, time: int, row: Row, sign: int) -> None:
        key = tuple(row[place] for place in self.key)
        if key in self._by_key:
            self._move(time, self._by_key.pop(key), -1)
        if sign > 0:
            self._by_key[key] = row
            self._move(time, row, 1)

    def snapshots(self, far: int) -> list[Counter[Row]]:
        """The rows at every instant before ``far``."""
        found: list[Counter[Row]] = [Counter() for _ in range(far)]
        for start, row, sign in self.moves:
            for time in range(start, far):
                found[time][row] += sign
        return [Counter({row: n for row, n in there.items() if n}) for there in found]
