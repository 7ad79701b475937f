"""Which form the rows of a part of a physical plan have."""

from __future__ import annotations

from typing import assert_never

from tidemill.model.batch import Form
from tidemill.physical import interval, signed
from tidemill.physical.plan import Apply, Exchange, Input, PhysicalPlan

__all__ = ["form_of"]

_AS_THEY_COME = interval.Filter | interval.Project | interval.Union
_SIGNED = (
    signed.Aggregate
    | signed.Counting
    | signed.Hold
    | signed.Join
    | signed.MultiJoin
    | signed.RowWindow
    | signed.SessionWindow
    | signed.ToSigned
)


def form_of(part: PhysicalPlan) -> Form:
    """The form of the rows that leave a part."""
    while True:
        match part:
            case Input():
                return Form.INTERVAL
            case Exchange(below):
                part = below
            case Apply(operator, below):
                if not isinstance(operator, _AS_THEY_COME):
                    return Form.SIGNED if isinstance(operator, _SIGNED) else Form.INTERVAL
                part = below[0]
            case _:
                assert_never(part)
