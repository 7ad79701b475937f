"""Golden files of the rules: a query, its plan before, its plan after; and both mean the same.

rule merge_filters              the rules to apply, to a fixpoint
rule now drop_now_window        the same, with a window NOW above every operator
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
from tidemill.algebra.tree import transform_up
from tidemill.optimizer.logical.rewrite import optimize, rewrite
from tidemill.optimizer.logical.rules import PATTERN_RULES, RULES, Rule
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


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule_makes_this_plan_with_the_same_answers(case: golden.Case) -> None:
    before = bound(case.input)
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


@pytest.mark.parametrize("name", [*PASSES, *REPEATED])
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
