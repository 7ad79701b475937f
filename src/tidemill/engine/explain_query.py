"""EXPLAIN: one of the forms of a query as text, from what it means to where it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.explain import explain
from tidemill.engine.explain_stages import explain_stages
from tidemill.engine.fragments import build_graph
from tidemill.lang.statements import ExplainMode
from tidemill.optimizer.explain_physical import explain_physical
from tidemill.optimizer.implement import implement, implement_annotated
from tidemill.optimizer.rewrite import optimize, rewrite
from tidemill.optimizer.rules import RULES
from tidemill.optimizer.techniques import Technique
from tidemill.optimizer.trace import trace_text

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

__all__ = ["explain_query"]


def explain_query(
    mode: ExplainMode, plan: Plan, *, optimized: bool, technique: Technique = Technique.PATTERN
) -> str:
    """The text of a query in one of its forms.

    Args:
        mode: Which form.
        plan: The plan of the query.
        optimized: Whether plans are rewritten before they run.
        technique: What decides on the form of each edge.
    """
    match mode:
        case ExplainMode.LOGICAL:
            return explain(plan)
        case ExplainMode.TRACE:
            return trace_text(rewrite(plan, RULES if optimized else ()).steps)
        case ExplainMode.PHYSICAL:
            logical = optimize(plan) if optimized else plan
            return explain_physical(implement_annotated(logical, technique=technique))
        case ExplainMode.STAGES:
            physical = implement(optimize(plan) if optimized else plan, technique=technique)
            return explain_stages(build_graph({"query": physical}))
        case _:
            assert_never(mode)
