"""EXPLAIN: one of the forms of a query as text, from what it means to where it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.explain import explain
from tidemill.engine.explain_stages import explain_stages
from tidemill.engine.fragments import build_graph
from tidemill.lang.statements import ExplainMode
from tidemill.optimizer.explain_physical import explain_physical
from tidemill.optimizer.logical.rewrite import rewrite
from tidemill.optimizer.logical.rules import rules_with
from tidemill.optimizer.logical.trace import trace_text

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.planning import Planning

__all__ = ["explain_query"]


def explain_query(mode: ExplainMode, plan: Plan, planning: Planning) -> str:
    """The text of a query in one of its forms.

    Args:
        mode: Which form.
        plan: The plan of the query.
        planning: How queries are planned.
    """
    match mode:
        case ExplainMode.LOGICAL:
            return explain(plan)
        case ExplainMode.TRACE:
            rules = rules_with(planning.negation) if planning.optimized else ()
            return trace_text(rewrite(plan, rules).steps)
        case ExplainMode.PHYSICAL:
            return explain_physical(planning.annotated(plan))
        case ExplainMode.STAGES:
            return explain_stages(build_graph({"query": planning.physical(plan)}))
        case _:
            assert_never(mode)
