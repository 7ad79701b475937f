from __future__ import annotations

from hypothesis import given

from laws.catalogue import HORIZON, Inputs, inputs
from laws.strategies import plans
from streams import LETTER, assert_same, cross, equal, one_column, text
from tidemill.algebra.expr import TRUE
from tidemill.algebra.plan import (
    Distinct,
    Filter,
    Plan,
    Relation,
    Source,
    TimeWindow,
    Union,
    Window,
)
from tidemill.algebra.tree import children, share, transform_up, walk, with_children

S, T = one_column("S"), one_column("T")


def last_two(name: str) -> Window:
    return Window(one_column(name), TimeWindow(2))


def test_children_are_the_inputs_left_first() -> None:
    assert children(cross(S, T)) == (S, T)
    assert children(Distinct(S)) == (S,)
    assert children(S) == ()


def test_walk_visits_inputs_before_operators() -> None:
    left, right = Distinct(S), last_two("T")
    both = Union(left, right)
    assert list(walk(both)) == [S, left, T, right, both]


def test_walk_visits_a_shared_part_once() -> None:
    window = last_two("S")
    both = Union(window, Distinct(window))
    assert [type(node) for node in walk(both)] == [Source, Window, Distinct, Union]


def test_transform_rewrites_inputs_first() -> None:
    seen: list[str] = []
    transform_up(Distinct(last_two("S")), lambda node: seen.append(type(node).__name__))
    assert seen == ["Source", "Window", "Distinct"]


def test_transform_replaces_a_node_and_rebuilds_what_is_above() -> None:
    plan = Union(Distinct(S), T)
    assert transform_up(plan, lambda node: T if node == S else None) == Union(Distinct(T), T)


def test_transform_keeps_what_did_not_change() -> None:
    kept = Distinct(T)
    changed = transform_up(Union(Distinct(S), kept), lambda node: T if node == S else None)
    assert children(changed)[1] is kept


def test_transform_rewrites_a_shared_part_once_and_keeps_it_shared() -> None:
    window = last_two("S")
    both = Union(window, Filter(window, TRUE))
    longer = transform_up(
        both, lambda node: Window(S, TimeWindow(3)) if isinstance(node, Window) else None
    )
    left, right = children(longer)
    assert left == Window(S, TimeWindow(3))
    assert children(right)[0] is left


@given(plans())
def test_a_plan_that_nothing_rewrites_is_the_same_object(plan: Plan) -> None:
    assert transform_up(plan, lambda _: None) is plan


@given(plans())
def test_an_operator_over_its_own_inputs_is_itself(plan: Plan) -> None:
    assert all(with_children(node, children(node)) == node for node in walk(plan))


@given(plans())
def test_the_schema_is_the_same_after_rebuilding(plan: Plan) -> None:
    assert all(with_children(node, children(node)).schema == node.schema for node in walk(plan))


def test_share_makes_equal_parts_one_object() -> None:
    is_a = equal(LETTER, text("a"))
    plan = share(Union(Filter(last_two("S"), is_a), last_two("S")))
    left, right = children(plan)
    assert children(left)[0] is right


def test_share_keeps_different_parts_apart() -> None:
    plan = Union(last_two("S"), last_two("T"))
    assert share(plan) is plan


@given(plans())
def test_no_two_parts_of_a_shared_plan_are_equal(plan: Plan) -> None:
    nodes = list(walk(share(plan)))
    assert len(set(nodes)) == len(nodes)


@given(inputs(), plans())
def test_share_keeps_every_snapshot(data: Inputs, plan: Plan) -> None:
    copied = _copied(plan)
    assert_same(data.reference(), share(copied), plan, HORIZON)


def _copied(plan: Plan) -> Plan:
    """An equal plan in which nothing is shared."""
    match plan:
        case Source(name, schema):
            return Source(name, schema)
        case Relation(name, schema, validity):
            return Relation(name, schema, validity)
        case _:
            return with_children(plan, tuple(map(_copied, children(plan))))
