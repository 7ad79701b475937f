"""Golden files: what goes in, and the text that comes out.

A file is a list of cases:

    # a comment, if there is one
    plan                          the directive, with its arguments on the same line
    SELECT item                   the input: every line up to the ----
    FROM bids
    ----
    Project item                  the expected text, up to a blank line
      Source bids

An expected text with blank lines of its own stands between ``----`` twice and ``----`` twice:

    plan
    SELECT 1
    ----
    ----
    first line

    last line
    ----
    ----

``pytest --rewrite-golden`` writes what came out over what was expected; read the diff.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Case", "cases", "check", "rewriting"]

RULE = "----"

rewriting = False
"""Whether expectations are rewritten instead of checked; ``conftest.py`` sets it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a golden file.

    Attributes:
        path: The file it stands in.
        number: Its place among the cases of the file, from 0; rewriting never changes it.
        directive: The first word of its first line.
        arguments: The other words of that line.
        input: The lines up to the rule.
        expected: The text after the rule.
        lines: The lines it takes up in the file, from its directive on, counted from 0.
    """

    path: Path
    number: int
    directive: str
    arguments: tuple[str, ...]
    input: str
    expected: str
    lines: range

    def __str__(self) -> str:
        return f"{self.path.stem}:{self.lines.start + 1}"


def cases(path: Path) -> list[Case]:
    """The cases of a golden file, in order.

    A test takes them as ``@pytest.mark.parametrize("case", cases(path), ids=str)``.
    """
    return list(_parse(path))


def check(case: Case, actual: str) -> None:
    """Fail with a diff unless ``actual`` is expected; or rewrite the expectation."""
    if actual == case.expected:
        return
    if rewriting:
        _rewrite(case, actual)
        return
    diff = unified_diff(
        case.expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm=""
    )
    where = f"{case.path}:{case.lines.start + 1}"
    pytest.fail("\n".join([f"{where}: {case.directive}", case.input, *diff]), pytrace=False)


def _parse(path: Path) -> Iterator[Case]:
    lines = path.read_text(encoding="utf-8").splitlines()
    number = at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            at += 1
            continue
        directive, *arguments = lines[at].split()
        assert RULE in lines[at:], f"{path}:{at + 1}: the case has no {RULE}"
        rule = lines.index(RULE, at)
        expected, end = _expected(lines, rule + 1, f"{path}:{rule + 1}")
        input_ = "\n".join(lines[at + 1 : rule])
        yield Case(path, number, directive, tuple(arguments), input_, expected, range(at, end))
        number, at = number + 1, end


def _expected(lines: list[str], start: int, where: str) -> tuple[str, int]:
    """The expected text that starts at a line, and the line behind it."""
    if lines[start : start + 1] != [RULE]:
        end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
        return "\n".join(lines[start:end]), end
    closing = (i for i in range(start + 1, len(lines)) if lines[i : i + 2] == [RULE, RULE])
    close = next(closing, None)
    assert close is not None, f"{where}: nothing closes the text with {RULE} twice"
    return "\n".join(lines[start + 1 : close]), close + 2


def _rewrite(case: Case, actual: str) -> None:
    # Other cases of the file may have been rewritten since this one was read.
    now = cases(case.path)[case.number]
    lines = case.path.read_text(encoding="utf-8").splitlines()
    rule = lines.index(RULE, now.lines.start)
    lines[rule : now.lines.stop] = [RULE, *_written(actual)]
    case.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _written(text: str) -> list[str]:
    lines = text.split("\n") if text else []
    plain = "" not in lines and lines[:1] != [RULE]
    written = lines if plain else [RULE, *lines, RULE, RULE]
    assert _expected(written, 0, "")[0] == text, f"the format cannot hold this text:\n{text}"
    return written
