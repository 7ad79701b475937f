"""Techniques: how it is known on each edge of a plan that rows go, and so which form it has.

    direct     every element knows its end, and its keeper looks at the time (H09, G-10)
    negative   from the windows up, a row that goes is withdrawn by a message (H10, G-09)
    hybrid     intervals up to the joins, which have nothing to do when a row goes; then signs (H12)
    pattern    the form follows the update pattern (G-15): intervals where the end of a row is known
               when it appears, signs where it depends on input still to come, or where rows are
               counted, which as elements would leave only when they have ended

Law: the answers of a query are the same with all of them.

An operator whose reader takes intervals only is asked for them, if it can give either form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from tidemill.algebra.annotations import is_chronon, is_constant
from tidemill.algebra.patterns import UpdatePattern, update_pattern
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    Project,
    Relation,
    RowWindow,
    Rstream,
    SemiJoin,
    SessionWindow,
    Source,
    StrictDifference,
    Union,
    Window,
)
from tidemill.algebra.tree import children, once_per_node, walk
from tidemill.model.batch import Form

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

__all__ = ["Forms", "Technique", "choose_forms"]


class Technique(Enum):
    """How results are withdrawn."""

    DIRECT = "direct"
    NEGATIVE = "negative"
    HYBRID = "hybrid"
    PATTERN = "pattern"


@dataclass(frozen=True, slots=True)
class Forms:
    """The form of each edge of a plan, and why it has it.

    Attributes:
        technique: What decided.
    """

    technique: Technique
    _edges: dict[int, tuple[Form, str]] = field(default_factory=dict)

    def form(self, plan: Plan) -> Form:
        """The form in which the rows of a node leave it."""
        return self._edges[id(plan)][0]

    def why(self, plan: Plan) -> str:
        """Why they have it."""
        return self._edges[id(plan)][1]

    @property
    def signs_throughout(self) -> bool:
        """Whether what gives signs takes nothing else, although it could."""
        return self.technique in (Technique.NEGATIVE, Technique.HYBRID)


def choose_forms(plan: Plan, technique: Technique, *, answer: Form | None = None) -> Forms:
    """The form of each edge.

    Args:
        plan: The plan.
        technique: What decides.
        answer: The form that the reader of the answer takes; ``None`` for either.
    """
    edges: dict[int, tuple[Form, str]] = {}
    match technique:
        case Technique.DIRECT:
            edges = {
                id(node): (Form.INTERVAL, "rows leave when their ends are known")
                for node in walk(plan)
            }
        case Technique.PATTERN:
            for node in walk(plan):
                edges[id(node)] = _by_pattern(node)
        case Technique.NEGATIVE:
            _from_windows_up(plan, edges)
        case Technique.HYBRID:
            for node in walk(plan):
                if _is_join_of_known_ends(node):
                    for below in walk(node):
                        edges[id(below)] = Form.INTERVAL, "a join has nothing to do when rows go"
            _from_windows_up(plan, edges)
    if answer is Form.INTERVAL:
        _ask_for_intervals(plan, edges)
    for node in walk(plan):
        if isinstance(node, Window):  # it takes intervals only
            _ask_for_intervals(node.input, edges)
    return Forms(technique, edges)


def _by_pattern(plan: Plan) -> tuple[Form, str]:
    while isinstance(plan, Rstream):
        plan = plan.input
    if update_pattern(plan) is UpdatePattern.STRICT:
        return Form.SIGNED, "ends depend on input still to come"
    if _is_counted(plan):
        return Form.SIGNED, "elements would leave only when they have ended"
    return Form.INTERVAL, "ends are known"


@once_per_node
def _is_counted(plan: Plan) -> bool:
    """Whether rows are counted somewhere below, so that elements wait for their ends."""
    if is_chronon(plan) or is_constant(plan):
        return False  # they end at once, or their time does
    match plan:
        case Intersect() | MaxUnion() | AntiJoin():
            return True
        case Join(kind=kind) if kind is not JoinKind.INNER:
            return True
        case Filter() | Project() | Distinct() | Rstream() | Union() | Join() | SemiJoin():
            return any(map(_is_counted, children(plan)))
        case _:
            return False


def _from_windows_up(plan: Plan, edges: dict[int, tuple[Form, str]]) -> Form:
    """Signs from windows on, but for what has a form already."""
    if id(plan) not in edges:
        below = [_from_windows_up(child, edges) for child in children(plan)]
        if isinstance(plan, Source | Relation | Istream | Dstream):
            edges[id(plan)] = Form.INTERVAL, "as rows come in"
        elif isinstance(plan, Filter | Project | Union | Rstream) and Form.SIGNED not in below:
            edges[id(plan)] = Form.INTERVAL, "as its input"
        else:
            edges[id(plan)] = Form.SIGNED, "rows that go are withdrawn"
    return edges[id(plan)][0]


def _is_join_of_known_ends(plan: Plan) -> bool:
    is_join = isinstance(plan, Join) and plan.kind is JoinKind.INNER
    return is_join and update_pattern(plan) is not UpdatePattern.STRICT


def _ask_for_intervals(plan: Plan, edges: dict[int, tuple[Form, str]]) -> bool:
    """Ask the maker of the rows of a node for intervals, if it can give them at no cost."""
    if edges[id(plan)][0] is Form.INTERVAL:
        return True
    match plan:
        case Filter() | Project() | Rstream():
            can = _ask_for_intervals(plan.input, edges)
        case Window(_, RowWindow() | SessionWindow()) | Aggregate() | AntiJoin():
            can = True
        case Difference() | StrictDifference() | Intersect() | MaxUnion():
            can = True
        case Join() if update_pattern(plan) is not UpdatePattern.STRICT:
            can = all(_ask_for_intervals(child, edges) for child in children(plan))
        case _:
            can = False
    if can:
        edges[id(plan)] = Form.INTERVAL, "its reader takes intervals"
    return can
