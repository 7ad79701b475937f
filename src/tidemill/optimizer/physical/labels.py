"""Labels: how the rows of each part of a plan expire, and why they have their form (G-21).

A logical operator may become several physical ones, of which the last has its label. How the rows
of the others expire follows from their inputs, by the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.model.batch import Form
from tidemill.physical.forms import form_of
from tidemill.physical.plan import Apply, Exchange, inputs, walk_physical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.patterns import UpdatePattern
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Labels"]


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of the parts of a plan, by fingerprint.

    Attributes:
        patterns: How their rows expire.
        reasons: Why they have their form.
    """

    patterns: Mapping[str, UpdatePattern] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def moved(self, names: Mapping[str, str]) -> Labels:
        """The labels of a plan in which other parts stand in the place of these.

        Args:
            names: For each part the one that has the same rows now, by fingerprint.
        """
        return Labels(
            {names[old]: pattern for old, pattern in self.patterns.items() if old in names},
            {names[old]: reason for old, reason in self.reasons.items() if old in names},
        )

    def before(self, names: Mapping[str, str]) -> Labels:
        """The labels of a plan, given those of one that was made of it.

        Args:
            names: For each part of the plan the one that stands in its place, by fingerprint.
        """
        known = self.patterns.keys()
        return Labels(
            {old: self.patterns[new] for old, new in names.items() if new in known},
            {old: self.reasons[new] for old, new in names.items() if new in known},
        )

    def completed(self, plan: PhysicalPlan) -> Labels:
        """The same with labels for the parts of the plan that have none."""
        patterns, reasons = dict(self.patterns), dict(self.reasons)
        for part in walk_physical([plan]):
            name, below = part.fingerprint, inputs(part)
            if isinstance(part, Exchange):
                # What it hands on is what came in; a window may take its place later.
                patterns[name] = patterns[part.input.fingerprint]
                reasons[name] = reasons[part.input.fingerprint]
            elif name not in patterns and isinstance(part, Apply):
                patterns[name] = part.traits.expiry.of([patterns[b.fingerprint] for b in below])
                same_form = [b for b in below if form_of(b) is form_of(part)]
                reasons[name] = reasons[same_form[0].fingerprint] if same_form else _reason(part)
        return Labels(patterns, reasons)


def _reason(part: PhysicalPlan) -> str:
    """Why a part has another form than its inputs."""
    is_signed = form_of(part) is Form.SIGNED
    return "its reader takes signs" if is_signed else "its reader takes intervals"
