"""What a stage costs in this engine besides comparing pairs.

It is called in every step, takes rows and gives some; it goes through state where that is not
searched; columns that nothing asks for any more are dropped; and results of stages below that are
not where they must meet the others are sent there.

Law: by the formulas of ``charges.py``, as the price of the plan that a tree becomes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.optimizer.characteristics import covered_part
from tidemill.optimizer.charges import called, looked_at, looked_up
from tidemill.physical.joining.tree import bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.optimizer.search.costs import Engine
    from tidemill.optimizer.search.model import Model

__all__ = ["many_parts", "two_parts"]


def two_parts(model: Model, engine: Engine, one: int, other: int) -> float:
    """A join of two parts: what it is charged besides its pairs."""
    both, messages = one | other, 2 if engine.signed else 1
    taken = messages * (model.rate(one) + model.rate(other))
    left = messages * model.rate(both)
    keyed = model.is_keyed(one, other)
    if engine.signed:
        scanned = taken
        if not keyed:
            scanned += engine.rounds * (model.stored(one) + model.stored(other))
    else:
        scanned = sum(
            looked_at(min(engine.rounds, rate), rate, model.stored(there), keyed=keyed)
            for rate, there in ((model.rate(one), other), (model.rate(other), one))
        )
    place = _Place(model, engine, (one, other))
    cpu = called(engine.two, place.calls, taken, left) + looked_up(model.costs, 0.0, scanned)
    if both != model.everything and _drops(model, one, other):
        cpu += place.projected(left)
    return cpu + place.moved()


def many_parts(model: Model, engine: Engine, parts: Sequence[int]) -> float:
    """A join of more parts: what it is charged besides the steps of its probes."""
    messages = 2 if engine.signed else 1
    taken = messages * sum(model.rate(part) for part in parts)
    left = messages * model.rate(sum(parts))
    place = _Place(model, engine, parts)
    return called(engine.many, place.calls, taken, left) + place.projected(left) + place.moved()


def _drops(model: Model, one: int, other: int) -> bool:
    """Whether columns of two parts are asked for by nothing above them."""
    widths = model.graph.widths
    if widths is None:
        return False
    both = model.width(one) + model.width(other) - widths.overhead
    return model.width(one | other) < both


class _Place:
    """Where parts meet: all in one place, or each row where its key is.

    Parts in which something was joined without a key are in one place already, and the others come
    to them. What was joined by the value that it must agree on with others is there as well.
    """

    def __init__(self, model: Model, engine: Engine, parts: Sequence[int]) -> None:
        self._model, self._engine, self._parts = model, engine, parts
        self._gathered, self._is_one = [True for _ in parts], True
        if engine.partitions > 1:
            alone = ([1 << one for one in bits(part)] for part in parts)
            self._gathered = [not model.is_held_by_keys(inputs) for inputs in alone]
            self._is_one = any(self._gathered) or not model.is_held_by_keys(parts)

    @property
    def calls(self) -> float:
        """How often what stands there is called in a unit of time."""
        return self._engine.rounds * (1 if self._is_one else self._engine.partitions)

    def projected(self, rows: float) -> float:
        """What choosing columns costs: it remembers nothing, and is called where rows come only."""
        each = self.calls
        calls = each * covered_part(rows / each) if each else 0.0
        return called(self._engine.project, calls, rows, rows)

    def moved(self) -> float:
        """What it costs to send parts there."""
        model, engine = self._model, self._engine
        if engine.partitions == 1:
            return 0.0
        cost, messages = 0.0, 2 if engine.signed else 1
        for part, is_gathered in zip(self._parts, self._gathered, strict=True):
            is_joined = part.bit_count() > 1
            if is_gathered if self._is_one else is_joined and model.agrees(part, self._parts):
                continue
            row = engine.moved + engine.moved_byte * model.width(part)
            cost += messages * model.rate(part) * row + engine.message * self.calls
        return cost
