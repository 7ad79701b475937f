"""Estimates beside what the operators of the local engine do on generated streams (O23).

Rows come at random (Poisson) or at equal distances, with values that are equally frequent, as the
model assumes. In the steady state the rows that leave each operator and those it remembers are what
is estimated, within ``NEAR``; where the model is coarser, ``COARSE`` says by how much and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidemill.calibration.observe import observe
from tidemill.calibration.streams import STEP, Load, feed, statistics
from tidemill.calibration.workload import CASES, Case, inputs_of, plan_of
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.estimates.plan import estimate
from tidemill.physical.codec.operators import operator_name
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.optimizer.estimates.flow import Work
    from tidemill.physical.plan import PhysicalPlan

LOAD = Load(rows=250, keys=200, steps=8, warm=5)
NEAR = 1.2
FEW = 30.0
"""Of so few rows a factor says little."""

COARSE: dict[str, tuple[float, str]] = {
    "interval.Coalesce": (1.6, "how often equal rows adjoin is assumed"),
    "signed.Stretch": (1.6, "changes of what stands are added up from time to time only"),
    "interval.Counting": (1.5, "pieces of elements that adjoin are taken for some at random"),
    "interval.Distinct": (1.3, "elements of a window that slides begin and end together"),
}
PACE = Pace(STEP / 1e6)


def works_of(made: PhysicalPlan, load: Load) -> Mapping[str, Work]:
    return estimate([made], statistics(load), PACE)


def is_near(estimated: float, found: float, within: float) -> bool:
    return abs(estimated - found) <= FEW or 1 / within <= estimated / max(found, 1e-9) <= within


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.sql[:40]} {case.technique.value}")
def test_rows_and_state_are_as_estimated(case: Case) -> None:
    made = plan_of(case)
    load = LOAD
    found = observe({"q": made}, feed(load, inputs_of(made)), warm=load.warm)
    works = works_of(made, load)
    wrong = []
    for part in walk_physical([made]):
        if not isinstance(part, Apply):
            continue
        name, work = operator_name(part.operator), works[part.fingerprint]
        seen, within = found.operators[part.fingerprint], COARSE.get(name, (NEAR, ""))[0]
        pairs = {
            "out": (work.flow.rows * STEP * load.steps, seen.rows_out),
            "held": (sum(work.state.values()), seen.state_rows),
        }
        for what, (estimated, measured) in pairs.items():
            if not is_near(estimated, measured, within):
                wrong.append(f"{name} {what}: {estimated:.0f}, not {measured:.0f}")
    assert not wrong
