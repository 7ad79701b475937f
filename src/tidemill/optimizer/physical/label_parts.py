"""Labels of parts that stand for no logical operator by themselves (G-21).

A logical operator may become several physical ones, of which the last has its label. How the rows
of the others expire follows from their inputs, by the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.patterns import UpdatePattern
from tidemill.model.batch import Form
from tidemill.physical import interval, signed
from tidemill.physical.forms import form_of
from tidemill.physical.interval import Multiplicity
from tidemill.physical.plan import Apply, inputs, walk_physical

if TYPE_CHECKING:
    from tidemill.physical.operator import Operator
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["label_parts"]

_JOINS = interval.Join | interval.MultiJoin | signed.Join | signed.MultiJoin
_WEAK_COUNTS = (
    Multiplicity.DISTINCT,
    Multiplicity.INTERSECT,
    Multiplicity.MAX_UNION,
    Multiplicity.SEMI,
)


def label_parts(
    plan: PhysicalPlan, patterns: dict[str, UpdatePattern], reasons: dict[str, str]
) -> None:
    """Label the parts that have no label yet.

    Args:
        plan: The plan.
        patterns: How the rows of parts expire, by fingerprint.
        reasons: Why they have their form, likewise.
    """
    for part in walk_physical([plan]):
        name, below = part.fingerprint, inputs(part)
        if name in patterns or not below:
            continue
        known = [patterns[b.fingerprint] for b in below]
        same_form = [b for b in below if form_of(b) is form_of(part)]
        patterns[name] = _expiry(part.operator, known) if isinstance(part, Apply) else known[0]
        reasons[name] = reasons[same_form[0].fingerprint] if same_form else _reason(part)


def _expiry(operator: Operator, below: list[UpdatePattern]) -> UpdatePattern:
    strongest = max(below)
    match operator:
        case interval.Aggregate():
            return UpdatePattern.STRICT
        case interval.Counting(multiplicity) if multiplicity not in _WEAK_COUNTS:
            return UpdatePattern.STRICT
        case interval.Counting() | interval.Distinct():
            is_monotonic = strongest is UpdatePattern.MONOTONIC
            return strongest if is_monotonic else max(strongest, UpdatePattern.WEAK)
        case _ if isinstance(operator, _JOINS):
            moving = [b for b in below if b is not UpdatePattern.MONOTONIC]
            is_alone = len(moving) <= 1  # what never goes changes no end
            return strongest if is_alone else max(strongest, UpdatePattern.WEAK)
        case _:
            return strongest


def _reason(part: PhysicalPlan) -> str:
    """Why a part has another form than its inputs."""
    is_signed = form_of(part) is Form.SIGNED
    return "its reader takes signs" if is_signed else "its reader takes intervals"
