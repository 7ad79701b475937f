"""Joins go on with the state that an earlier version has saved: laid out otherwise, or hashed so.

Before every step of a probe was searched, joins of many inputs kept a log without tiers, and joins
of two signed inputs found rows by their key only. What finds rows is never saved.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.test_probes import SCHEMA, joins, row
from physical.run import Arrive, batch, crowds, normal
from physical.searching import searching
from stores import opened, refill, save
from tidemill.model.batch import SIGN, Form
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.state.keyed import KeyedTable
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from physical.run import Event
    from tidemill.model.batch import Batch
    from tidemill.physical.operator import Operator, State


def earlier(operator: Operator) -> State:
    """No row of any input, as earlier versions would have it."""
    state = operator.new_state()
    for name, known in state.tables.items():
        if isinstance(known, KeyedTable):
            state.tables[name] = KeyedTable(known.schema, (), index=known.key)
        else:
            times = tuple(c for c in known.schema if c.startswith(("@start", "@end", "@time")))
            by_expiry = known.layout != "arrival"
            state.tables[name] = Table(known.schema, times, by_expiry=by_expiry)
    return state


def step(operator: Operator, state: State, event: Event) -> list[Batch]:
    """What comes out."""
    if isinstance(event, Arrive):
        form = operator.traits.takes[event.port]
        assert form is not None, "a join says which form it takes"
        return list(operator.on_batch(state, event.port, batch(SCHEMA, event.elements, form)))
    return list(operator.on_watermark(state, Time(event.time)))


def summed(parts: list[Batch]) -> list[tuple[object, ...]]:
    """How often each row comes out, or the sum of its signs, in an order."""
    if not parts:
        return []
    rows = pl.concat(parts)
    count = pl.col(SIGN).sum() if SIGN in rows.columns else pl.len().cast(pl.Int64)
    names = [name for name in rows.columns if name != SIGN]
    found = rows.group_by(names).agg(count.alias("count")).filter(pl.col("count") != 0)
    return sorted(map(normal, found.rows()), key=repr)


@pytest.mark.parametrize("form", Form, ids=lambda form: form.name.lower())
@given(seed=st.integers(0, 2**32), small=st.sampled_from([None, 1, 3]))
def test_what_was_saved_by_an_earlier_version_goes_on(
    form: Form, seed: int, small: int | None
) -> None:
    chance = Random(seed)  # noqa: S311 — no secret
    ports = chance.choice((2, 3))
    join = joins(form, ports, chance)
    schedule = crowds((SCHEMA,) * ports, row, chance, (form,) * ports)
    cut = chance.randrange(len(schedule.events))
    given_: list[Batch] = []
    wanted: list[Batch] = []
    state, undisturbed = earlier(join), join.new_state()
    for number, event in enumerate(schedule.events):
        wanted += step(join, undisturbed, event)
        if number == cut:
            store, state = save(state), join.new_state()
            refill(state, store)
        with searching(small):
            given_ += step(join, state, event)
    given_ += join.on_watermark(state, Time(END_OF_TIME))
    wanted += join.on_watermark(undisturbed, Time(END_OF_TIME))
    assert summed(given_) == summed(wanted)
    assert not state.rows()


@pytest.mark.parametrize("form", Form, ids=lambda form: form.name.lower())
def test_what_finds_rows_is_not_saved(form: Form) -> None:
    chance = Random(5)  # noqa: S311 — no secret
    join = joins(form, 3, chance)
    schedule = crowds((SCHEMA,) * 3, row, chance, (form,) * 3)
    plain, searched = join.new_state(), join.new_state()
    for event in schedule.events:
        with searching(1, patience=10**6):
            step(join, plain, event)
        with searching(1):
            step(join, searched, event)
    assert searched.bytes() > plain.bytes(), "an index takes room"
    assert opened(save(searched)).packs == opened(save(plain)).packs
