"""EXPLAIN COST: what flows out of each part of a plan, and what the part remembers and costs.

Everything is by second of the streams' time, as the cost model estimates it. Of a query that runs,
or has run, what was measured stands beside it, with the estimate as a multiple of it.

Law: a line for each part, in the order of EXPLAIN PHYSICAL; what all of them and the steps cost
together is the cost of the plan.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tidemill.algebra.plan import Relation
from tidemill.algebra.tree import walk
from tidemill.optimizer.cost import PACE, plan_cost
from tidemill.optimizer.decisions import write_decisions
from tidemill.optimizer.explain.physical import NO_FIGURES, describe, physical_json
from tidemill.optimizer.statistics import NOTHING_KNOWN
from tidemill.physical.plan import Exchange, Input, inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidemill.algebra.codec.values import Json
    from tidemill.optimizer.cost import Pace, PartCost, PlanCost
    from tidemill.optimizer.explain.physical import Figures
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["UNKNOWN", "Known", "cost_json", "explain_cost"]

_MICROSECONDS: Final = 1_000_000.0
_QUANTITIES: Final = ("rows/s", "held", "bytes", "us/s")
_NOTHING: Final = (None, None, None, None)
_WIDTH: Final = 10
_RATIO: Final = 7


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a query whose cost is asked for.

    Attributes:
        statistics: Of what comes in.
        pace: How long its steps are, and how many partitions there are.
        figures: What was measured of its operators, by fingerprint, if it has run.
        seconds: How much of the streams' time went by meanwhile; 0 if that is not known.
    """

    statistics: Statistics = NOTHING_KNOWN
    pace: Pace = PACE
    figures: Mapping[str, Figures] = field(default_factory=lambda: NO_FIGURES)
    seconds: float = 0.0

    @property
    def is_measured(self) -> bool:
        """Whether there is anything to be compared with."""
        return bool(self.figures) and self.seconds > 0


UNKNOWN = Known()
"""Nothing is known, and nothing was measured."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line: figures, and what they are of; ``None`` where there is nothing to say."""

    estimated: Sequence[float | None]
    measured: Sequence[float | None]
    text: str


def explain_cost(planned: Planned, known: Known = UNKNOWN) -> str:
    """What a plan is expected to cost, as text.

    Args:
        planned: The query.
        known: What is known of it.
    """
    cost = _cost(planned, known)
    lines = [*_lines(planned.physical, cost, known), *_sums(cost, known)]
    shown = [_title(known), *(_text(line, known) for line in lines)]
    return "\n".join([*shown, *(f"decided: {one.text()}" for one in planned.decisions)])


def cost_json(planned: Planned, known: Known = UNKNOWN) -> Json:
    """The same for ``json``: the plan as it is written, each part with its cost."""
    cost = _cost(planned, known)
    written = physical_json(planned.physical, planned.labels)
    for shown in written["parts"]:
        name = shown["fingerprint"]
        part, seen = cost.parts[name], _measured(name, known)
        shown["cost"] = {
            "rows_in": part.rows_in,
            "rows_out": part.rows_out,
            "state_rows": part.state_rows,
            "state_bytes": part.state_bytes,
            "cpu": part.cpu,
            "length": part.edge.length,
            "is_measured": part.edge.is_measured,
        }
        if seen is not None:
            names = ("rows_out", "state_rows", "state_bytes", "cpu")
            shown["measured"] = dict(zip(names, seen, strict=True))
    written["cpu"], written["memory"], written["steps"] = cost.cpu, cost.memory, cost.steps
    written["step"], written["partitions"] = known.pace.step, known.pace.partitions
    written["seconds"] = known.seconds or None
    written["decisions"] = write_decisions(planned.decisions)
    return written


def _cost(planned: Planned, known: Known) -> PlanCost:
    relations = {node.name for node in walk(planned.bound) if isinstance(node, Relation)}
    return plan_cost(planned.physical, known.statistics, planned.constants, known.pace, relations)


def _lines(plan: PhysicalPlan, cost: PlanCost, known: Known) -> Iterator[_Line]:
    """A line a part; what is used in several places has a number, and its figures once."""
    uses: Counter[str] = Counter()

    def count(part: PhysicalPlan) -> None:
        uses[part.fingerprint] += 1
        if uses[part.fingerprint] == 1:
            for below in inputs(part):
                count(below)

    count(plan)
    numbers: dict[str, int] = {}

    def visit(part: PhysicalPlan, depth: int) -> Iterator[_Line]:
        indent, name = "  " * depth, part.fingerprint
        if name in numbers:
            yield _Line(_NOTHING, _NOTHING, f"{indent}see [{numbers[name]}]")
            return
        label = ""
        if uses[name] > 1:
            numbers[name] = len(numbers) + 1
            label = f"[{numbers[name]}] "
        one = cost.parts[name]
        text = f"{indent}{label}{describe(part)}{_source(part, one)}"
        yield _Line(_estimated(part, one), _measured(name, known) or _NOTHING, text)
        for below in inputs(part):
            yield from visit(below, depth + 1)

    yield from visit(plan, 0)


def _estimated(part: PhysicalPlan, cost: PartCost) -> Sequence[float | None]:
    match part:
        case Input():
            return cost.rows_out, None, None, None
        case Exchange():
            return cost.rows_out, None, None, cost.cpu
        case _:
            return cost.rows_out, cost.state_rows, cost.state_bytes, cost.cpu


def _source(part: PhysicalPlan, cost: PartCost) -> str:
    """Whether what comes in was measured."""
    is_assumed = isinstance(part, Input) and not cost.edge.is_measured
    return "  assumed" * is_assumed


def _measured(name: str, known: Known) -> tuple[float, float, float, float] | None:
    """The rows that left, what is remembered, and the work, by second of the streams' time."""
    if not known.is_measured or name not in known.figures:
        return None
    one = known.figures[name]
    work = one.seconds * _MICROSECONDS / known.seconds
    return one.rows_out / known.seconds, float(one.state_rows), float(one.state_bytes), work


def _sums(cost: PlanCost, known: Known) -> Iterator[_Line]:
    yield _Line((None, None, None, cost.steps), _NOTHING, "steps and stages")
    rows = sum(part.state_rows for part in cost.parts.values())
    seen = [one for name in cost.parts if (one := _measured(name, known)) is not None]
    sums = (None, *(sum(one[number] for one in seen) for number in (1, 2, 3)))
    yield _Line((None, rows, cost.memory, cost.cpu), sums if seen else _NOTHING, "together")


# Layout


def _title(known: Known) -> str:
    if not known.is_measured:
        return "".join(f"{name:>{_WIDTH}}" for name in _QUANTITIES).rstrip()
    cells = (f"{name:>{_WIDTH}}{'measured':>{_WIDTH}}{'ratio':>{_RATIO}}" for name in _QUANTITIES)
    return "".join(cells).rstrip()


def _text(line: _Line, known: Known) -> str:
    cells = []
    for estimate, seen in zip(line.estimated, line.measured, strict=True):
        cells.append(f"{_number(estimate):>{_WIDTH}}")
        if known.is_measured:
            cells.append(f"{_number(seen):>{_WIDTH}}{_ratio(estimate, seen):>{_RATIO}}")
    return f"{''.join(cells)}  {line.text}"


def _number(value: float | None) -> str:
    """A figure as people read it; with one digit behind the point where it is small."""
    if value is None:
        return ""
    least = 10
    return f"{value:,.1f}" if 0 < value < least else f"{value:,.0f}"


def _ratio(estimate: float | None, seen: float | None) -> str:
    if estimate is None or not seen:
        return ""
    return f"{estimate / seen:,.2f}"
