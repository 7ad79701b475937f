"""Drop a Distinct whose input has no row twice.

    Distinct                         Aggregate count(*) AS n by a
      Aggregate count(*) AS n by a  ->  input
        input

Condition: a key of the input is known (``algebra/keys.py``): it is an aggregate, the last row of
each group, distinct already, a join of such inputs, or made of one by operators that keep a key.
Equal because no two rows of a snapshot agree on a key, so none is there twice at any instant. A
registered stream has no key, so the order in which ROWS counts stays that by values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.keys import keys
from tidemill.algebra.plan import Distinct

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["drop_distinct_of_unique"]


def drop_distinct_of_unique(plan: Plan, _context: Context) -> Plan | None:
    """The input of a Distinct that changes nothing."""
    match plan:
        case Distinct(source) if keys(source):
            return source
        case _:
            return None
