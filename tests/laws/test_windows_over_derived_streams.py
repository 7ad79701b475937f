"""A window counts the elements of a derived stream, whatever it is derived by, in which form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import tidemill
from laws.arrivals import arrivals, emitted
from laws.catalogue import HORIZON, SOURCES, Inputs
from laws.derived_streams import DERIVED, dense_inputs, windows_over
from laws.test_engine import relation_inputs, snapshot
from plans import physical
from tidemill.algebra.explain import explain
from tidemill.algebra.tree import share
from tidemill.errors import PlanError
from tidemill.model.batch import Form
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan


@pytest.mark.parametrize("derived", DERIVED)
@settings(max_examples=2 * settings().max_examples)
@given(
    data=st.data(),
    content=dense_inputs(),
    partitions=st.integers(1, 3),
    max_delay=st.sampled_from([None, 0, 3]),
    technique=st.sampled_from([Technique.PATTERN, Technique.NEGATIVE, *Technique]),
    answer=st.none() | st.sampled_from(Form),
    multiway=st.booleans(),
    optimized=st.booleans(),
)
def test_a_window_counts_the_elements_of_a_derived_stream(  # noqa: PLR0913 — it draws everything
    derived: str,
    data: st.DataObject,
    content: Inputs,
    *,
    partitions: int,
    max_delay: int | None,
    technique: Technique,
    answer: Form | None,
    multiway: bool,
    optimized: bool,
) -> None:
    plan: Plan = share(data.draw(windows_over(derived)))
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    planning = Planning(
        optimized=optimized,
        max_delay=max_delay,
        technique=technique,
        joins=Joins.MULTIWAY if multiway else Joins.BINARY,
    )
    try:
        out = emitted(
            physical(plan, planning, answer=answer),
            {source.name: source.schema for source in SOURCES},
            relation_inputs(content),
            arrival,
            partitions,
            reload=False,
        )
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    reference = content.reference()
    for time in HORIZON:
        expected = reference.snapshot(plan, time)
        assert snapshot(out, plan.schema, time) == expected, f"at {time}:\n{explain(plan)}"


@pytest.mark.parametrize("technique", [technique.value for technique in Technique])
@pytest.mark.parametrize(
    "other", ["a [ROWS 1]", "a [SESSION 3]", "(SELECT MAX(k) AS k FROM a [RANGE 3])"]
)
@pytest.mark.parametrize("window", ["RANGE 5", "RANGE UNBOUNDED", "ROWS 5", "SESSION 5"])
def test_equal_rows_at_neighbouring_instants_are_two(
    window: str, other: str, technique: str
) -> None:
    session = tidemill.connect(technique=technique)
    session.put("a", pl.DataFrame({"t": [0, 1], "k": [1, 1]}))
    session.sql("CREATE STREAM a (t BIGINT, k BIGINT) SOURCE memory('a') ORDERED BY t")
    query = session.sql(
        f"SELECT COUNT(*) AS n FROM (SELECT y.k FROM {other} x, a y WHERE x.k = y.k) [{window}] w"
    )
    assert isinstance(query, tidemill.Query)
    session.run()
    rows = {"a [SESSION 3]": 3}.get(other, 2)  # the session holds both rows at instant 1
    assert [query.snapshot(at).rows() for at in (0, 1)] == [[(1,)], [(rows,)]]
