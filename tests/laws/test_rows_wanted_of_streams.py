"""A plan gives the same without the rows of its streams that it does not want."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, SOURCES, VALUES, Inputs, inputs
from laws.derived_streams import dense_inputs
from laws.strategies import plans
from local import element_batch
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import Call, Column, Literal, Named
from tidemill.algebra.plan import (
    Filter,
    Project,
    RowWindow,
    SessionWindow,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.model.batch import ID
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.provenance.wanted import Part, choice, is_all, rows_wanted

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

    from tidemill.algebra.plan import Plan, WindowSpec

    Wanted = dict[str, frozenset[Part]]
    Harm = Callable[[Wanted], Wanted]


def without_others(content: Inputs, wanted: Wanted) -> Inputs:
    """The rows that are wanted, and those of streams that nobody reads."""
    streams = dict(content.streams)
    for source in SOURCES:
        parts = wanted.get(source.name)
        if parts is None or is_all(parts):
            continue
        rows = element_batch(source.schema, streams[source.name])
        halves = [rows[: rows.height // 2], rows[rows.height // 2 :]]
        chosen = choice(parts, lambda halves=halves: halves)  # type: ignore[misc]
        ids = {id_ for half in halves for id_ in chosen(half)[ID]}
        streams[source.name] = tuple(one for one in streams[source.name] if one.id in ids)
    return replace(content, streams=streams)


def differs(plan: Plan, content: Inputs, harm: Harm = lambda wanted: wanted) -> bool:
    fewer = without_others(content, harm(rows_wanted(optimize(plan))))
    whole, part = content.reference(), fewer.reference()
    return any(
        Counter(whole.snapshot(plan, time)) != Counter(part.snapshot(plan, time))
        for time in HORIZON
    )


@st.composite
def conditions(draw: DrawFn, columns: list[Column]) -> Call:
    """That a column has a value."""
    column = draw(st.sampled_from(columns))
    value = draw(st.sampled_from([one for one in VALUES[column.type] if one is not None]))
    return Call("=", (column, Literal(value, column.type)), BOOLEAN)


@st.composite
def chosen(draw: DrawFn) -> Plan:
    """Filters below and above a window, and columns in another order."""
    source = draw(st.sampled_from(SOURCES))
    columns = [Column(one.name, one.type) for one in source.schema]
    key = draw(st.sampled_from(columns))
    plan: Plan = source
    if draw(st.booleans()):
        plan = Filter(plan, draw(conditions(columns)))
    windows: list[WindowSpec] = [
        TimeWindow(3, 1),
        RowWindow(2, partition_by=(key.name,)),
        RowWindow(2, slide=2, partition_by=(key.name,)),
        SessionWindow(2, (key.name,)),
        RowWindow(3),
        Unbounded(),
    ]
    plan = Window(plan, draw(st.sampled_from(windows)))
    if draw(st.booleans()):
        plan = Project(plan, tuple(Named(f"c{i}", c) for i, c in enumerate(columns[::-1])))
        columns = [Column(f"c{i}", c.type) for i, c in enumerate(columns[::-1])]
    return Filter(plan, draw(conditions(columns)))


@st.composite
def pairs_chosen(draw: DrawFn) -> Plan:
    """One or two of them; two over one stream want different rows of it."""
    left, right = draw(chosen()), draw(chosen())
    if draw(st.booleans()) or [f.type for f in left.schema] != [f.type for f in right.schema]:
        return left
    fitting = tuple(
        Named(one.name, Column(other.name, other.type))
        for one, other in zip(left.schema, right.schema, strict=True)
    )
    return Union(left, Project(right, fitting))


@settings(max_examples=4 * settings().max_examples)
@given(plan=pairs_chosen() | plans(), content=inputs() | dense_inputs())
def test_what_is_not_wanted_does_not_matter(plan: Plan, content: Inputs) -> None:
    assert not differs(plan, content), explain(plan)


def rows_for_groups(wanted: Wanted) -> Wanted:
    """Only the rows of a group that meet the condition, not the group."""
    return {
        name: frozenset(
            Part(p.conditions | p.groups.conditions) if p.groups is not None else p for p in parts
        )
        for name, parts in wanted.items()
    }


def one_place_only(wanted: Wanted) -> Wanted:
    """What one place of the plan wants, and not what others do."""
    return {name: frozenset(sorted(parts, key=repr)[:1]) for name, parts in wanted.items()}


@pytest.mark.parametrize("harm", [rows_for_groups, one_place_only])
def test_the_law_finds_what_is_wrong(harm: Harm) -> None:
    find(
        st.tuples(pairs_chosen(), inputs() | dense_inputs()),
        lambda drawn: differs(drawn[0], drawn[1], harm),
        settings=settings(max_examples=8000, deadline=None, phases=[Phase.generate]),
    )
