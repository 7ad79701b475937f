"""Drop the window of one instant (10.7).

    Window NOW        ->     input
      input

Condition: the input is not a registered stream, filtered and projected or not.
Equal because the window adds up the snapshots of one instant, the present one.
On a registered stream it has an effect that no snapshot shows: a ROWS window above it counts rows
of one instant in the order of their values, without it in the order of their ids. The binder
writes no such window, so nothing is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import NOW, Window
from tidemill.optimizer.physical.order import carries_ids

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["drop_now_window"]


def drop_now_window(plan: Plan, _context: Context) -> Plan | None:
    """The input of a window that changes nothing."""
    match plan:
        case Window(source, spec) if spec == NOW and not carries_ids(source):
            return source
        case _:
            return None
