"""The reference evaluator, where types and sharing make it delicate."""

from __future__ import annotations

from time import perf_counter

import tidemill
from tidemill.algebra.snapshot import Element, Reference


def session() -> tidemill.Session:
    made = tidemill.connect()
    made.sql("CREATE STREAM s (a BIGINT, c DOUBLE, t BIGINT) SOURCE memory('s') ORDERED BY t")
    return made


def query(text: str) -> tidemill.Query:
    registered = session().sql(text)
    assert isinstance(registered, tidemill.Query)
    return registered


def test_not_a_number_is_one_value_even_if_no_expression_touches_it() -> None:
    plan = query("SELECT DISTINCT * FROM s [RANGE 3]").plan
    rows = [Element(1, number, (1, float("nan"), 1)) for number in range(2)]
    assert Reference({"s": rows}).snapshot(plan, 1).total() == 1


def test_the_two_zeros_are_one_value() -> None:
    plan = query("SELECT c FROM s [RANGE 3] EXCEPT ALL SELECT 0e0 FROM s [RANGE 3]").plan
    rows = [Element(1, 0, (1, -0.0, 1))]
    assert not Reference({"s": rows}).snapshot(plan, 1)


def test_views_of_views_cost_no_more_than_they_have_parts() -> None:
    made = session()
    made.sql("CREATE STREAM v0 AS SELECT a FROM s [RANGE 3]")
    began = perf_counter()
    for level in range(1, 41):
        below = f"SELECT a FROM v{level - 1}"
        made.sql(f"CREATE STREAM v{level} AS {below} UNION ALL {below}")
    made.sql("CREATE QUERY q AS SELECT COUNT(*) FROM v40; SHOW QUERIES")
    made.sql("EXPLAIN PHYSICAL SELECT COUNT(*) FROM v40")
    assert perf_counter() - began < 20, "as a tree the plan would have 2^40 nodes"
