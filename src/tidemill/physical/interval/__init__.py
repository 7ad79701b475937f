"""The operators in interval form: an element carries ``[start, end)`` and is never taken back."""

from tidemill.physical.interval.aggregate import Aggregate
from tidemill.physical.interval.changes import Change, Changes
from tidemill.physical.interval.coalesce import Coalesce
from tidemill.physical.interval.combine import Combine, can_combine
from tidemill.physical.interval.counting import Counting, Multiplicity
from tidemill.physical.interval.distinct import Distinct
from tidemill.physical.interval.filter import Filter
from tidemill.physical.interval.granularity import Granularity
from tidemill.physical.interval.join import Join
from tidemill.physical.interval.multi_join import EAGER, MultiJoin, ShortLived
from tidemill.physical.interval.number import NUMBER, Number
from tidemill.physical.interval.project import Project
from tidemill.physical.interval.row_window import RowWindow
from tidemill.physical.interval.session_window import SessionWindow
from tidemill.physical.interval.split import Split
from tidemill.physical.interval.time_window import TimeWindow
from tidemill.physical.interval.union import Union

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
    "Join",
    "MultiJoin",
    "Multiplicity",
    "Number",
    "Project",
    "RowWindow",
    "SessionWindow",
    "ShortLived",
    "Split",
    "TimeWindow",
    "Union",
    "can_combine",
]
