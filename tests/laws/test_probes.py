"""A join that searches what it remembers gives what one gives that goes through all of it.

In tests nothing is large, so here every segment is searched that has a few rows; other laws of
joins are tried both ways, too (``test_multi_join.py``, ``test_signed_operators.py``). Schedules are
long, so that segments are merged, shrink and are written anew, and keys are of all kinds.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from decimal import Decimal
from itertools import permutations
from random import Random
from typing import TYPE_CHECKING, TypeAlias
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physical.run import Change, Element, crowds, run
from physical.searching import collide, collide_in_half, search_all, searching
from streams import call
from tidemill.algebra.expr import Call, Column, Literal, conjunction
from tidemill.algebra.values import NAN
from tidemill.model.batch import Form
from tidemill.model.schema import Field, Schema
from tidemill.model.time import Time
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR, decimal
from tidemill.physical import interval, signed
from tidemill.physical.joining.partners import Living, Standing
from tidemill.physical.joining.probe import Step
from tidemill.physical.state import segment, table
from tidemill.physical.state.hashes import Index, row_hash
from tidemill.physical.state.run import Run
from tidemill.physical.state.segment import Searches, Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from physical.run import Output
    from tidemill.algebra.expr import Expr
    from tidemill.algebra.snapshot import Row
    from tidemill.physical.operator import Operator

Hash: TypeAlias = "Callable[[pl.DataFrame], pl.Series]"
Harm: TypeAlias = "Callable[[pytest.MonkeyPatch], None]"

MONEY = decimal(10, 2)
COLUMNS = {"i": BIGINT, "d": DOUBLE, "m": MONEY, "s": VARCHAR}
VALUES = {
    BIGINT: (None, 0, 1, 2),
    DOUBLE: (None, 0.0, -0.0, 1.5, NAN),
    MONEY: (None, Decimal("0.00"), Decimal("0.10"), Decimal("-1.00")),
    VARCHAR: (None, "", "x", "x" * 20),
}
SCHEMA = Schema(tuple(Field(name, type_) for name, type_ in COLUMNS.items()))


def names(ports: int) -> tuple[str, ...]:
    return tuple(f"{name}{port}" for port in range(ports) for name in COLUMNS)


def column(name: str, port: int) -> Column:
    return Column(f"{name}{port}", COLUMNS[name])


def row(schema: Schema, chance: Random) -> Row:
    """Any row; most columns agree with others."""
    return tuple(chance.choice(VALUES[field.type]) for field in schema)


def condition(ports: int, chance: Random) -> Expr:
    """Equalities of neighbours and others, by one column or several, and maybe something else."""
    parts: list[Expr] = []
    for port in range(1, ports):
        other = port - 1 if chance.random() < 0.7 else 0
        for name in chance.sample(sorted(COLUMNS), chance.choice((0, 1, 1, 1, 2, 3))):
            function = chance.choice(("=", "=", "is_not_distinct"))
            parts.append(call(function, column(name, other), column(name, port)))
    if chance.random() < 0.4:
        one, other = chance.sample(range(ports), 2)
        parts.append(call(chance.choice(("<", "<>")), column("i", one), column("i", other)))
    if chance.random() < 0.3:
        more = Call("+", (column("i", 0), Literal(1, BIGINT)), BIGINT)
        parts.append(call("=", more, column("i", ports - 1)))
    return conjunction(*parts)


def joins(form: Form, ports: int, chance: Random) -> Operator:
    """A join of any kind with so many inputs."""
    if ports == 2 and chance.random() < 0.7:
        given_ = (SCHEMA, SCHEMA, names(2), condition(2, chance))
        if form is Form.SIGNED:
            return signed.Join(*given_)
        return interval.Join(*given_, (chance.random() < 0.5, chance.random() < 0.5))
    others = [list(permutations(set(range(ports)) - {port})) for port in range(ports)]
    orders = tuple(chance.choice(order) for order in others)
    schemas = (SCHEMA,) * ports
    if form is Form.SIGNED:
        return signed.MultiJoin(schemas, names(ports), condition(ports, chance), orders)
    return interval.MultiJoin(
        schemas,
        names(ports),
        condition(ports, chance),
        orders,
        orderly=tuple(chance.random() < 0.5 for _ in range(ports)),
        evaluation=chance.choice((0, 0, 3)),
        expiration=chance.choice((0, 0, 5)),
    )


def no_harm(_: pytest.MonkeyPatch) -> None:
    """Everything is as it is."""


def told(output: Output) -> Counter[Element | Change]:
    """Each element, and the sum of the changes of each row at each time."""
    found: Counter[Element | Change] = Counter(output.elements)
    for change in output.changes:
        found[Change(change.row, change.start, 1)] += change.sign
    return Counter({item: count for item, count in found.items() if count})


def differs(
    seed: int, form: Form, small: int, hashing: Hash = row_hash, harm: Harm = no_harm
) -> bool:
    """Whether a join that searches gives something else than one that goes through everything."""
    chance = Random(seed)  # noqa: S311 — no secret
    ports = chance.choice((2, 2, 3, 3, 4))
    before, join = chance.getstate(), joins(form, ports, chance)
    schedule = crowds((SCHEMA,) * ports, row, chance, (form,) * ports)
    reload, patience = chance.random() < 0.2, chance.choice((0, 0, 1))
    with searching(None):
        wanted = told(run(join, schedule, tight=form is Form.INTERVAL))
    with pytest.MonkeyPatch.context() as patch_, hashed_by(hashing):
        search_all(patch_, small=small, patience=patience)
        harm(patch_)
        chance.setstate(before)
        searched = joins(form, ports, chance)  # what is planned may be harmed as well
        found = run(searched, schedule, reload=reload, tight=form is Form.INTERVAL)
    return told(found) != wanted


@contextmanager
def hashed_by(hashing: Hash) -> Iterator[None]:
    """Keys have such hashes meanwhile."""
    names_ = ("table.row_hash", "segment.row_hash", "keyed.row_hash", "keyed.key_hash")
    with ExitStack() as stack:
        for name in names_:
            stack.enter_context(patch(f"tidemill.physical.state.{name}", hashing))
        yield


@pytest.mark.parametrize("form", Form, ids=lambda form: form.name.lower())
@given(
    seed=st.integers(0, 2**32),
    small=st.sampled_from([1, 2, 5]),
    hashing=st.sampled_from([row_hash, row_hash, collide, collide_in_half]),
)
def test_a_join_that_searches_gives_the_same(
    form: Form, seed: int, small: int, hashing: Hash
) -> None:
    assert not differs(seed, form, small, hashing)


# Mutants: the law must fail for them.


def _finds_one_of_a_key(patch_: pytest.MonkeyPatch) -> None:
    found = Index.rows

    def rows(self: Index, halves: NDArray[np.uint64]) -> NDArray[np.uint32]:
        return np.concatenate([found(self, halves[i : i + 1])[:1] for i in range(len(halves))])

    patch_.setattr(Index, "rows", rows)


def _looks_for_a_half_twice(patch_: pytest.MonkeyPatch) -> None:
    def halves(hashes: pl.Series) -> NDArray[np.uint64]:
        return np.sort(hashes.unique().to_numpy() & np.uint64(2**64 - 2**32))

    patch_.setattr(table, "upper_halves", halves)


def _finds_what_is_gone(patch_: pytest.MonkeyPatch) -> None:
    def meeting(self: Run, by: list[str], halves: NDArray[np.uint64], _: int) -> pl.DataFrame:
        found = self.searches.found(self.frame, by, halves)
        return self.alive() if found is None else self.frame[pl.Series(found)]

    patch_.setattr(Run, "meeting", meeting)


def _has_one_index_for_all_keys(patch_: pytest.MonkeyPatch) -> None:
    found = Searches.found

    def first(
        self: Searches, frame: pl.DataFrame, by: tuple[str, ...], halves: NDArray[np.uint64]
    ) -> NDArray[np.uint32] | None:
        known = list(self._indexes)
        return found(self, frame, known[0] if known else by, halves)

    patch_.setattr(Searches, "found", first)


def _looks_for_keys_in_another_order(patch_: pytest.MonkeyPatch) -> None:
    known = Step.__post_init__

    def made(self: Step) -> None:
        known(self)
        object.__setattr__(self, "sought", self.sought[::-1])

    patch_.setattr(Step, "__post_init__", made)


def _takes_all_for_sorted(patch_: pytest.MonkeyPatch) -> None:
    made = segment.made

    def sorted_(*args: object, looks_for_order: bool) -> Segment:
        one = made(*args, looks_for_order=looks_for_order)  # type: ignore[arg-type]
        return replace(one, ordered=frozenset(one.low)) if looks_for_order else one

    patch_.setattr(table, "made", sorted_)


def _forgets_what_changes(patch_: pytest.MonkeyPatch) -> None:
    meeting = Standing.meeting

    def without(self: Standing, by: tuple[str, ...], keys: pl.DataFrame) -> pl.DataFrame:
        return meeting(Standing(self.table), by, keys)

    patch_.setattr(Standing, "meeting", without)


def _skips_what_ends_soon(patch_: pytest.MonkeyPatch) -> None:
    meeting = Living.meeting

    def later(self: Living, by: tuple[str, ...], keys: pl.DataFrame) -> pl.DataFrame:
        return meeting(Living(self.table, Time(self.after + 1), self.is_late), by, keys)

    patch_.setattr(Living, "meeting", later)


def _does_not_find_null(patch_: pytest.MonkeyPatch) -> None:
    patch_.setattr(table, "row_hash", lambda keys: row_hash(keys.drop_nulls()))


def _keeps_the_index_of_another_run(patch_: pytest.MonkeyPatch) -> None:
    shared = Searches()
    patch_.setattr("tidemill.physical.state.run.Searches", lambda: shared)


HARMS: dict[Harm, tuple[Form, Hash]] = {
    _finds_one_of_a_key: (Form.INTERVAL, row_hash),
    _looks_for_a_half_twice: (Form.INTERVAL, collide_in_half),
    _finds_what_is_gone: (Form.SIGNED, row_hash),
    _has_one_index_for_all_keys: (Form.INTERVAL, row_hash),
    _looks_for_keys_in_another_order: (Form.INTERVAL, row_hash),
    _takes_all_for_sorted: (Form.INTERVAL, row_hash),
    _forgets_what_changes: (Form.SIGNED, row_hash),
    _skips_what_ends_soon: (Form.INTERVAL, row_hash),
    _does_not_find_null: (Form.INTERVAL, row_hash),
    _keeps_the_index_of_another_run: (Form.SIGNED, row_hash),
}


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_the_law_finds_what_is_wrong(harm: Harm) -> None:
    form, hashing = HARMS[harm]
    assert any(_is_found(harm, seed, form, hashing) for seed in range(300))


def _is_found(harm: Harm, seed: int, form: Form, hashing: Hash) -> bool:
    """Whether a join that searches wrongly gives something else, or fails."""
    try:
        return differs(seed, form, 1, hashing, harm)
    except (AssertionError, IndexError, pl.exceptions.PolarsError):
        return True
