"""The operators in interval form: an element carries ``[start, end)`` and is never taken back."""

from tidemill.physical.operators.aggregate.aggregate import Aggregate
from tidemill.physical.operators.aggregate.combine import Combine, can_combine
from tidemill.physical.operators.join.join import Join
from tidemill.physical.operators.join.join_tree import JoinTree
from tidemill.physical.operators.join.multi_join import EAGER, MultiJoin, ShortLived
from tidemill.physical.operators.rows.changes import Change, Changes
from tidemill.physical.operators.rows.coalesce import Coalesce
from tidemill.physical.operators.rows.filter import Filter
from tidemill.physical.operators.rows.granularity import Granularity
from tidemill.physical.operators.rows.identify import Identify
from tidemill.physical.operators.rows.number import NUMBER, Number
from tidemill.physical.operators.rows.project import Project
from tidemill.physical.operators.rows.shorten import Shorten
from tidemill.physical.operators.rows.since import Since
from tidemill.physical.operators.rows.split import Split
from tidemill.physical.operators.rows.stretch import Stretch
from tidemill.physical.operators.rows.union import Union
from tidemill.physical.operators.sets.counting import Counting, Multiplicity
from tidemill.physical.operators.sets.distinct import Distinct
from tidemill.physical.operators.windows.row_window import RowWindow
from tidemill.physical.operators.windows.session_window import SessionWindow
from tidemill.physical.operators.windows.time_window import TimeWindow

__all__ = [
    "EAGER",
    "NUMBER",
    "Aggregate",
    "Change",
    "Changes",
    "Coalesce",
    "Combine",
    "Counting",
    "Distinct",
    "Filter",
    "Granularity",
    "Identify",
    "Join",
    "JoinTree",
    "MultiJoin",
    "Multiplicity",
    "Number",
    "Project",
    "RowWindow",
    "SessionWindow",
    "ShortLived",
    "Shorten",
    "Since",
    "Split",
    "Stretch",
    "TimeWindow",
    "Union",
    "can_combine",
]
