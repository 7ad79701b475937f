"""EXPLAIN of a planned query: one of its forms, as text or as JSON.

What is shown is the ``Planned`` itself, so it is what runs, or would run.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.codec.plans import write_plan
from tidemill.algebra.explain import explain
from tidemill.lang.statements import ExplainMode
from tidemill.optimizer.decisions import write_decisions
from tidemill.optimizer.explain.cost import UNKNOWN, cost_json, explain_cost
from tidemill.optimizer.explain.physical import NO_FIGURES, explain_physical, physical_json
from tidemill.optimizer.explain.stages import explain_stages, stages_json
from tidemill.optimizer.explain.trace import trace_json, trace_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.optimizer.decisions import Decision
    from tidemill.optimizer.explain.cost import Known
    from tidemill.optimizer.explain.physical import Figures
    from tidemill.optimizer.planned import Planned

__all__ = ["explain_json", "explain_planned"]


def explain_planned(
    mode: ExplainMode,
    planned: Planned,
    figures: Mapping[str, Figures] = NO_FIGURES,
    known: Known = UNKNOWN,
) -> str:
    """One form of a query as text.

    Args:
        mode: Which form.
        planned: The query.
        figures: For ANALYZE, what was measured of each operator, by fingerprint.
        known: For COST, what is known of the query.
    """
    match mode:
        case ExplainMode.LOGICAL:
            return explain(planned.bound)
        case ExplainMode.TRACE:
            return trace_text(planned.steps)
        case ExplainMode.PHYSICAL:
            plan = explain_physical(planned.physical, planned.labels)
            return "\n".join((plan, *map(_told, planned.decisions)))
        case ExplainMode.ANALYZE:
            return explain_physical(planned.physical, planned.labels, figures)
        case ExplainMode.STAGES:
            return explain_stages(planned.graph())
        case ExplainMode.COST:
            return explain_cost(planned, known)
        case _:
            assert_never(mode)


def _told(decision: Decision) -> str:
    return f"decided: {decision.text()}"


def explain_json(
    mode: ExplainMode,
    planned: Planned,
    figures: Mapping[str, Figures] = NO_FIGURES,
    known: Known = UNKNOWN,
) -> str:
    """One form of a query as JSON; the arguments are those of ``explain_planned``."""
    match mode:
        case ExplainMode.LOGICAL:
            written = {"logical": write_plan(planned.bound)}
        case ExplainMode.TRACE:
            written = {"trace": trace_json(planned.steps)}
        case ExplainMode.ANALYZE:
            written = {"analyzed": physical_json(planned.physical, planned.labels, figures)}
        case ExplainMode.PHYSICAL:
            written = {
                "physical": physical_json(planned.physical, planned.labels),
                "decisions": write_decisions(planned.decisions),
            }
        case ExplainMode.STAGES:
            written = {"stages": stages_json(planned.graph())}
        case ExplainMode.COST:
            written = {"cost": cost_json(planned, known)}
        case _:
            assert_never(mode)
    return json.dumps({**written, "plan": planned.version}, indent=2)
