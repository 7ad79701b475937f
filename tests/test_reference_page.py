"""The list of functions in the reference page is what the catalog says."""

from __future__ import annotations

import re
from pathlib import Path

import golden
from tidemill.catalog.functions import function_list

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "language.md"
BLOCK = re.compile(r"(?<=<!-- functions -->\n).*(?=<!-- /functions -->)", re.DOTALL)
TITLES = {
    "operator": "Operators",
    "text": "Functions of text",
    "math": "Functions of numbers",
    "conditional": "Functions that choose",
    "date": "Functions of time",
    "aggregate": "Aggregates",
}


def function_tables() -> str:
    """One table for each group of functions, as Markdown."""
    listed = function_list()
    assert {function.group for function in listed} == set(TITLES), "every group has a title"
    return "".join(_table(group) for group in TITLES) + "\n"


def _table(group: str) -> str:
    rows = [
        (_code(f.signature), f.description, ", ".join(map(_code, f.aliases)))
        for f in function_list()
        if f.group == group
    ]
    lines = [("written", "gives", "also called"), ("---", "---", "---"), *rows]
    body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"\n### {TITLES[group]}\n\n{body}\n".replace("|  |", "| |")


def _code(text: str) -> str:
    escaped = text.replace("|", r"\|")
    return f"`{escaped}`"


def test_the_page_lists_every_function() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if golden.rewriting:
        page = BLOCK.sub(lambda _: function_tables(), page)
        PAGE.write_text(page, encoding="utf-8")
    found = BLOCK.search(page)
    assert found is not None, f"{PAGE.name} has no place for the functions"
    assert found[0] == function_tables(), "pytest --rewrite-golden writes the list anew"


def test_a_pipe_does_not_end_a_cell() -> None:
    concatenation = next(line for line in function_tables().splitlines() if "a \\|\\| b" in line)
    assert len(re.findall(r"(?<!\\)\|", concatenation)) == 4
