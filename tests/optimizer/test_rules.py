"""Golden files of the rules: a query, its plan before, its plan after; and both mean the same.

rule merge_filters              the rules to apply, to a fixpoint
rule now drop_now_window        the same, with a window NOW above every operator
rule push_aggregate_below_join  of a rule that goes by cost: all plans that it offers, "or" between
optimized                       all rules, in their phases
optimized pulled                the same, with anti-joins above joins; pushed: below
"""

from __future__ import annotations

from pathlib import Path

import pytest

import golden
from nexmark import auction_session
from optimizer.auctions import assert_same_answers
from tidemill.algebra.explain import explain
from tidemill.algebra.plan import NOW, Plan, Window
from tidemill.algebra.tree import transform_up, walk
from tidemill.optimizer.logical.context import CONTEXT
from tidemill.optimizer.logical.rewrite import optimize, rewrite
from tidemill.optimizer.logical.rules import (
    CLEAN_UP,
    DEPENDING,
    PATTERN_RULES,
    RULES,
    SAVING,
    CostedRule,
    Rule,
)
from tidemill.session import Query

FOLDER = Path(__file__).parent.parent / "golden" / "rules"
CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in golden.cases(path)]
PASSES: dict[str, Rule] = {p.__name__: p for p in RULES if not isinstance(p, tuple)}
REPEATED: dict[str, Rule] = {
    rule.__name__: rule
    for phase in (*RULES, *PATTERN_RULES.values())
    if isinstance(phase, tuple)
    for rule in phase
}


COSTED: dict[str, CostedRule] = {rule.__name__: rule for rule in (*SAVING, *DEPENDING)}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule_makes_this_plan_with_the_same_answers(case: golden.Case) -> None:
    before = bound(case.input)
    if case.arguments and case.arguments[0] in COSTED:
        golden.check(case, offered(COSTED[case.arguments[0]], rewrite(before, (CLEAN_UP,)).plan))
        return
    if case.directive == "optimized":
        wanted = case.arguments[0] if case.arguments else "written"
        (negation,) = (place for place in PATTERN_RULES if place == wanted)
        after = optimize(before, negation=negation)
        text = explain(after)
    else:
        assert case.directive == "rule"
        names = list(case.arguments)
        if names[0] == "now":
            before = transform_up(before, lambda node: Window(node, NOW))
            names = names[1:]
        pass_ = PASSES.get(names[0])
        phase = pass_ or tuple(REPEATED[name] for name in names)
        after = rewrite(before, (phase,)).plan
        changed = "(unchanged)" if after == before else explain(after)
        text = f"{explain(before)}\n=>\n{changed}"
    assert_same_answers(before, after)
    assert (after.schema.names, after.schema.types) == (before.schema.names, before.schema.types)
    golden.check(case, text)


def offered(rule: CostedRule, before: Plan) -> str:
    """What a rule offers for the first node that it offers something for; all mean the same."""
    nodes = list(walk(before))
    plans = next((found for node in reversed(nodes) if (found := all_of(rule, node, before))), [])
    for plan in plans:
        assert_same_answers(before, plan)
        assert plan.schema.names == before.schema.names
        assert plan.schema.types == before.schema.types
    return f"{explain(before)}\n=>\n" + ("\nor\n".join(map(explain, plans)) or "(unchanged)")


def all_of(rule: CostedRule, node: Plan, plan: Plan) -> list[Plan]:
    """The plan with each of the plans that a rule offers for a node in its place."""
    return [with_part(plan, node, new) for new in rule(node, CONTEXT)]


def with_part(plan: Plan, node: Plan, new: Plan) -> Plan:
    changed = transform_up(plan, lambda part: new if part is node else None)
    return rewrite(changed, (CLEAN_UP,)).plan


@pytest.mark.parametrize("name", [*PASSES, *REPEATED, *COSTED])
def test_every_rule_has_cases_in_which_it_applies_and_in_which_it_does_not(name: str) -> None:
    own = [case for case in CASES if case.path.stem == name]
    assert len(own) >= 3
    assert any(case.expected.endswith("(unchanged)") for case in own)
    assert any(not case.expected.endswith("(unchanged)") for case in own)


def bound(query: str) -> Plan:
    """The plan a query means."""
    found = auction_session().sql(query)
    assert isinstance(found, Query), "a case is one query"
    return found.plan
