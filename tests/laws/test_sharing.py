"""What queries share: together they give what each gives alone, whoever comes and goes.

Drawn are queries on one stream that differ in anything: filters, windows, keys, aggregates and what
stands above. They share conditions, rows on their way, windows, panes and stacks; the reference
looks at each by itself.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.catalogue import PAIR, Inputs, S, inputs
from laws.strategies import predicates
from laws.test_mutants import fails
from laws.test_stacks import (
    STEPS,
    Query,
    come_and_go,
    come_and_go_in_a_pipeline,
    kinds,
    queries,
)
from tidemill.algebra.expr import Column, Named
from tidemill.algebra.plan import Filter, Project, TimeWindow, Window
from tidemill.engine import bundles, engine, predicate_index, views
from tidemill.engine.bundles import Bundle
from tidemill.engine.predicate_index import PredicateIndex
from tidemill.model.batch import END, START
from tidemill.physical.frames import keep
from tidemill.physical.kernels.segments import Addends
from tidemill.physical.operators.aggregate import aggregate, crowd

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan
    from tidemill.physical.operators.windows.validity import Validity


@st.composite
def unlike(draw: DrawFn) -> list[Query]:
    """Some queries of one kind or two; most are there from the beginning to the end."""
    pool = draw(st.lists(kinds(), min_size=1, max_size=2))
    count = draw(st.integers(2, 6))
    found = [draw(queries(draw(st.sampled_from(pool)), f"q{i}")) for i in range(count)]
    if draw(st.booleans()):
        found.append(Query(_rows_of(draw(predicates(PAIR))), 0, STEPS + 1))
    return found


def _rows_of(predicate: Expr) -> Plan:
    """A query that is no aggregation, of the same rows."""
    kept = Filter(S, predicate)
    last = Project(kept, tuple(Named(f"p{f.name}", Column(f.name, f.type)) for f in PAIR))
    return Window(last, TimeWindow(3))


schedule = {
    "content": inputs(),
    "drawn": unlike(),
    "partitions": st.sampled_from([1, 2, 3]),
}


@settings(max_examples=4 * settings().max_examples)
@given(
    data=st.data(),
    max_delay=st.sampled_from([None, 0, 1, 3]),
    much=st.sampled_from([20_000, 20_000, 2]),
    portion=st.sampled_from([1 << 21, 3]),
    shrinks=st.sampled_from([4, 0, 0]),
    fewest=st.sampled_from([1, 1, 16]),
    reload=st.booleans(),
    **schedule,
)
def test_queries_that_differ_come_and_go(  # noqa: PLR0913, PLR0917 — it draws everything
    data: st.DataObject,
    drawn: list[Query],
    content: Inputs,
    partitions: int,
    max_delay: int | None,
    much: int,
    portion: int,
    shrinks: int,
    fewest: int,
    *,
    reload: bool,
) -> None:
    with (
        patch.object(engine, "STACK_LIMIT_ROWS", much),
        patch.object(predicate_index, "_FEWEST", fewest),  # 1: every comparison is looked up
        patch.object(crowd, "_LOOKED_AT", portion),
        patch.object(aggregate, "_SHRINKS", shrinks),  # 0: rows always become panes
    ):
        come_and_go(data, drawn, content, partitions, max_delay, reload=reload)


@given(much=st.sampled_from([20_000, 20_000, 1]), reopen=st.booleans(), **schedule)
def test_queries_that_differ_come_and_go_in_a_pipeline(
    drawn: list[Query], content: Inputs, partitions: int, much: int, *, reopen: bool
) -> None:
    """The same with the stages of the pipeline on Spark, and state that is kept in stores."""
    with patch.object(engine, "STACK_LIMIT_ROWS", much):
        come_and_go_in_a_pipeline(drawn, content, partitions, reopen=reopen)


@given(data=st.data(), wide=st.booleans())
def test_segments_are_added_up_exactly(data: st.DataObject, *, wide: bool) -> None:
    least = -(2**100) if wide else -(2**40)
    numbers = st.sampled_from([0, 1, -1, least, -least]) | st.integers(least, -least)
    values = data.draw(st.lists(numbers, min_size=1, max_size=8))
    column = pl.Series("c", values, pl.Int128 if wide else pl.Int64)
    picked = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=9))
    starts = sorted({0, *data.draw(st.lists(st.integers(0, len(picked) - 1)))})
    summed = Addends(column).sums(np.array(picked), np.array(starts))
    ends = [*starts[1:], len(picked)]
    expected = [sum(values[i] for i in picked[a:b]) for a, b in zip(starts, ends, strict=True)]
    assert summed.dtype == column.dtype
    assert summed.to_list() == expected


# The law finds what is wrong


def _bits_of_others() -> ExitStack:
    right = Bundle.unpacked
    return _patched(Bundle, "unpacked", lambda self, batch: right(self, batch)[::-1])


def _first_conditions_only() -> ExitStack:
    right = PredicateIndex
    return _patched(bundles, "PredicateIndex", lambda bits: right([(one[0],) for one in bits]))


def _what_no_other_wants_stays_behind() -> ExitStack:
    right = keep
    return _patched(bundles, "keep", lambda rows, mask: right(rows, mask)[1:])


def _one_window_for_all() -> ExitStack:
    right = views.Arrived.windowed

    def windowed(self: views.Arrived, validity: Validity) -> views.Windowed:
        return next(iter(self._windows.values()), None) or right(self, validity)

    return _patched(views.Arrived, "windowed", windowed)


def _panes_whenever_they_begin() -> ExitStack:
    right = crowd.Panes.of

    def of(keys: pl.DataFrame, shown: object, times: pl.DataFrame) -> crowd.Panes:
        once = times.with_columns(pl.col(START, END).min())
        return replace(right(keys, shown, once), times=times)  # type: ignore[arg-type]

    return _patched(crowd.Panes, "of", of)


def _constants_count_once() -> ExitStack:
    right = Addends.sums

    def sums(self: Addends, picked: object, starts: object) -> pl.Series:
        return right(self, picked, starts).clip(upper_bound=1)  # type: ignore[arg-type]

    return _patched(Addends, "sums", sums)


def _everybody_looks_at_all() -> ExitStack:
    right = crowd.Crowd.add

    def add(self: crowd.Crowd, look: int, panes: crowd.Panes, mask: object, tag: int) -> None:
        right(self, look, panes, np.ones_like(mask), tag)

    return _patched(crowd.Crowd, "add", add)


def _patched(where: object, name: str, wrong: Callable[..., object]) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(patch.object(where, name, wrong))
    return stack


@pytest.mark.parametrize(
    "mistake",
    [
        _bits_of_others,
        _first_conditions_only,
        pytest.param(_what_no_other_wants_stays_behind, marks=pytest.mark.soak),
        _one_window_for_all,
        _panes_whenever_they_begin,
        _everybody_looks_at_all,
    ],
)
def test_the_law_finds_what_is_wrong(mistake: Callable[[], ExitStack]) -> None:
    with mistake():
        fails(test_queries_that_differ_come_and_go)


def test_the_law_of_segments_finds_what_is_wrong() -> None:
    with _constants_count_once():
        fails(test_segments_are_added_up_exactly)
