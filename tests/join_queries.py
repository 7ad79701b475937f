"""Queries that join windows of streams and relations, with what is known of these, as a plan."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tidemill.algebra.expr import TRUE, Call, Column, Expr, Named, conjunction
from tidemill.algebra.plan import (
    Join,
    JoinKind,
    Plan,
    Project,
    Relation,
    Source,
    TimeWindow,
    Window,
)
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR
from tidemill.optimizer.statistics import Edge, Statistics

__all__ = ["JoinQuery", "join_queries"]

SECOND = 1_000_000


@dataclass(frozen=True)
class JoinQuery:
    """A query that joins, and what is known of what it reads."""

    plan: Plan
    known: Statistics


@st.composite
def join_queries(
    draw: st.DrawFn, least: int = 3, most: int = 4, *, null_safe: bool = True
) -> JoinQuery:
    """Windows that are linked by equal values, and some by more; of the columns some are wanted."""
    count = draw(st.integers(least, most))
    edges: dict[str, Edge] = {}
    plan: Plan | None = None
    for number in range(count):
        schema = Schema(
            tuple(
                Field(f"{n}{number}", t) for n, t in (("k", BIGINT), ("v", BIGINT), ("t", VARCHAR))
            )
        )
        values = {n: draw(st.sampled_from([2.0, 50.0, 3000.0])) for n in schema.names}
        name = f"s{number}"
        if draw(st.integers(0, 4)) == 0:
            rows = draw(st.sampled_from([10.0, 500.0]))
            values = {n: min(v, rows) for n, v in values.items()}
            edges[name] = Edge(1e30, 1.0, standing=rows, distinct=values, is_measured=True)
            own: Plan = Relation(name, schema)
        else:
            distance = draw(st.sampled_from([200.0, 5_000.0, 70_000.0, 3_000_000.0]))
            edges[name] = Edge(distance, distinct=values, is_measured=True)
            size = draw(st.sampled_from([1, 10, 600]))
            own = Window(Source(name, schema), TimeWindow(size * SECOND))
        if plan is None:
            plan = own
            continue
        names = (*plan.schema.names, *own.schema.names)
        plan = Join(plan, own, JoinKind.INNER, _condition(draw, number, null_safe=null_safe), names)
    assert plan is not None
    wanted = draw(st.lists(st.sampled_from(plan.schema.fields), min_size=1, unique=True))
    columns = tuple(Named(f.name, Column(f.name, f.type)) for f in wanted)
    return JoinQuery(Project(plan, columns), Statistics(edges))


def _condition(draw: st.DrawFn, number: int, *, null_safe: bool) -> Expr:
    """What links an input to those before it: nothing, a value, a value of several, or more."""
    parts: list[Expr] = []
    other = draw(st.integers(0, number - 1))
    links = ["k = k", "k = k", "k = k", "k = v", "none", *["k is v"] * null_safe]
    link = draw(st.sampled_from(links))
    if link != "none":
        function = "is_not_distinct" if link == "k is v" else "="
        met = Column(f"{link[-1]}{other}", BIGINT)
        parts.append(Call(function, (met, Column(f"k{number}", BIGINT)), BOOLEAN))
    if draw(st.integers(0, 3)) == 0:
        less = Column(f"v{other}", BIGINT), Column(f"v{number}", BIGINT)
        parts.append(Call("<", less, BOOLEAN))
    return conjunction(*parts) if parts else TRUE
