"""The laws of WHY and WHY NOT find mistakes that are made on purpose."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from laws import test_why, test_why_change, test_why_not
from laws.catalogue import LAST, S, T
from laws.derived_streams import dense_inputs
from laws.test_mutants import fails
from tidemill.algebra.plan import Difference, Dstream, Istream, TimeWindow, Window
from tidemill.model.time import Time
from tidemill.provenance import changes, missing, steps, trace
from tidemill.provenance.annotate import annotate
from tidemill.provenance.trace import TO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laws.catalogue import Inputs
    from tidemill.algebra.plan import Plan
    from tidemill.provenance.computing import Elements
    from tidemill.provenance.leaves import Annotated, Ends, Leaf
    from tidemill.provenance.paths import Place
    from tidemill.provenance.steps import Step
    from tidemill.provenance.trace import Made, Trace

STEPS, TAKE, PAIRS, MADE = steps.steps_of, trace.take, trace.pairs_of, trace._made  # noqa: SLF001
SPAN, THROUGH = missing.span_of, missing._through  # noqa: SLF001


def _then_only(node: Plan, ends: Ends, *, against: bool = False) -> tuple[Step, ...]:
    """ISTREAM and DSTREAM look at the instant alone."""
    found = STEPS(node, ends, against=against)
    is_change = isinstance(node, Istream | Dstream)
    return tuple(replace(one, before=0) for one in found) if is_change else found


def _left_only(node: Plan, ends: Ends, *, against: bool = False) -> tuple[Step, ...]:
    """EXCEPT ALL looks at its left side alone."""
    found = STEPS(node, ends, against=against)
    return found[:1] if isinstance(node, Difference) else found


def _one_leaf(
    found: Trace, annotated: Annotated, rows: pl.DataFrame, path: tuple[str, ...]
) -> None:
    """Of what has met, only the first counts."""
    TAKE(found, replace(annotated, leaves=annotated.leaves[:1]), rows, path)


def _longer(found: Trace, frame: pl.DataFrame, step: Step, compute: Elements) -> pl.DataFrame:
    """What comes at the next instant counts as well."""
    return PAIRS(found, frame.with_columns(pl.col(TO) + 1), step, compute)


def _one_of_equal(found: Trace, frame: pl.DataFrame, step: Step, compute: Elements) -> pl.DataFrame:
    """Of the rows that an operator has made one of, the first counts."""
    return PAIRS(found, frame, step, compute).unique("@node", maintain_order=True)


def _later(leaf: Leaf, rows: pl.DataFrame, first: int, path: tuple[str, ...]) -> Made:
    """A row below a window was there an instant later."""
    if leaf.at is None:
        return MADE(leaf, rows, first, path)
    return MADE(leaf, rows.with_columns(pl.col(leaf.at) + 1), first, path)


@pytest.mark.parametrize(
    ("harm", "plan"),
    [
        (_then_only, Dstream(Window(S, TimeWindow(2)))),
        (_left_only, Difference(Window(S, TimeWindow(3)), Window(T, TimeWindow(2)))),
    ],
    ids=["then only", "left only"],
)
def test_steps_that_are_wrong_are_found(harm: Callable[..., tuple[Step, ...]], plan: Plan) -> None:
    def is_wrong(drawn: tuple[Inputs, int]) -> bool:
        content, time = drawn
        told = test_why.as_found(content, plan, time)
        return told != test_why.by_definition(content, plan, time)

    quick = settings(phases=[Phase.generate], database=None, max_examples=2000)
    with patch.object(trace, "steps_of", harm):
        find(st.tuples(dense_inputs(), st.integers(0, LAST)), is_wrong, settings=quick)


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("take", _one_leaf),
        ("pairs_of", _longer),
        ("pairs_of", _one_of_equal),
        ("_made", _later),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_traces_that_are_wrong_are_found(name: str, harm: Callable[..., object]) -> None:
    with patch.object(trace, name, harm):
        fails(test_why.test_what_is_found_is_what_it_was_made_of)


def _shorter(places: Sequence[Place], number: int, at: Time) -> tuple[Time, Time]:
    """The last instant that matters is left out."""
    first, last = SPAN(places, number, at)
    return first, Time(max(last - 1, first)) if number else last


def _at_any_time(*given: object) -> pl.DataFrame:
    """The row of an operator is followed without regard to when it is there."""
    found = THROUGH(*given)  # type: ignore[arg-type]
    return found.with_columns(pl.lit(0, pl.Int64).alias("@from"), pl.lit(99, pl.Int64).alias("@to"))


def test_candidates_that_are_lost_are_found() -> None:
    with patch.object(missing, "span_of", _shorter):
        fails(test_why_not.test_a_candidate_has_ended_where_it_is_said)


def test_candidates_that_are_mixed_up_are_found() -> None:
    with patch.object(missing, "_through", _at_any_time), pytest.raises(AssertionError):
        test_why_not.test_a_row_that_was_there_at_another_instant_is_not_followed()


def _without_partners(node: Plan, ends: Ends, *, against: bool = False) -> tuple[Step, ...]:
    """Nobody asks for partners that have gone."""
    del against
    return STEPS(node, ends)


@pytest.mark.soak
def test_changes_that_are_overlooked_are_found() -> None:
    def blind(plan: Plan, ends: Ends | None = None, *, against: bool = False) -> Annotated:
        del against
        return annotate(plan, ends)

    with (
        patch.object(changes, "annotate", blind),
        patch.object(changes, "steps_of", _without_partners),
    ):
        fails(test_why_change.test_what_changed_a_row_is_named)
