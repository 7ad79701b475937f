"""The calibration finds the constants by which things took as long as they did."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.calibration import calibrate
from tidemill.calibration.fit import Sample, fitted
from tidemill.calibration.observe import Observed, Seen
from tidemill.calibration.streams import STEP, Load, statistics
from tidemill.calibration.workload import CASES, plan_of
from tidemill.optimizer.constants import DEFAULTS, Constants, OperatorCost
from tidemill.optimizer.cost import plan_cost
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.estimates.plan import estimate
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.physical.plan import PhysicalPlan

LOADS = (Load(10, 10, 8, 0), Load(1_000, 1_000, 8, 0))
STEPS = 8


def dearer(by: float) -> Constants:
    """Another machine, on which operators cost so many times as much, and all else as well."""
    operators = {
        name: OperatorCost(cost.step * by, cost.row_in * by, cost.row_out * by)
        for name, cost in DEFAULTS.operators.items()
    }
    plain = {
        f.name: getattr(DEFAULTS, f.name) * by
        for f in fields(Constants)
        if f.name not in ("operators", "values")
    }
    values = DEFAULTS.values
    others = OperatorCost(values.step * by, values.row_in * by, values.row_out * by)
    return replace(DEFAULTS, operators=operators, values=others, **plain)


class Machine:
    """A machine that takes exactly what the cost model says, with constants of its own."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.load = LOADS[0]

    def feed(self, load: Load, names: frozenset[str]) -> Iterable[Mapping[str, object]]:
        del names
        self.load = load
        return ()

    def observe(
        self,
        plans: Mapping[str, PhysicalPlan],
        feed: object,
        *,
        partitions: int = 1,
        warm: int = 0,
    ) -> Observed:
        """What the steps of a plan take."""
        del feed, warm
        (made,) = plans.values()
        pace, known = Pace(STEP / 1e6, partitions), statistics(self.load)
        works, found = estimate([made], known, pace), Observed(STEPS)
        cost = plan_cost(made, known, self.constants, pace)
        seconds, between = STEPS * STEP / 1e6, cost.steps
        for part in walk_physical([made]):
            work, took = works[part.fingerprint], cost.parts[part.fingerprint].cpu
            if isinstance(part, Apply):
                rows_in, rows_out = (round(n * STEPS * STEP) for n in (work.taken, work.flow.rows))
                seen = Seen(rows_in, rows_out, [took * seconds / 1e6])
                found.operators[part.fingerprint] = seen
            else:
                between += took
        found.took = [between * seconds / 1e6]
        return found


@pytest.mark.parametrize(("by", "batch"), [(1.0, 0.0), (3.0, 500.0)])
def test_it_finds_the_constants_of_a_machine_that_is_as_the_model_says(
    by: float, batch: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(replace(dearer(by), batch=batch))
    monkeypatch.setattr(calibrate, "observe", machine.observe)
    monkeypatch.setattr(calibrate, "feed", machine.feed)
    found = calibrate.measured(LOADS, turns=1, seconds=0)
    for number, case in enumerate(CASES):
        made = plan_of(case)
        load = replace(LOADS[0], rows=min(10, case.most), keys=min(10, case.most))
        # Rows are exchanged in every fourth of them.
        for pace in (Pace(), Pace(partitions=4))[: 1 + (number % 4 == 0)]:
            known = statistics(load)
            right, ours = (plan_cost(made, known, c, pace) for c in (machine.constants, found))
            assert ours.cpu == pytest.approx(right.cpu, rel=0.1), case.sql
            assert ours.steps == pytest.approx(right.steps, rel=0.1), case.sql
    # How much of that is a step's own and how much its stages' is told apart by few plans only.
    assert (found.batch > 100) == (batch > 100)


def test_a_step_costs_what_is_said_of_it_besides_its_operators() -> None:
    made = plan_of(CASES[0])
    known, dear = statistics(LOADS[0]), replace(DEFAULTS, batch=DEFAULTS.batch + 250)
    for seconds in (1.0, 0.1):
        pace = Pace(seconds)
        more = plan_cost(made, known, dear, pace).cpu - plan_cost(made, known, pace=pace).cpu
        assert more == pytest.approx(250 / seconds), "a step is paid for as often as there is one"


COSTS = st.floats(0.01, 100)


@given(st.lists(COSTS, min_size=1, max_size=4), st.floats(0.5, 2))
def test_costs_that_can_be_told_apart_are_found(costs: list[float], wrong: float) -> None:
    names = [f"part {i}" for i in range(len(costs))]
    samples = [
        Sample({name: times}, cost * times)
        for name, cost in zip(names, costs, strict=True)
        for times in (1, 10, 1_000)
    ]
    together = Sample(dict.fromkeys(names, 5.0), 5 * sum(costs))
    assumed = {name: cost * wrong for name, cost in zip(names, costs, strict=True)}
    found = fitted([*samples, together], assumed)
    assert list(found.values()) == pytest.approx(costs, rel=0.02)


def test_what_was_never_done_stays_as_it_is_assumed() -> None:
    found = fitted([Sample({"a": 2.0}, 10.0), Sample({"a": 1.0}, 0.0)], {"a": 1.0, "b": 7.0})
    assert found["b"] == 7.0
    assert found["a"] == pytest.approx(5.0, rel=0.01)


def test_no_cost_is_negative() -> None:
    samples = [Sample({"call": 1.0, "row": n}, 100.0 - n) for n in (1.0, 10.0, 90.0)]
    assert min(fitted(samples, {"call": 1.0, "row": 1.0}).values()) >= 0
