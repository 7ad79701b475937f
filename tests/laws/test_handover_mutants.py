"""The laws of handing over find what is handed over wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from laws import handing_over
from laws.handing_over import LAWS, alone, hands
from laws.kinds import KINDS
from physical.run import Advance, Arrive, Element, Schedule
from streams import one_column
from tidemill.algebra.expr import TRUE
from tidemill.model.batch import END, ID, SIGN, START, TIME, TIME_TYPE
from tidemill.physical import interval
from tidemill.physical.interval import Change
from tidemill.physical.kernels.arguments import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from hypothesis.strategies import SearchStrategy

    from laws.kinds import Case
    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.physical.handover import HandsOver
    from tidemill.physical.operator import Operator, State

Wrong: TypeAlias = "Callable[[Batch, int], Batch]"

LETTERS = one_column("S").schema
ROUND = ((1, 2), (2, 0), (0, 1))


def at_once(*came: tuple[int, str, int, int]) -> Schedule:
    """Elements that come at once, each letter as one, before the watermark 5."""
    events = [
        Arrive(port, tuple(Element((letter,), start, end) for letter in letters))
        for port, letters, start, end in came
    ]
    ports = 1 + max(port for port, *_ in came)
    return Schedule((LETTERS,) * ports, (*events, Advance(5)))


class Handing:
    """The methods of an operator, one of which says something else."""

    def __init__(self, operator: Operator, method: str, wrong: Wrong) -> None:
        self._right, self._method, self._wrong = hands(operator), method, wrong

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        return self._said("remembered", self._right.remembered(state, port, time), time)

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        self._right.remember(state, port, batch, time)

    def standing(self, state: State, time: Time) -> Batch:
        return self._said("standing", self._right.standing(state, time), time)

    def _said(self, method: str, batch: Batch, time: Time) -> Batch:
        return self._wrong(batch, time) if method == self._method else batch


def started(batch: Batch) -> pl.Expr:
    return pl.col(TIME if TIME in batch.columns else START)


def without_duplicates(batch: Batch, time: int) -> Batch:
    del time
    return batch.unique()


def counted_once(batch: Batch, time: int) -> Batch:
    del time
    return batch.with_columns(pl.col(SIGN).clip(-1, 1))


def one_more(batch: Batch, time: int) -> Batch:
    more = pl.when(pl.col(TIME) < time).then(1).otherwise(0)
    return batch.with_columns(pl.col(SIGN) + more)


def one_row_more(batch: Batch, time: int) -> Batch:
    del time
    return batch.with_columns(pl.col(ROWS) + 1)


def without_what_comes(batch: Batch, time: int) -> Batch:
    return batch.filter(started(batch) < time)


def without_what_is_there(batch: Batch, time: int) -> Batch:
    return batch.filter(started(batch) >= time)


def without_what_ends_now(batch: Batch, time: int) -> Batch:
    if SIGN in batch.columns:
        return batch.filter((pl.col(TIME) != time) | (pl.col(SIGN) > 0))
    return batch.filter(pl.col(END) != time)


def from_now_on(batch: Batch, time: int) -> Batch:
    name = TIME if TIME in batch.columns else START
    return batch.with_columns(pl.col(name).clip(lower_bound=time))


def since_ever(batch: Batch, time: int) -> Batch:
    name = TIME if TIME in batch.columns else START
    before = pl.when(pl.col(name) < time).then(pl.lit(0, TIME_TYPE)).otherwise(name)
    return batch.with_columns(before.alias(name))


def stuffed(batch: Batch, time: int) -> Batch:
    del time
    return batch.with_columns(pl.lit(None, batch.dtypes[0]).alias(batch.columns[0]))


def other_ids(batch: Batch, time: int) -> Batch:
    del time
    later = pl.when(pl.col(ID) == 0).then(9).otherwise(ID)
    return batch.with_columns(later.alias(ID))


def moved(column: str) -> Wrong:
    return lambda batch, _: batch.with_columns(pl.col(column) + 1)


def without_part(*starts: str) -> Wrong:
    def wrong(batch: Batch, time: int) -> Batch:
        del time
        of_part = pl.any_horizontal(pl.col("@part").str.starts_with(one) for one in starts)
        return batch.filter(~of_part)

    return wrong


MUTANTS: list[tuple[str, str, Wrong]] = [
    ("counting", "remembered", one_more),
    ("signed counting", "remembered", one_more),
    ("signed counting", "remembered", without_what_comes),
    ("row window", "remembered", without_what_comes),
    ("changes", "remembered", without_what_comes),
    ("to intervals", "remembered", without_what_comes),
    ("distinct", "remembered", without_what_is_there),
    ("counting", "remembered", without_what_ends_now),
    ("signed counting", "remembered", without_what_ends_now),
    ("counting", "remembered", from_now_on),
    ("to intervals", "remembered", from_now_on),
    ("distinct", "remembered", from_now_on),
    ("signed counting", "remembered", from_now_on),
    ("counting", "remembered", since_ever),
    ("to intervals", "remembered", since_ever),
    ("signed join", "remembered", stuffed),
    ("counting", "remembered", stuffed),
    ("signed row window", "remembered", moved("@position")),
    ("signed row window", "standing", without_what_is_there),
    ("signed session window", "standing", without_what_is_there),
]
"""Found within a few examples."""

HARDER: list[tuple[str, str, Wrong]] = [
    ("join", "remembered", without_duplicates),
    ("signed join", "remembered", counted_once),
    ("signed join of three", "remembered", counted_once),
    ("counting", "remembered", counted_once),
    ("aggregate", "remembered", one_row_more),
    ("signed aggregate", "remembered", one_row_more),
    ("join", "remembered", without_what_comes),
    ("signed join", "remembered", without_what_comes),
    ("distinct", "remembered", without_what_comes),
    ("counting", "remembered", without_what_comes),
    ("aggregate", "remembered", without_what_comes),
    ("session window", "remembered", without_what_comes),
    ("join", "remembered", without_what_is_there),
    ("aggregate", "remembered", without_what_ends_now),
    ("signed aggregate", "remembered", without_what_ends_now),
    ("to intervals", "remembered", without_what_ends_now),
    ("aggregate", "remembered", from_now_on),
    ("signed join", "remembered", from_now_on),
    ("aggregate", "remembered", since_ever),
    ("join", "remembered", stuffed),
    ("row window", "remembered", moved("@position")),
    ("session window", "remembered", moved("@last")),
    ("aggregate", "remembered", without_part("min", "max")),
    ("aggregate", "remembered", without_part("bag")),
    ("aggregate of changes", "remembered", without_part("min", "max")),
    ("signed aggregate", "remembered", without_part("emitted")),
    ("join", "standing", without_what_comes),
    ("join of three", "standing", without_what_comes),
    ("join", "standing", without_duplicates),
    ("distinct", "standing", without_what_is_there),
    ("signed counting", "standing", counted_once),
    ("signed join", "standing", moved(TIME)),
    ("signed aggregate", "standing", without_what_is_there),
]
"""Found within some hundred."""

KNOWN: list[tuple[Case, str, Wrong]] = [
    (
        (
            interval.MultiJoin((LETTERS,) * 3, ("x", "y", "z"), TRUE, ROUND),
            at_once(*((port, "xx", 1, 9) for port in range(3))),
        ),
        "remembered",
        without_duplicates,
    ),
    (
        (interval.Changes(Change.DELETED, LETTERS), at_once((0, "x", 1, 5))),
        "remembered",
        without_what_ends_now,
    ),
    (
        (interval.RowWindow(LETTERS, 1), at_once((0, "x", 6, 7), (0, "y", 6, 7))),
        "remembered",
        other_ids,
    ),
]
"""Seldom met, so said."""


def is_found(cases: SearchStrategy[Case], method: str, wrong: Wrong) -> None:
    def mutant(operator: Operator) -> HandsOver:
        return Handing(operator, method, wrong)

    @settings(
        max_examples=400,
        phases=[Phase.generate],
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
    )
    @given(case=cases, kept=st.sets(st.integers(0, 9), max_size=2))
    def law(case: Case, kept: AbstractSet[int]) -> None:
        operator, schedule = case
        note = alone(operator, schedule, ids=operator.traits.needs_ids)
        for check in LAWS:
            check(note, kept)

    with (
        patch.object(handing_over, "hands", mutant),
        pytest.raises((AssertionError, ValueError, pl.exceptions.PolarsError)),
    ):
        law()


@pytest.mark.parametrize(("kind", "method", "wrong"), MUTANTS)
def test_what_is_handed_over_wrongly_is_found(kind: str, method: str, wrong: Wrong) -> None:
    is_found(KINDS[kind], method, wrong)


@pytest.mark.parametrize(("case", "method", "wrong"), KNOWN, ids=["join", "changes", "ids"])
def test_what_is_seldom_met_is_found(case: Case, method: str, wrong: Wrong) -> None:
    is_found(st.just(case), method, wrong)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "method", "wrong"), HARDER)
def test_what_is_harder_to_find_is_found(kind: str, method: str, wrong: Wrong) -> None:
    is_found(KINDS[kind], method, wrong)
