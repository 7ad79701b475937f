"""Every error people can cause has a hint: looked up in the source, where it is raised."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tidemill"
# A ParseError without a hint gets the form of its statement, in lang/parse.py.
ERRORS = {"BindError", "PlanError", "RunError"}


def without_hint(text: str) -> list[int]:
    """The lines at which an error is made without a hint."""
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return [
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id in ERRORS
        and "hint" not in {keyword.arg for keyword in call.keywords}
    ]


def test_every_error_is_made_with_a_hint() -> None:
    missing = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in without_hint(path.read_text("utf-8"))
    ]
    assert missing == []


def test_an_error_without_a_hint_would_be_found() -> None:
    assert without_hint('raise BindError("no", span=None)') == [1]
    assert without_hint('raise BindError("no", hint="yes")') == []
