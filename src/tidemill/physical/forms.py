"""Which form the rows of a part of a physical plan have."""

from __future__ import annotations

from typing import assert_never

from tidemill.model.batch import Form
from tidemill.physical.plan import Apply, Exchange, Input, PhysicalPlan

__all__ = ["form_of"]


def form_of(part: PhysicalPlan) -> Form:
    """The form of the rows that leave a part."""
    while True:
        match part:
            case Input():
                return Form.INTERVAL
            case Exchange(below):
                part = below
            case Apply(_, below):
                if part.traits.gives is not None:
                    return part.traits.gives
                part = below[0]
            case _:
                assert_never(part)
