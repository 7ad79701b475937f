"""An aggregation in two parts gives what it gives in one, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from laws.aggregations import (
    DELAYS,
    SAMPLE,
    SEEDS,
    assert_same_groups,
    hard_row,
    meaning,
    scalar_calls,
    seeded,
)
from physical.run import crowded, run
from tidemill.algebra.expr import Column, Named
from tidemill.model.schema import Field, Schema
from tidemill.physical.interval import Aggregate
from tidemill.physical.operators.aggregate.parts import in_parts
from tidemill.runtime.spark.worker.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.physical.operator import Operator, State
    from tidemill.physical.traits import Traits


@dataclass(frozen=True)
class InTwoParts:
    """An aggregation whose rows come from some partitions, and travel as messages."""

    whole: Aggregate
    partitions: int

    @property
    def schema(self) -> Schema:
        return self.whole.schema

    @property
    def traits(self) -> Traits:
        return self.whole.traits

    @property
    def max_delay(self) -> int | None:
        return self.whole.max_delay

    @property
    def parts(self) -> tuple[Operator, Operator]:
        found = in_parts(self.whole)
        assert found is not None, "it is made of sums and extremes"
        return found

    @property
    def final(self) -> Operator:
        return self.parts[1]

    def new_state(self) -> State:
        return self.final.new_state()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        combine, final = self.parts
        for partition in range(self.partitions):
            share = batch.gather_every(self.partitions, partition)
            for part in combine.on_batch(combine.new_state(), port, share):
                message = Message.of_rows(0, Kind.ROWS, "combined", part)
                yield from final.on_batch(state, 0, message.rows())

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        return self.final.on_watermark(state, time)

    def held(self, state: State) -> Time:
        return self.final.held(state)


@given(
    seed=SEEDS,
    keys=st.lists(st.sampled_from(["k", "i", "d", "b"]), max_size=2, unique=True),
    partitions=st.integers(1, 4),
    delay=DELAYS,
    reload=st.booleans(),
)
def test_in_two_parts_it_is_the_same_to_the_last_bit(
    seed: int, keys: list[str], partitions: int, delay: int | None, *, reload: bool
) -> None:
    chance = seeded(seed)
    aggregates = scalar_calls(chance)
    schedule = crowded(SAMPLE, hard_row, chance)
    named = [(f"key {name}", SAMPLE[name].type) for name in keys]
    fields = [*named, *((a.name, a.call.type) for a in aggregates)]
    whole = Aggregate(
        tuple(Named(name, Column(name[4:], type_)) for name, type_ in named),
        aggregates,
        SAMPLE,
        Schema(tuple(Field(name, type_) for name, type_ in fields)),
        panes=seed % 2 == 0,
        max_delay=delay,
    )
    in_parts = run(InTwoParts(whole, partitions), schedule, reload=reload, tight=False)
    at_once = run(whole, schedule, tight=False)
    for t in schedule.times():
        found = in_parts.snapshot(t)
        assert found == at_once.snapshot(t), t
        assert_same_groups(whole, found, meaning(whole, schedule.snapshot(0, t)))
