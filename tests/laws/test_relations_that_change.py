"""Relations that a stream changes: replayed into a dictionary, and joined by hand.

Drawn are the changes, the bids, the declaration of the relation, a query, how elements arrive, the
technique and the number of partitions. The expected answer at an instant is computed from a plain
dictionary with the rows of that instant; no plan, window or join of ours has a part in it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from laws.arrivals import arrivals, emitted
from laws.test_engine import snapshot
from plans import implement
from tidemill.algebra.plan import Source
from tidemill.algebra.snapshot import Element, Reference
from tidemill.algebra.tree import share, walk
from tidemill.model.batch import Form
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.optimizer.physical.techniques import Technique

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Bag, Row

LAST = 8
HORIZON = range(LAST + 8)
KEYS, GROUPS, VALUES, OPS = (None, 1, 2), ("x", None), (0, 1, 2), ("U", "D", None)

Held: TypeAlias = "dict[Row, Row]"
"""The rows of a relation by their keys: k, g, v."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration of the relation, and what it says of a change (k, g, v, op, at)."""

    text: str
    key: Callable[[Row], Row]
    deletes: Callable[[Row], bool] = lambda _: False


DECLARED = {
    "by k": Declared("KEY (k) NON?", lambda c: c[:1]),
    "by k, with deletions": Declared(
        "KEY (k) NON? DELETE WHEN op = 'D'", lambda c: c[:1], lambda c: c[3] == "D"
    ),
    "by k and g, with deletions": Declared(
        "KEY (g, k) NON? DELETE WHEN c.op = 'D' OR v = 0",
        lambda c: c[:2],
        lambda c: c[3] == "D" or c[2] == 0,
    ),
    "deleted where op is not known": Declared(
        "KEY (k) DELETE WHEN op IS NULL NON?", lambda c: c[:1], lambda c: c[3] is None
    ),
    "deleted by its key": Declared(
        "KEY (k) NON? DELETE WHEN k = 1", lambda c: c[:1], lambda c: c[0] == 1
    ),
}


@cache
def session(declared: str) -> tidemill.Session:
    """A session with the relation r, and n which is the same but not retroactive."""
    made = tidemill.connect()
    made.sql("""
        CREATE STREAM c (k BIGINT, g VARCHAR, v BIGINT, op VARCHAR, at BIGINT)
          SOURCE memory('c') ORDERED BY at;
        CREATE STREAM b (k BIGINT, n BIGINT, at BIGINT) SOURCE memory('b') ORDERED BY at
    """)
    columns = "(k BIGINT, g VARCHAR, v BIGINT)"
    for name, non in (("r", ""), ("n", "NON RETROACTIVE")):
        clauses = DECLARED[declared].text.replace("NON?", non)
        made.sql(f"CREATE RELATION {name} {columns} FROM STREAM c {clauses}")
    return made


@cache
def plan(declared: str, query: str) -> Plan:
    return session(declared).query(query).plan


@dataclass(frozen=True, slots=True)
class Content:
    """The changes and the bids."""

    streams: dict[str, tuple[Element, ...]]

    def held(self, declared: str, time: int) -> Held:
        """The rows of the relation at an instant."""
        rules = DECLARED[declared]
        held: Held = {}
        for change in sorted(self.streams["c"], key=lambda e: (e.time, e.id)):
            if change.time > time:
                break
            if rules.deletes(change.row):
                held.pop(rules.key(change.row), None)
            else:
                held[rules.key(change.row)] = change.row[:3]
        return held

    def bids(self, time: int, size: int, slide: int = 1) -> list[Element]:
        """The bids that are in a window of time at an instant."""
        last = (time + 1) // slide * slide - 1
        return [e for e in self.streams["b"] if last - size < e.time <= last]


def elements(*columns: tuple[object, ...]) -> st.SearchStrategy[tuple[Element, ...]]:
    rows = st.tuples(st.integers(0, LAST), *map(st.sampled_from, columns))
    return st.lists(rows, max_size=9).map(
        lambda drawn: tuple(
            Element(time, i, (*values, time)) for i, (time, *values) in enumerate(drawn)
        )
    )


CONTENT = st.builds(
    lambda c, b: Content({"c": c, "b": b}),
    elements(KEYS, GROUPS, VALUES, OPS),
    elements(KEYS, VALUES),
)


# A relation of the results of a query


@cache
def best() -> Plan:
    made = tidemill.connect()
    made.sql("""
        CREATE STREAM c (k BIGINT, g VARCHAR, v BIGINT, op VARCHAR, at BIGINT)
          SOURCE memory('c') ORDERED BY at;
        CREATE STREAM total AS ISTREAM(SELECT k, SUM(v) AS s FROM c [RANGE 2] GROUP BY k);
        CREATE RELATION best FROM STREAM total KEY (k) DELETE WHEN s = 0
    """)
    return made.query("SELECT * FROM best").plan


@given(data=st.data(), changes=elements(KEYS, GROUPS, VALUES, OPS), partitions=st.integers(1, 3))
def test_results_that_come_can_change_a_relation(
    data: st.DataObject, changes: tuple[Element, ...], partitions: int
) -> None:
    arrival = data.draw(arrivals({"c": changes}, max(HORIZON)))
    schema = next(node.schema for node in walk(best()) if isinstance(node, Source))
    out = emitted(implement(best()), {"c": schema}, {}, arrival, partitions, reload=False)
    held: Held = {}
    before: dict[Row, int] = {}
    for time in HORIZON:
        sums: dict[Row, int] = {}
        for change in changes:
            if time - 2 < change.time <= time:
                k, _, v, *_ = change.row
                assert isinstance(v, int)
                sums[k,] = sums.get((k,), 0) + v
        for key, total in sums.items():
            if before.get(key) == total:
                continue  # it stays, so it does not come
            held.pop(key, None)
            if total:
                held[key] = (*key, total)
        before = sums
        assert snapshot(out, best().schema, time) == Counter(held.values()), f"at {time}"


# Queries, and what they mean


def joined(bids: list[tuple[Element, Held]], *, outer: bool = False) -> Bag:
    """(n, v) of each bid with each row of its k; NULL equals nothing."""
    answer: Bag = Counter()
    for bid, held in bids:
        k, n, _ = bid.row
        found = [v for key, _, v in held.values() if key is not None and key == k]
        answer.update((n, v) for v in (found or ([None] if outer else [])))
    return answer


def matching(content: Content, declared: str, time: int) -> Bag:
    now = content.held(declared, time)
    return joined([(bid, now) for bid in content.bids(time, 3)])


def keeping(content: Content, declared: str, time: int) -> Bag:
    return joined([(bid, content.held(declared, bid.time)) for bid in content.bids(time, 3)])


def rows(content: Content, declared: str, time: int) -> Bag:
    return Counter(content.held(declared, time).values())


def counted(content: Content, declared: str, time: int) -> Bag:
    groups = Counter(g for _, g, _ in content.held(declared, time).values())
    return Counter((group, many) for group, many in groups.items())


def absent(content: Content, declared: str, time: int) -> Bag:
    held = {k for k, _, _ in content.held(declared, time).values()}
    bids = content.bids(time, 4, 2)
    return Counter((bid.row[1],) for bid in bids if bid.row[0] is None or bid.row[0] not in held)


def last_bids(content: Content, declared: str, time: int) -> Bag:
    bids = sorted((e.time, e.id, e) for e in content.streams["b"] if e.time <= time)
    now = content.held(declared, time)
    return joined([(bid, now) for *_, bid in bids[-2:]])


def both(content: Content, declared: str, time: int) -> Bag:
    """What the bid saw, and what is there now."""
    answer: Bag = Counter()
    now = content.held(declared, time)
    for bid in content.bids(time, 3):
        for n, then in joined([(bid, content.held(declared, bid.time))]).elements():
            answer.update((n, then, v) for _, v in joined([(bid, now)]).elements())
    return answer


def inserted(content: Content, declared: str, time: int) -> Bag:
    return rows(content, declared, time) - rows(content, declared, time - 1)


def lately(content: Content, declared: str, time: int) -> Bag:
    """How many rows came in the last three instants, if any did."""
    came = sum(inserted(content, declared, t).total() for t in range(time - 2, time + 1))
    return Counter({(came,): 1} if came else {})


QUERIES: dict[str, Callable[[Content, str, int], Bag]] = {
    "SELECT * FROM r": rows,
    "SELECT * FROM n": rows,
    "SELECT g, COUNT(*) AS many FROM r GROUP BY g": counted,
    "ISTREAM(SELECT * FROM r)": inserted,
    "SELECT * FROM ISTREAM(r)": inserted,
    "DSTREAM(SELECT * FROM r)": lambda content, declared, time: (
        rows(content, declared, time - 1) - rows(content, declared, time)
    ),
    "SELECT * FROM RSTREAM(r)": rows,
    "SELECT COUNT(*) AS many FROM ISTREAM(r) [RANGE 3]": lately,
    "SELECT n, v FROM b [RANGE 3] JOIN r ON b.k = r.k": matching,
    "SELECT n, v FROM b [RANGE 5 SLIDE 2] b, r WHERE b.k = r.k": (
        lambda content, declared, time: joined(
            [(bid, content.held(declared, time)) for bid in content.bids(time, 5, 2)]
        )
    ),
    "SELECT n, v FROM b [RANGE 3] LEFT JOIN r ON b.k = r.k": (
        lambda content, declared, time: joined(
            [(bid, content.held(declared, time)) for bid in content.bids(time, 3)], outer=True
        )
    ),
    "SELECT n, v FROM b JOIN r USING (k)": lambda content, declared, time: joined(
        [(bid, content.held(declared, time)) for bid in content.bids(time, 1)]
    ),
    "SELECT n FROM b [RANGE 4 SLIDE 2] x WHERE NOT EXISTS (SELECT * FROM r WHERE r.k = x.k)": (
        absent
    ),
    "SELECT n, v FROM b [ROWS 2] JOIN r USING (k)": last_bids,
    "SELECT b.n, n.v FROM b [RANGE 3] JOIN n USING (k)": keeping,
    "SELECT b.n, n.v FROM b, n WHERE n.k = b.k": lambda content, declared, time: joined(
        [(bid, content.held(declared, time)) for bid in content.bids(time, 1)]
    ),
    "SELECT b.n, n.v FROM b [RANGE 3] LEFT JOIN n ON b.k = n.k": (
        lambda content, declared, time: joined(
            [(bid, content.held(declared, bid.time)) for bid in content.bids(time, 3)], outer=True
        )
    ),
    "SELECT b.n, n.v, r.v AS now FROM b [RANGE 3] b, n, r WHERE b.k = n.k AND b.k = r.k": both,
}


@settings(max_examples=6 * settings().max_examples)
@given(
    data=st.data(),
    declared=st.sampled_from(sorted(DECLARED)),
    query=st.sampled_from(sorted(QUERIES)),
    content=CONTENT,
    partitions=st.integers(1, 3),
    max_delay=st.sampled_from([None, 0, 3]),
    technique=st.sampled_from(Technique),
    answer=st.none() | st.sampled_from(Form),
    reload=st.booleans(),
    optimized=st.booleans(),
)
def test_the_engine_joins_what_the_dictionary_holds(  # noqa: PLR0913 — it draws everything
    data: st.DataObject,
    declared: str,
    query: str,
    content: Content,
    *,
    partitions: int,
    max_delay: int | None,
    technique: Technique,
    answer: Form | None,
    reload: bool,
    optimized: bool,
) -> None:
    meant = plan(declared, query)
    used = share(optimize(meant) if optimized else meant)
    schemas = {s.name: s.schema for s in walk(meant) if isinstance(s, Source)}
    streams = {name: content.streams[name] for name in schemas}
    out = emitted(
        implement(used, max_delay=max_delay, technique=technique, answer=answer),
        schemas,
        {},
        data.draw(arrivals(streams, max(HORIZON))),
        partitions,
        reload=reload,
    )
    for time in HORIZON:
        expected = QUERIES[query](content, declared, time)
        assert snapshot(out, used.schema, time) == expected, f"at {time}"


@pytest.mark.parametrize("query", QUERIES)
@given(declared=st.sampled_from(sorted(DECLARED)), content=CONTENT)
def test_the_plan_means_what_the_dictionary_holds(
    query: str, declared: str, content: Content
) -> None:
    reference = Reference(content.streams, {})
    for time in HORIZON:
        expected = QUERIES[query](content, declared, time)
        assert reference.snapshot(plan(declared, query), time) == expected, f"at {time}"
