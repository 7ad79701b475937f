"""What is planned with templates is what is planned without them, whatever the constants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import plans
from tidemill.algebra.expr import FALSE, TRUE, Call, Case, Column, Literal, Named
from tidemill.algebra.parameters import (
    Length,
    Parameter,
    ValueWantedError,
    parameterized,
    places_of,
    with_constants,
)
from tidemill.algebra.plan import Filter, Join, JoinKind, Project, Source, TimeWindow, Union, Window
from tidemill.algebra.tree import share
from tidemill.errors import PlanError
from tidemill.model.batch import Form
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR
from tidemill.optimizer import templates as module
from tidemill.optimizer.planned import CONTEXT, TARGET, Context, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import PLANNING, Joins, Planning
from tidemill.optimizer.statistics import Edge, Statistics
from tidemill.optimizer.templates import Templates
from tidemill.physical.codec.plans import write_physical
from tidemill.physical.plan import walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hypothesis.strategies import DataObject

    from tidemill.algebra.parameters import Constant
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.planned import Planned

A = Source("a", Schema((Field("k", BIGINT), Field("v", BIGINT), Field("c", VARCHAR))))
B = Source("b", Schema((Field("k2", BIGINT), Field("w", BIGINT))))
K, V, C, W = (Column("k", BIGINT), Column("v", BIGINT), Column("c", VARCHAR), Column("w", BIGINT))

VALUES: dict[object, tuple[Any, ...]] = {
    BIGINT: (0, 1, 2, 5, 7),
    DOUBLE: (-0.0, 0.0, 1.0, 2.5),
    VARCHAR: ("", "a", "a%", "_b"),
}
CONTEXTS = (
    CONTEXT,
    Context(PLANNING, Statistics({"a": Edge(10.0), "b": Edge(2.0), "S": Edge(3.0)})),
    Context(Planning(joins=Joins.MULTIWAY, negation="pushed")),
    Context(Planning(optimized=False)),
)
TARGETS = (
    TARGET,
    Target(partitions=1, whole=False),
    Target(partitions=4, stages=2, answer=Form.SIGNED, epoch=3),
    Target(stages=1, epoch=1, replays=5),
)


def of(value: Any, type_: Any = BIGINT) -> Literal:  # noqa: ANN401 — a value of any type
    """A constant."""
    return Literal(value, type_)


def call(function: str, *arguments: Any) -> Call:  # noqa: ANN401 — expressions
    """A condition."""
    return Call(function, arguments, BOOLEAN)


def window(source: Plan, size: int) -> Plan:
    """A window that moves at every instant."""
    return Window(source, TimeWindow(size))


def kinds(x: int, y: int, z: int) -> list[Plan]:
    """Queries with constants where rules look at them, and where they do not."""
    sum_ = Call("+", (of(x), of(y)), BIGINT)
    case = Case(((call("<", of(x), of(y)), V), (call("<", V, of(z)), of(y))), of(x), BIGINT)
    both = call("and", call(">", V, of(x)), call("<", V, of(y)))
    names = ("k", "v", "c", "k2", "w")
    link = call("=", K, Column("k2", BIGINT))
    return [
        Filter(window(A, x + 2), call(">", V, of(y))),
        Filter(window(A, x + 2), call(">", V, sum_)),
        Filter(window(A, 9), call("<", of(x), of(y))),
        Filter(A, both),
        Filter(Filter(A, call(">", V, of(x))), call(">", V, of(y))),
        Filter(A, call("and", call("=", V, of(x)), call("=", V, of(x)))),
        Filter(A, call("in", V, of(x), of(y), of(z))),
        Filter(A, Call("like", (C, of("ab"[: x % 3] + "%", VARCHAR)), BOOLEAN)),
        Filter(A, call("or", call("=", V, of(x)), TRUE if y == 0 else FALSE)),
        Project(window(A, 3), (Named("k", K), Named("s", case))),
        Project(Filter(A, call(">", V, of(x))), (Named("s", sum_), Named("t", of(z)))),
        Union(window(A, x + 2), window(A, y + 2)),
        Union(window(Filter(A, call(">", V, of(x))), 4), window(Filter(A, call(">", V, of(y))), 4)),
        Filter(
            Join(window(A, x + 2), window(B, y + 2), JoinKind.INNER, link, names),
            call("and", call(">", V, of(z)), call("<", W, of(x))),
        ),
        Join(window(A, 3), window(B, 3), JoinKind.LEFT, call("and", link, both), names),
        Window(Filter(A, call(">", V, of(x))), TimeWindow(x + 1, y + 1)),
    ]


def planned(
    query: Plan, target: Target, context: Context, templates: Templates | None
) -> Planned | str:
    """A plan, or what is wrong with the query."""
    try:
        return plan(query, target, context, templates)
    except PlanError as error:
        return error.message


def require_same(found: Planned | str, wanted: Planned | str) -> None:
    """Refuse a plan that is not the one that is made without templates."""
    if isinstance(found, str) or isinstance(wanted, str):
        assert found == wanted
        return
    assert write_physical(found.physical) == write_physical(wanted.physical)
    assert found.version == wanted.version
    assert found.logical == wanted.logical
    assert found.decisions == wanted.decisions
    assert found.steps == wanted.steps
    for part in walk_physical([wanted.physical]):
        name = part.fingerprint
        assert found.labels.patterns[name] == wanted.labels.patterns[name]
        assert found.labels.reasons[name] == wanted.labels.reasons[name]


def check(queries: Iterable[Plan], target: Target, context: Context) -> Templates:
    """Plan queries one after the other, with templates and without."""
    templates = Templates()
    for query in queries:
        found = planned(query, target, context, templates)
        require_same(found, planned(query, target, context, None))
    return templates


@given(st.data())
def test_a_plan_of_a_template_is_the_plan(data: DataObject) -> None:
    """Queries that differ in constants only."""
    form = parameterized(share(data.draw(plans())))
    alike = [
        share(with_constants(form.plan, [_another(data, one) for one in form.constants]))
        for _ in range(4)
    ]
    check(alike, data.draw(st.sampled_from(TARGETS)), data.draw(st.sampled_from(CONTEXTS)))


def _another(data: DataObject, constant: Constant) -> Constant:
    if isinstance(constant, int):
        return data.draw(st.integers(2, 9))
    return replace(constant, value=data.draw(st.sampled_from(VALUES[constant.type])))


small = st.integers(0, 3)


@given(st.lists(st.tuples(small, small, small), min_size=3, max_size=6), st.data())
def test_whatever_rules_look_at(constants: list[tuple[int, int, int]], data: DataObject) -> None:
    """Constants that are folded, compared, or equal to each other."""
    number = data.draw(st.integers(0, len(kinds(0, 0, 0)) - 1))
    queries = [share(kinds(*three)[number]) for three in constants]
    check(queries, data.draw(st.sampled_from(TARGETS)), data.draw(st.sampled_from(CONTEXTS)))


@given(plans())
def test_constants_come_back(query: Plan) -> None:
    """A plan without its constants is the plan again when it gets them."""
    query = share(query)
    form = parameterized(query)
    assert with_constants(form.plan, form.constants) == query


def test_alike_queries_have_one_template() -> None:
    """From the third one on nothing is planned."""
    queries = [share(kinds(n, n + 4, 1)[0]) for n in range(1, 9)]
    assert check(queries, TARGET, CONTEXT).made == len(queries) - 1
    folded = [share(kinds(n, n + 4, 1)[1]) for n in range(1, 9)]
    assert check(folded, TARGET, CONTEXT).made == 0, "their constants are added up"


def test_templates_are_forgotten_when_other_things_are_known() -> None:
    """A template is as good as what was known when it was made."""
    templates = Templates()
    one, other = CONTEXTS[0], CONTEXTS[1]
    for context, made in ((one, 0), (one, 1), (other, 1), (other, 2), (one, 2)):
        plan(share(kinds(1, 5, 1)[0]), TARGET, context, templates)
        assert templates.made == made


def test_a_parameter_is_not_looked_at() -> None:
    """Whoever wants its value is told, and two are equal if their numbers are."""
    one, other = Parameter(0, BIGINT), Parameter(1, BIGINT)
    assert (one == one, one == other, one == TRUE) == (True, False, False)  # noqa: PLR0124
    looks: tuple[Callable[[], object], ...] = (
        lambda: one.value,
        lambda: one == of(5),
        lambda: repr(one),
        lambda: Length(0) == 5,
        lambda: Length(0) % 2,
        lambda: Length(0) > 2,
    )
    for look in looks:
        with pytest.raises(ValueWantedError):
            look()


def law() -> None:
    """All kinds of queries with templates and without, for several targets and settings."""
    constants = [(1, 1, 2), (2, 3, 0), (3, 2, 1), (0, 0, 0), (2, 2, 2)]
    templates = Templates()
    for target, context in ((0, 0), (2, 0), (0, 3)):
        for number in range(len(kinds(0, 0, 0))):
            for three in constants:
                query, of_these = share(kinds(*three)[number]), (TARGETS[target], CONTEXTS[context])
                found = planned(query, *of_these, templates)
                require_same(found, planned(query, *of_these, None))


def test_all_kinds_of_queries() -> None:
    """Without a mistake in it, each query gets its plan."""
    law()


def _reveal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Parameter, "value", 1)


def _equate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Length, "__eq__", lambda _length, other: isinstance(other, Length))


def _forget_lengths(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "places_of", lambda one: () if hasattr(one, "size") else places_of(one))


def _forget_the_target(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Target, "shape", TARGET)


def _forget_settings(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "_settings", lambda _planning: ())


def _first_constants(patch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []

    def parameterized_once(query: Plan) -> object:
        found = parameterized(query)
        kept[:] = kept or [found.constants]
        return replace(found, constants=kept[0])

    patch.setattr(module, "parameterized", parameterized_once)


@pytest.mark.parametrize(
    "harm",
    [
        _reveal,
        _equate,
        _forget_lengths,
        _forget_the_target,
        _forget_settings,
        _first_constants,
    ],
)
def test_the_law_finds_what_is_wrong(
    harm: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a mistake in it, some query among these gets another plan."""
    harm(monkeypatch)
    with pytest.raises((AssertionError, KeyError, TypeError, ValueWantedError)):
        law()
