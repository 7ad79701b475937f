"""Plans whose answers cannot know their ends, several such operators deep, drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from laws.catalogue import PAIR, SOURCES
from laws.strategies import aggregate, conformed, join, predicates, windows
from tidemill.algebra.plan import (
    AntiJoin,
    Difference,
    Distinct,
    Filter,
    Intersect,
    Join,
    JoinKind,
    SemiJoin,
    StrictDifference,
    Window,
)

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from tidemill.algebra.plan import Plan

__all__ = ["SHAPES", "strict_plans"]

SHAPES = (
    "aggregates over joins over differences",
    "count windows under joins",
    "distinct over joins",
    "outer joins",
    "negation over aggregates",
    "set operations of set operations",
    "joins of joins",
    "negation beside joins",
)


@st.composite
def strict_plans(draw: DrawFn, shape: str) -> Plan:
    """A plan of a shape."""

    def window() -> Plan:
        source = draw(st.sampled_from(SOURCES))
        return conformed(Window(source, draw(windows(source.schema))), PAIR)

    def difference() -> Plan:
        left, right = window(), window()
        made: list[Plan] = [Difference(left, right), StrictDifference(left, right)]
        return draw(st.sampled_from([*made, Intersect(left, right)]))

    def grouped(plan: Plan) -> Plan:
        return conformed(aggregate(draw, plan), PAIR)

    def joined(left: Plan, right: Plan, *kinds: JoinKind) -> Plan:
        made = join(draw, Join, left, right, st.sampled_from(kinds or (JoinKind.INNER,)))
        return conformed(made, PAIR)

    match shape:
        case "aggregates over joins over differences":
            return aggregate(draw, grouped(joined(difference(), window())))
        case "count windows under joins":
            return joined(joined(window(), window()), grouped(window()))
        case "distinct over joins":
            return grouped(
                Distinct(joined(draw(st.sampled_from((difference, window)))(), window()))
            )
        case "outer joins":
            outer = JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL
            plan = joined(grouped(window()), draw(st.sampled_from((difference, window)))(), *outer)
            return Filter(plan, draw(predicates(plan.schema)))
        case "negation over aggregates":
            left, right = window(), grouped(window())
            lonely = join(draw, AntiJoin, left, right), join(draw, SemiJoin, left, right)
            return aggregate(draw, draw(st.sampled_from(lonely)))
        case "joins of joins":
            first = draw(st.sampled_from((window, difference)))()
            return joined(joined(first, window()), joined(window(), window()))
        case "negation beside joins":
            negated = join(draw, AntiJoin, window(), window())
            return joined(conformed(negated, PAIR), window())
        case _:
            return Difference(Distinct(difference()), grouped(difference()))
