"""The workload of the calibration: plans in which every operator of the engine has something to do.

Most are planned from queries. Operators that no query has, or only one that is changed while it
runs, are put above a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from tidemill.calibration.streams import DECLARATIONS
from tidemill.model.batch import Form
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import Joins, Planning
from tidemill.physical import interval, signed
from tidemill.physical.plan import Apply, Input, walk_physical
from tidemill.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["CASES", "Case", "inputs_of", "plan_of"]

_SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """A plan to be measured.

    Attributes:
        sql: The query.
        technique: What decides on forms.
        joins: How joins of joins are made.
        lazy: At multiples of how many microseconds.
        above: What stands above the plan, of its schema, one operator above the other.
        most: How many rows a step has at most; more would take too long.
        adaptive: Whether joins of joins can change their trees.
    """

    sql: str
    technique: Technique = Technique.PATTERN
    joins: Joins = Joins.BINARY
    lazy: int = 0
    above: tuple[Callable[[Schema], Operator], ...] = ()
    most: int = 1_000_000
    adaptive: bool = False


_NEGATIVE: Final = Technique.NEGATIVE
_WINDOW: Final = "SELECT k, v FROM s [RANGE 3 SECONDS]"
_MANY: Final = (
    "SELECT r.v AS a, s.v AS b, u.v AS c FROM r [RANGE 2 SECONDS], s [RANGE 2 SECONDS],"
    " u [RANGE 2 SECONDS] WHERE r.k = s.k AND s.k = u.k"
)
_FEWER: Final = _MANY.replace(".k = ", ".v = ").replace(".k", ".v")
_PAIRS: Final = "SELECT r.v AS a, s.v AS b FROM r [RANGE 3 SECONDS], s [RANGE 3 SECONDS] WHERE "

_PATTERN: Final = (
    "SELECT k, v FROM s [RANGE 3 SECONDS] WHERE v < 500",
    "SELECT v * 2 AS a, k + v AS b, w FROM s [RANGE 3 SECONDS SLIDE 1 SECOND]",
    "SELECT k FROM r [RANGE 3 SECONDS] UNION ALL SELECT k FROM s [RANGE 3 SECONDS]",
    _PAIRS + "r.k = s.k AND r.v = s.v",
    _MANY,
    "SELECT DISTINCT w, k FROM s [RANGE 2 SECONDS SLIDE 1 SECOND]",
    "SELECT w, AVG(v) AS x FROM s [RANGE 3 SECONDS SLIDE 1 SECOND] GROUP BY w",
    "SELECT w, COUNT(DISTINCT v) AS x FROM s [RANGE 2 SECONDS] GROUP BY w",
    "SELECT k, v FROM s [ROWS 1000]",
    "SELECT COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 3 SECONDS SLIDE 1 SECOND]",
    "ISTREAM(SELECT k, COUNT(*) AS n FROM s [RANGE 3 SECONDS] GROUP BY k)",
    "DSTREAM(SELECT k, v FROM s [RANGE 3 SECONDS])",
)
_FEW_RESULTS: Final = (
    "SELECT w, AVG(v) AS x FROM s [RANGE 3 SECONDS SLIDE 1 SECOND] GROUP BY w",
    "SELECT DISTINCT w FROM s [RANGE 3 SECONDS]",
)
_BOTH: Final = (
    _PAIRS + "r.k = s.k",
    "SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 3 SECONDS] GROUP BY k",
    "SELECT k, MAX(v) AS x FROM s [RANGE 3 SECONDS] GROUP BY k",
    "SELECT DISTINCT k FROM s [RANGE 3 SECONDS]",
    "SELECT k FROM r [RANGE 3 SECONDS] EXCEPT ALL SELECT k FROM s [RANGE 3 SECONDS]",
    "SELECT k, v FROM s [PARTITION BY k ROWS 2]",
    "SELECT k, v FROM s [PARTITION BY k SESSION 1 SECOND]",
    (
        "SELECT k, v FROM r [RANGE 3 SECONDS] WHERE NOT EXISTS"
        " (SELECT * FROM s [RANGE 1 SECOND] WHERE s.k = r.k)"
    ),
)
_HALF: Final = _SECOND // 2
_LARGE: Final = 2 * _SECOND

CASES: Final = (
    *(Case(sql) for sql in _PATTERN),
    *(Case(sql, Technique.DIRECT) for sql in _FEW_RESULTS),
    *(Case(sql, technique) for sql in _BOTH for technique in (Technique.DIRECT, _NEGATIVE)),
    Case(_PAIRS + "r.v < s.v - 900", most=1_000),
    Case(_PAIRS + "r.w = s.w AND r.v = s.v", most=2_000),
    Case(_FEWER, joins=Joins.MULTIWAY),
    Case(_MANY, joins=Joins.MULTIWAY),
    Case(_MANY, joins=Joins.MULTIWAY, lazy=_LARGE),
    Case(_FEWER, adaptive=True),
    Case(_MANY, adaptive=True),
    Case(_MANY, joins=Joins.MULTIWAY, adaptive=True),
    Case(_MANY, _NEGATIVE, Joins.MULTIWAY, most=1_000),
    Case(_WINDOW, above=(lambda s: interval.Split(s, _SECOND),)),
    Case(
        _WINDOW,
        above=(lambda s: interval.Split(s, _HALF), lambda s: interval.Coalesce(s, _LARGE)),
    ),
    Case(_WINDOW, above=(lambda s: interval.Granularity(s, _SECOND // 10),)),
    Case(_WINDOW, above=(lambda s: interval.Since(s, 1), interval.Number)),
    Case(_WINDOW, above=(lambda s: interval.Shorten(s, _SECOND, 3 * _SECOND),)),
    Case(_WINDOW, above=(lambda s: interval.Stretch(s, "q"),)),
    Case(_WINDOW, above=(signed.ToSigned, lambda s: signed.Stretch(s, "q"), signed.Hold)),
    Case(_WINDOW, above=(signed.ToSigned, lambda s: signed.ToIntervals(s, 60 * _SECOND))),
)


def plan_of(case: Case) -> PhysicalPlan:
    """The plan of a case."""
    session = Session(_never_run, unbounded_state=True)
    session.sql(DECLARATIONS)
    planning = Planning(
        technique=case.technique, joins=case.joins, lazy=case.lazy, adaptive=case.adaptive
    )
    form = Form.SIGNED if case.technique is _NEGATIVE else None
    bound = session.query(case.sql).plan
    made = plan(bound, Target(answer=form, whole=False), Context(planning)).physical
    for above in case.above:
        made = Apply(above(made.schema), (made,))
    return made


def inputs_of(made: PhysicalPlan) -> frozenset[str]:
    """The streams that a plan reads."""
    return frozenset(part.name for part in walk_physical([made]) if isinstance(part, Input))


def _never_run(*_: object) -> NoReturn:
    raise AssertionError("nothing is run in the session")
