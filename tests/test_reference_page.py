"""The lists of functions in the reference are what the catalog says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import golden
from tidemill.catalog.functions import function_list

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "language"
BLOCK = re.compile(r"(?<=<!-- functions -->\n).*(?=<!-- /functions -->)", re.DOTALL)
TITLES = {
    "expressions.md": {
        "operator": "Operators",
        "text": "Functions of strings",
        "math": "Functions of numbers",
        "conditional": "Functions that choose",
        "date": "Functions of time",
    },
    "aggregates.md": {"aggregate": "The aggregates"},
}
"""By page and by group."""


def function_tables(page: str) -> str:
    """One table for each group of functions of a page, as Markdown."""
    return "".join(_table(group, title) for group, title in TITLES[page].items()) + "\n"


def _table(group: str, title: str) -> str:
    rows = [
        (_code(f.signature), f.description, ", ".join(map(_code, f.aliases)))
        for f in function_list()
        if f.group == group
    ]
    lines = [("written", "gives", "also called"), ("---", "---", "---"), *rows]
    body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"\n### {title}\n\n{body}\n".replace("|  |", "| |")


def _code(text: str) -> str:
    escaped = text.replace("|", r"\|")
    return f"`{escaped}`"


def test_every_group_has_a_title() -> None:
    titles = [group for groups in TITLES.values() for group in groups]
    assert {function.group for function in function_list()} == set(titles)
    assert len(titles) == len(set(titles)), "a group is on one page"


@pytest.mark.parametrize("page", TITLES)
def test_the_page_lists_every_function(page: str) -> None:
    path = REFERENCE / page
    text = path.read_text(encoding="utf-8")
    if golden.rewriting:
        text = BLOCK.sub(lambda _: function_tables(page), text)
        path.write_text(text, encoding="utf-8")
    found = BLOCK.search(text)
    assert found is not None, f"{page} has no place for the functions"
    assert found[0] == function_tables(page), "pytest --rewrite-golden writes the list anew"


def test_a_pipe_does_not_end_a_cell() -> None:
    lines = function_tables("expressions.md").splitlines()
    concatenation = next(line for line in lines if "a \\|\\| b" in line)
    assert len(re.findall(r"(?<!\\)\|", concatenation)) == 4
