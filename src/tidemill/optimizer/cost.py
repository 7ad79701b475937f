"""The cost of a physical plan: CPU time and memory, for each part and together.

An estimate says what flows on each edge and what each operator does (``estimates``); constants say
what that takes (``constants.py``). CPU time is given in microseconds by second of the stream's
time: a plan of 1,000,000 keeps one core busy if the stream runs as fast as the clock. Memory is
what the operators remember in the steady state.

Law: nothing here changes an answer. The cost of a plan is the sum over its parts, and of the steps:
a part that is used twice counts once. It does not fall if an input gets more rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, assert_never

from tidemill.optimizer.characteristics import covered_part
from tidemill.optimizer.charges import called, looked_up
from tidemill.optimizer.constants import DEFAULTS, Constants
from tidemill.optimizer.estimates.flow import PACE, Pace, Work
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.physical.implement import implement
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.statistics import NOTHING_KNOWN, Edge
from tidemill.physical.codec.operators import operator_name
from tidemill.physical.fragments import alone_in, build_graph, rows_name
from tidemill.physical.plan import Apply, Exchange, Input, PhysicalPlan, walk_physical

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Form
    from tidemill.optimizer.constants import OperatorCost
    from tidemill.optimizer.statistics import Statistics
    from tidemill.physical.operator import Operator

__all__ = [
    "PACE",
    "Pace",
    "PartCost",
    "PlanCost",
    "calls",
    "cost_of",
    "logical_cost",
    "plan_cost",
]

_MICROSECONDS: Final = 1_000_000.0

_WIDTHS: Final = {
    **dict.fromkeys(("Boolean", "Int8", "UInt8", "Null"), 1.0),
    **dict.fromkeys(("Int32", "UInt32", "Float32", "Date"), 4.0),
    **dict.fromkeys(("Int64", "UInt64", "Float64", "Datetime", "Duration"), 8.0),
    **dict.fromkeys(("Decimal", "Int128"), 16.0),
}
_TEXT: Final = 24.0


@dataclass(frozen=True, slots=True)
class PartCost:
    """What a part of a plan takes.

    Attributes:
        edge: The elements that leave it.
        rows_in: How many rows come in a second, messages in signed form.
        rows_out: How many rows leave.
        state_rows: How many rows it remembers, in all partitions.
        state_bytes: How many bytes they take.
        cpu: For how many microseconds it works in a second of the stream's time.
    """

    edge: Edge
    rows_in: float
    rows_out: float
    state_rows: float
    state_bytes: float
    cpu: float


@dataclass(frozen=True, slots=True)
class PlanCost:
    """What a plan takes.

    Attributes:
        parts: Of each part, by fingerprint.
        steps: For how many microseconds in a second there is work that belongs to no part: that of
            steps and of stages.
        alone: For how many microseconds parts work that have rows in one partition only.
        partitions: How many partitions there are.
    """

    parts: Mapping[str, PartCost]
    steps: float
    alone: float = 0.0
    partitions: int = 1

    @property
    def cpu(self) -> float:
        """For how many microseconds the plan works in a second of the stream's time."""
        return sum(part.cpu for part in self.parts.values()) + self.steps

    @property
    def busiest(self) -> float:
        """For how many microseconds in a second the partition works that has most to do."""
        return self.alone + (self.cpu - self.alone) / self.partitions

    @property
    def memory(self) -> float:
        """How many bytes the plan remembers."""
        return sum(part.state_bytes for part in self.parts.values())


def plan_cost(
    plan: PhysicalPlan,
    statistics: Statistics = NOTHING_KNOWN,
    constants: Constants = DEFAULTS,
    pace: Pace = PACE,
    relations: Collection[str] = (),
) -> PlanCost:
    """What a plan takes if it runs alone.

    Args:
        plan: The plan.
        statistics: What is known of what comes in.
        constants: What everything costs.
        pace: How long steps are, and how many partitions there are.
        relations: The inputs that are relations; others are streams.
    """
    return cost_of({"query": plan}, statistics, constants, pace, relations)


def cost_of(
    plans: Mapping[str, PhysicalPlan],
    statistics: Statistics = NOTHING_KNOWN,
    constants: Constants = DEFAULTS,
    pace: Pace = PACE,
    relations: Collection[str] = (),
) -> PlanCost:
    """What the plans of several queries take that run together; equal parts count once."""
    works = estimate(plans.values(), statistics, pace, relations)
    every = list(walk_physical(plans.values()))
    alone, once = alone_in(every), replace(pace, partitions=1)
    parts: dict[str, PartCost] = {}
    for part in every:
        is_called_once = rows_name(part) in alone and isinstance(part, Apply)
        own = once if is_called_once else pace
        parts[part.fingerprint] = _part_cost(part, works[part.fingerprint], constants, own)
    fragments = build_graph(dict(plans)).fragments
    stages = Counter(fragment.stage for fragment in fragments)
    each = constants.batch + constants.stage * len(stages) * pace.partitions
    there = sum(parts[part.fingerprint].cpu for part in every if rows_name(part) in alone)
    return PlanCost(parts, each * pace.steps * _MICROSECONDS, there, pace.partitions)


def logical_cost(  # noqa: PLR0913 — what a plan is made for, and what is known
    query: Plan,
    statistics: Statistics = NOTHING_KNOWN,
    constants: Constants = DEFAULTS,
    pace: Pace = PACE,
    relations: Collection[str] = (),
    *,
    technique: Technique = Technique.PATTERN,
    answer: Form | None = None,
) -> PlanCost:
    """What a logical plan takes, as it would be implemented without further phases."""
    plan = implement(query, technique, answer).placed.plan
    return plan_cost(plan, statistics, constants, pace, relations)


def calls(work: Work, pace: Pace) -> float:
    """How often an operator is called in a microsecond.

    One that remembers nothing is called where rows come in a step only, at random.
    """
    each = pace.steps * pace.partitions
    return each * work.rounds if work.state else each * covered_part(work.taken / each)


def _cpu(cost: OperatorCost, work: Work, pace: Pace) -> float:
    """Steps, and rows that come and leave."""
    return called(cost, calls(work, pace), work.taken + work.inner, work.given + work.inner)


def _part_cost(part: PhysicalPlan, work: Work, constants: Constants, pace: Pace) -> PartCost:
    match part:
        case Input():
            cpu, memory = 0.0, 0.0
        case Exchange():
            cpu, memory = 0.0, 0.0
            if pace.partitions > 1:  # else nothing moves
                reached = pace.partitions if part.keys else 1
                cpu = work.taken * constants.exchange_row
                cpu += constants.message * reached * pace.steps
        case Apply(operator):
            cost = constants.operators[operator_name(operator)]
            cpu = _cpu(cost, work, pace) + work.values * _cpu(constants.values, work, pace)
            cpu += looked_up(constants, work.compared, work.scanned)
            memory = _state_bytes(operator, work)
        case _:
            assert_never(part)
    return PartCost(
        edge=work.flow.edge,
        rows_in=work.taken * _MICROSECONDS,
        rows_out=work.flow.rows * _MICROSECONDS,
        state_rows=sum(work.state.values()),
        state_bytes=memory,
        cpu=cpu * _MICROSECONDS,
    )


def _state_bytes(operator: Operator, work: Work) -> float:
    """What the tables take: their columns, as wide as their types are."""
    if not work.state:
        return 0.0
    tables = operator.new_state().tables
    assert tables.keys() == work.state.keys(), f"tables {[*tables]}, not {[*work.state]}"
    return sum(
        rows
        * sum(_width(column, str(type_), work) for column, type_ in tables[name].schema.items())
        for name, rows in work.state.items()
    )


def _width(column: str, type_: str, work: Work) -> float:
    """How many bytes a value of a type of Polars takes; texts as long as those that come in."""
    known = _WIDTHS.get(type_.partition("(")[0])
    if known is not None:
        return known
    return work.widths.get(column, _TEXT * max(work.flow.weight, 1.0))
