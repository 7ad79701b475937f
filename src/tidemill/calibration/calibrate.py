"""The calibration: the workload is run in several sizes, and constants are fitted to what it took.

Each operator of each plan is a sample: how often it was called, how many rows came and left, and
how many pairs it compared and rows it looked at, as the cost model counts them. What is done
between operators is another sample of each plan.
"""

from __future__ import annotations

from dataclasses import fields, replace
from time import perf_counter
from typing import TYPE_CHECKING, Final

from tidemill.calibration.fit import Sample, fitted
from tidemill.calibration.observe import least, observe
from tidemill.calibration.streams import STEP, Load, feed, statistics
from tidemill.calibration.workload import CASES, inputs_of, plan_of
from tidemill.optimizer.constants import DEFAULTS, Constants, OperatorCost
from tidemill.optimizer.cost import calls
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.estimates.plan import estimate
from tidemill.physical.codec.operators import operator_name
from tidemill.physical.fragments import alone_in, build_graph, rows_name
from tidemill.physical.plan import Apply, Exchange, Input, walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidemill.calibration.observe import Observed
    from tidemill.calibration.workload import Case
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["LOADS", "SECONDS", "TURNS", "measured"]

LOADS: Final = (Load(10, 10, 8, 3), Load(400, 400, 6, 3), Load(4_000, 4_000, 4, 3))
"""From steps that cost their calls to steps that cost their rows."""

TURNS: Final = 3
SECONDS: Final = 20.0
_PARTED: Final = 4
_MICROSECONDS: Final = 1e6
_OF_OPERATOR: Final = tuple(field.name for field in fields(OperatorCost))
_SHARED: Final = ("compared", "scanned")
_BETWEEN: Final = ("exchange_row", "message", "stage", "batch")


def measured(
    loads: Sequence[Load] = LOADS,
    turns: int = TURNS,
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Constants:
    """The constants of this machine.

    Args:
        loads: What comes.
        turns: How often everything is run; the fastest counts.
        seconds: After so long nothing is run again.
        progress: Is told how many runs are done, and how many there will be.
    """
    runs = [
        (plan_of(case), load, partitions)
        for case in CASES
        for load in (_at_most(case, load) for load in loads)
        for partitions in ((1, _PARTED) if _is_parted(case, load, loads) else (1,))
    ]
    seen: list[list[Observed]] = [[] for _ in runs]
    end, done = perf_counter() + seconds, 0
    for turn in range(turns):
        for number, (made, load, partitions) in enumerate(runs):
            if turn and perf_counter() > end:
                break
            flows = feed(load, inputs_of(made))
            seen[number].append(observe({"q": made}, flows, partitions=partitions, warm=load.warm))
            done += 1
            progress(done, len(runs) * turns)
    operators: list[Sample] = []
    between: list[Sample] = []
    for (made, load, partitions), found in zip(runs, seen, strict=True):
        fastest = least(found)
        operators += _of_operators(made, load, partitions, fastest)
        between.append(_between(made, load, partitions, fastest))
    return _constants(operators, between)


def _at_most(case: Case, load: Load) -> Load:
    return replace(load, rows=min(load.rows, case.most), keys=min(load.keys, case.most))


def _is_parted(case: Case, load: Load, loads: Sequence[Load]) -> bool:
    """Some plans are run in several partitions too: those that exchange rows."""
    return case in CASES[::4] and load != loads[-1]


def _of_operators(
    made: PhysicalPlan, load: Load, partitions: int, found: Observed
) -> Iterator[Sample]:
    every, once = Pace(STEP / _MICROSECONDS, partitions), Pace(STEP / _MICROSECONDS)
    works, alone = estimate([made], statistics(load), every), alone_in(walk_physical([made]))
    for part in walk_physical([made]):
        if isinstance(part, Apply) and part.fingerprint in found.operators:
            one, work = found.operators[part.fingerprint], works[part.fingerprint]
            # It rests in the partitions where no rows come.
            pace = once if rows_name(part) in alone else every
            name, time = operator_name(part.operator), found.steps * STEP
            done = {
                f"{name} step": calls(work, pace) * time,
                "values step": work.values * calls(work, pace) * time,
                "values row_in": float(work.values * one.rows_in),
                "values row_out": float(work.values * one.rows_out),
                f"{name} row_in": one.rows_in + work.inner * time,
                f"{name} row_out": one.rows_out + work.inner * time,
                "compared": work.compared * time,
                "scanned": work.scanned * time,
            }
            yield Sample(done, one.seconds * _MICROSECONDS)


def _between(made: PhysicalPlan, load: Load, partitions: int, found: Observed) -> Sample:
    # Where there is one partition nothing moves.
    parts = walk_physical([made]) if partitions > 1 else ()
    exchanges = [part for part in parts if isinstance(part, Exchange)]
    moved = sum(_rows_of(part.input, load, found) for part in exchanges)
    reached = sum(partitions if part.keys else 1 for part in exchanges)
    stages = len({fragment.stage for fragment in build_graph({"q": made}).fragments})
    done = {
        "exchange_row": float(moved),
        "message": float(reached * found.steps),
        "stage": float(stages * partitions * found.steps),
        "batch": float(found.steps),
    }
    return Sample(done, found.between * _MICROSECONDS)


def _rows_of(part: PhysicalPlan, load: Load, found: Observed) -> int:
    if isinstance(part, Input):
        return load.rows * found.steps
    seen = found.operators.get(part.fingerprint)
    return 0 if seen is None else seen.rows_out


def _constants(operators: Sequence[Sample], between: Sequence[Sample]) -> Constants:
    assumed = {
        f"{name} {part}": getattr(cost, part)
        for name, cost in {**DEFAULTS.operators, "values": DEFAULTS.values}.items()
        for part in _OF_OPERATOR
    }
    assumed |= {name: getattr(DEFAULTS, name) for name in _SHARED}
    costs = fitted(operators, assumed)
    others = fitted(between, {name: getattr(DEFAULTS, name) for name in _BETWEEN})

    def cost(name: str) -> OperatorCost:
        return OperatorCost(**{part: _round(costs[f"{name} {part}"]) for part in _OF_OPERATOR})

    return replace(
        DEFAULTS,
        operators={name: cost(name) for name in DEFAULTS.operators},
        values=cost("values"),
        **{name: _round(costs[name]) for name in _SHARED},
        **{name: _round(others[name]) for name in _BETWEEN},
    )


def _round(cost: float) -> float:
    """A cost to three digits; more is noise."""
    return float(f"{cost:.3g}")
