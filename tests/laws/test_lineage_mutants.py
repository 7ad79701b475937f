"""The laws of provenance find what is wrong: origins that are forgotten, and some too many."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from laws import test_lineage, test_minimal_lineage
from laws.test_mutants import fails
from tidemill.algebra import lineage, origins
from tidemill.algebra.lineage import Lineage
from tidemill.algebra.plan import Distinct, SemiJoin, Union

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.origins import Made
    from tidemill.algebra.plan import Aggregate, Join, Plan
    from tidemill.algebra.snapshot import Row

    Wrong = Callable[..., object]

ALL, WITH_EQUALS = origins._all_origins, origins._with_equals  # noqa: SLF001 — where nobody goes
AGGREGATED, JOIN = origins._aggregated, origins._join  # noqa: SLF001
ROWS = Lineage._rows  # noqa: SLF001
APPLY, COMBINE, NEW = origins.apply, origins.combine, origins.new_rows


def a_group_forgets_a_row(plan: Aggregate, key: Row, group: list[Made]) -> Made:
    return AGGREGATED(plan, key, group)[0], ALL(group[:-1])


def a_join_keeps_the_left_side(plan: Join, left: list[Made], right: list[Made]) -> list[Made]:
    return JOIN(plan, left, [(row, frozenset()) for row, _ in right])


def a_semi_join_keeps_the_left_side(plan: Plan, left: list[Made], right: list[Made]) -> list[Made]:
    nothing: list[Made] = [(row, frozenset()) for row, _ in right]
    return COMBINE(plan, left, nothing if isinstance(plan, SemiJoin) else right)  # type: ignore[arg-type]


def distinct_keeps_one_derivation(plan: Plan, rows: list[Made]) -> list[Made]:
    kept = list({row: (row, made) for row, made in rows}.values())
    return APPLY(plan, kept if isinstance(plan, Distinct) else rows)  # type: ignore[arg-type]


def the_right_side_is_forgotten(rows: list[Made], others: list[Made]) -> list[Made]:
    return NEW(rows, [(row, frozenset()) for row, _ in others])


def a_union_adds_what_is_equal(plan: Plan, left: list[Made], right: list[Made]) -> list[Made]:
    made = COMBINE(plan, left, right)  # type: ignore[arg-type]
    return WITH_EQUALS(Counter(row for row, _ in made), made) if isinstance(plan, Union) else made


def what_is_left_has_origins_of_all(bag: Counter[Row], rows: list[Made]) -> list[Made]:
    return [(row, ALL(rows)) for row in bag.elements()]


def a_shared_part_is_one_leaf(self: Lineage, plan: Plan, leaf: int, time: int) -> list[Made]:
    known = (first for part, first, _ in self._known if part == id(plan))
    return ROWS(self, plan, next(known, leaf), time)


MUTANTS: list[tuple[object, str, Wrong, Callable[..., None]]] = [
    (origins, "_aggregated", a_group_forgets_a_row, test_lineage.test_the_origins_are_enough),
    (
        origins,
        "_join",
        a_join_keeps_the_left_side,
        test_lineage.test_a_copy_is_there_if_and_only_if_its_origins_are,
    ),
    (
        lineage,
        "combine",
        a_semi_join_keeps_the_left_side,
        test_lineage.test_a_part_makes_part_of_the_answer,
    ),
    (
        lineage,
        "apply",
        distinct_keeps_one_derivation,
        test_lineage.test_nothing_else_matters,
    ),
    # In EXCEPT, and in ISTREAM, whose right side is the instant before.
    (origins, "new_rows", the_right_side_is_forgotten, test_lineage.test_nothing_else_matters),
    (lineage, "new_rows", the_right_side_is_forgotten, test_lineage.test_nothing_else_matters),
    (
        lineage,
        "combine",
        a_union_adds_what_is_equal,
        test_lineage.test_a_copy_is_there_if_and_only_if_its_origins_are,
    ),
    (
        origins,
        "_with_equals",
        what_is_left_has_origins_of_all,
        test_minimal_lineage.test_the_origins_are_what_matters,
    ),
    (
        origins,
        "_with_equals",
        what_is_left_has_origins_of_all,
        test_lineage.test_the_origins_make_nothing_else,
    ),
    (
        Lineage,
        "_rows",
        a_shared_part_is_one_leaf,
        test_lineage.test_a_copy_is_there_if_and_only_if_its_origins_are,
    ),
]


LONG = {(origins, "new_rows"), (lineage, "combine")}
"""What takes long to be found, and is looked for by ``make soak``."""


@pytest.mark.parametrize(
    ("module", "name", "wrong", "law"),
    [
        pytest.param(*one, marks=pytest.mark.soak) if (one[0], one[1]) in LONG else one
        for one in MUTANTS
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_the_law_finds_what_is_wrong(
    module: object, name: str, wrong: Wrong, law: Callable[..., None]
) -> None:
    with patch.object(module, name, wrong):
        fails(law)
