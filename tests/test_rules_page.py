"""The page of the rules lists each rule and each phase, and nothing else."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tidemill.optimizer import phases
from tidemill.optimizer.logical.rules import DEPENDING, PATTERN_RULES, RULES, SAVING
from tidemill.optimizer.planned import RESUME
from tidemill.optimizer.sharing import STEP as SHARED

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "rules.md"
FIRST_CELL = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
NAMED = re.compile(r'(?:changed|Step)\(\s*"(\w+)"')
"""Where a phase gives the steps of EXPLAIN TRACE their name."""


def listed(heading: str) -> list[str]:
    """The names in the table below a heading."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    (section,) = (one for one in sections if one.startswith(heading))
    return FIRST_CELL.findall(section)


def test_the_page_lists_every_rule_that_is_always_applied() -> None:
    applied = {
        rule.__name__
        for phase in RULES
        for rule in (phase if isinstance(phase, tuple) else (phase,))
    }
    assert listed("Rules that are always applied") == sorted(applied)


def test_the_page_lists_every_rule_that_goes_by_cost() -> None:
    moving = [rule.__name__ for rules in PATTERN_RULES.values() for rule in rules]
    costed = [rule.__name__ for rule in (*SAVING, *DEPENDING)]
    assert sorted(listed("Rules that pay only sometimes")) == sorted([*moving, *costed])


def test_the_page_lists_every_phase_in_its_order() -> None:
    named = NAMED.findall(inspect.getsource(phases))
    assert listed("Phases") == [*dict.fromkeys(named), SHARED, RESUME]
