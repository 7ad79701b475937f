"""Identify: the ids and times of rows as columns."""

from __future__ import annotations

import polars as pl

from laws.catalogue import PAIR
from local import element_batch
from tidemill.algebra.marked import ROW, TIME
from tidemill.algebra.snapshot import Element
from tidemill.model.batch import END, ID, START
from tidemill.physical.operators.rows.identify import Identify


def test_rows_tell_their_ids_and_times() -> None:
    operator = Identify(PAIR)
    batch = element_batch(PAIR, [Element(5, 70, (1, "x")), Element(3, 71, (None, None))])
    (out,) = operator.on_batch(operator.new_state(), 0, batch)
    assert out.select(ROW, TIME).rows() == [(70, 5), (71, 3)]
    assert out.drop(ROW, TIME).equals(batch.select(*PAIR.names, START, END, ID))
    assert operator.schema.names == (*PAIR.names, ROW, TIME)
    assert list(operator.on_batch(operator.new_state(), 0, batch.clear())) == []


def test_rows_of_a_relation_have_no_time() -> None:
    operator = Identify(PAIR, has_time=False)
    batch = element_batch(PAIR, [Element(0, 4, (1, "x"))]).with_columns(pl.lit(9).alias(END))
    (out,) = operator.on_batch(operator.new_state(), 0, batch)
    assert out[ROW].to_list() == [4]
    assert TIME not in out.columns
    assert operator.traits.passes_through
    assert operator.traits.needs_ids
