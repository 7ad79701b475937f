"""Cut an answer that goes to a sink to the instants that its instance answers.

    plan     ->     Stretch(spans)
                      plan

It is the last thing that is done to a plan, since what stands below is that of an instance that
answers everything: an instance that runs finds its state, whatever becomes of its spans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.model.batch import Form
from tidemill.physical import interval, signed
from tidemill.physical.forms import form_of
from tidemill.physical.plan import Apply

if TYPE_CHECKING:
    from tidemill.model.spans import Cut
    from tidemill.physical.operator import Operator
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["cut_answer"]


def cut_answer(plan: PhysicalPlan, cut: Cut | None, epoch: int = 0) -> PhysicalPlan:
    """The plan with its answer cut as it is wanted, however it was cut before.

    Args:
        plan: The plan of an instance.
        cut: How its answer is cut; ``None`` if it answers everything.
        epoch: When it began.
    """
    if isinstance(plan, Apply) and plan.traits.waits:  # nothing else stands there that does
        (plan,) = plan.inputs
    if cut is None:
        return plan
    operator: Operator = interval.Stretch(plan.schema, cut.owner, cut.spans)
    if form_of(plan) is Form.SIGNED:
        operator = signed.Stretch(plan.schema, cut.owner, cut.counts, cut.spans)
    return Apply(operator, (plan,), epoch)
