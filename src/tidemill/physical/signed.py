"""The signed form: rows appear and are withdrawn, each with a message of its own (KB19).

A stream in signed form holds, at an instant, each row as often as its signs up to then add up to.
Changes are final, and never withdraw what is not there. Filter, Project and Union are the same in
both forms; a time window is ``ToSigned`` above ``interval.TimeWindow``.

Which of several equal rows is withdrawn cannot be seen, since rows are values. Where it must be
decided, as ``ToIntervals`` does, the one that appeared first goes first.

Operators that work on watermarks emit a change when the watermark has passed it. Others hand on
what is still in the future; where readers must not see that, ``Hold`` stands above.
"""

from tidemill.physical.operators.aggregate.signed_aggregate import Aggregate
from tidemill.physical.operators.join.signed_join import Join
from tidemill.physical.operators.join.signed_multi_join import MultiJoin
from tidemill.physical.operators.rows.converters import ToIntervals, ToSigned
from tidemill.physical.operators.rows.hold import Hold
from tidemill.physical.operators.rows.signed_stretch import Stretch
from tidemill.physical.operators.sets.signed_counting import Counting
from tidemill.physical.operators.windows.signed_row_window import RowWindow
from tidemill.physical.operators.windows.signed_session_window import SessionWindow

__all__ = [
    "Aggregate",
    "Counting",
    "Hold",
    "Join",
    "MultiJoin",
    "RowWindow",
    "SessionWindow",
    "Stretch",
    "ToIntervals",
    "ToSigned",
]
