"""Texts that say the same are planned as one plan, and a plan keeps the names of its answer."""

from __future__ import annotations

import pytest

from tidemill import Session, connect
from tidemill.algebra.explain import explain
from tidemill.optimizer.logical.canonical import canonical
from tidemill.optimizer.planner import plan

BID = "bid [RANGE 9]"
SALE = "sale [RANGE 9]"
SAME = [
    (
        f"SELECT item FROM {BID} WHERE price > 5 AND item = 'a'",
        f"SELECT item FROM {BID} WHERE item = 'a' AND 5 < price",
    ),
    (f"SELECT item FROM {BID} WHERE price = at", f"SELECT item FROM {BID} b WHERE b.at = b.price"),
    (
        f"SELECT item FROM {BID} WHERE price + at > 5",
        f"SELECT item FROM {BID} WHERE at + price > 5",
    ),
    (f"SELECT item FROM {BID} WHERE NOT price > 5", f"SELECT item FROM {BID} WHERE price <= 5"),
    (
        f"SELECT item FROM {BID} WHERE price IN (3, 7)",
        f"SELECT item FROM {BID} WHERE price = 7 OR price = 3",
    ),
    (
        f"SELECT item FROM {BID} WHERE NOT (price > 5 AND at > 3)",
        f"SELECT item FROM {BID} WHERE at <= 3 OR price <= 5",
    ),
    (
        f"SELECT item FROM {BID} UNION ALL SELECT item FROM {SALE}",
        f"SELECT item FROM {SALE} UNION ALL SELECT item FROM {BID}",
    ),
    (
        f"SELECT a.price, b.at FROM {BID} a, {SALE} b WHERE a.item = b.item",
        f"SELECT x.price, y.at FROM {SALE} y, {BID} x WHERE y.item = x.item",
    ),
    (
        f"SELECT a.price, b.at FROM {BID} a LEFT JOIN {SALE} b ON a.item = b.item",
        f"SELECT a.price, b.at FROM {SALE} b RIGHT JOIN {BID} a ON b.item = a.item",
    ),
    (
        f"SELECT a.price, b.at FROM {BID} a JOIN {SALE} b ON a.item = b.item",
        f"SELECT price, b.at FROM (SELECT * FROM {BID}) a, {SALE} b WHERE a.item = b.item",
    ),
    (
        f"SELECT item, at, SUM(price) AS s FROM {BID} GROUP BY item, at",
        f"SELECT item, at, SUM(price) AS s FROM {BID} GROUP BY at, item",
    ),
    (
        f"SELECT item FROM {BID} WHERE item IN (SELECT item FROM {SALE} WHERE at > 3)",
        f"SELECT b.item FROM {BID} b WHERE b.item IN (SELECT s.item FROM {SALE} s WHERE 3 < s.at)",
    ),
    (
        f"SELECT a.price, b.price AS p FROM {BID} a, bid [RANGE 5] b WHERE a.item = b.item",
        f"SELECT b.price, a.price AS p FROM bid [RANGE 5] a, {BID} b WHERE a.item = b.item",
    ),
]


@pytest.fixture
def session() -> Session:
    made = connect()
    made.sql("""
        CREATE STREAM bid (at BIGINT, item VARCHAR, price INTEGER) SOURCE memory() ORDERED BY at;
        CREATE STREAM sale (at BIGINT, item VARCHAR) SOURCE memory() ORDERED BY at""")
    return made


@pytest.mark.parametrize(("one", "other"), SAME)
def test_texts_that_say_the_same_are_one_plan(session: Session, one: str, other: str) -> None:
    plans = [plan(session.query(text).plan) for text in (one, other)]
    assert explain(plans[0].logical) == explain(plans[1].logical)
    assert plans[0].physical.fingerprint == plans[1].physical.fingerprint


def test_queries_with_other_columns_share_what_remembers(session: Session) -> None:
    one, other = (
        plan(session.query(text).plan).physical.inputs[0].fingerprint  # type: ignore[union-attr]
        for text in (
            f"SELECT item, SUM(price) AS s, COUNT(*) AS n FROM {BID} GROUP BY item",
            f"SELECT b.item, COUNT(*) AS m, SUM(b.price) AS t FROM {BID} b GROUP BY b.item",
        )
    )
    assert one == other


def test_an_answer_keeps_its_names_and_their_order(session: Session) -> None:
    made = plan(session.query(f"SELECT b.at AS x, a.price AS y FROM {SALE} b, {BID} a").plan)
    assert made.physical.schema.names == ("x", "y")


def test_what_is_canonical_stays_the_same_object(session: Session) -> None:
    form = canonical(
        session.query(f"SELECT a.at FROM {SALE} a, {BID} b WHERE a.item = b.item").plan
    )
    assert canonical(form) is form
