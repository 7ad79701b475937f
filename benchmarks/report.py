"""Write what the benchmarks have found into the page about them.

    python -m benchmarks.report [--results DIRECTORY]

Takes the tables of the last run of each question, and the pictures, and puts them below the mark in
``docs/benchmarks.md``. What stands above it is written by people. A question that has not been run
here keeps what the page says of it.
"""

# ruff: noqa: T201 — it prints

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
MARK = "<!-- what follows is written by python -m benchmarks.report -->"


def written(page: str, results: Path) -> str:
    """The page with the results below its mark."""
    above, mark, below = page.partition(MARK)
    assert mark, "the page has a mark"
    sections = _sections(below)
    for file in sorted(results.glob("*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        sections[f"## {result['question']}"] = "\n\n".join(_section(result))
    return "\n\n".join([f"{above}{MARK}", *sections.values()]) + "\n"


def _sections(below: str) -> dict[str, str]:
    """The sections that stand below the mark, by their titles."""
    found: dict[str, list[str]] = {}
    for line in below.splitlines():
        if line.startswith("## "):
            found[line] = []
        if found:
            found[next(reversed(found))].append(line)
    return {title: "\n".join(lines).strip() for title, lines in found.items()}


def _section(result: dict[str, Any]) -> Iterator[str]:
    run, machine = result["run"], result["machine"]
    kind = "a full run" if run["full"] else "a short run"
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("python", "polars", "pyspark", "duckdb")
    )
    yield f"## {result['question']}"
    yield (
        f"`{run['command']}`: {kind} of {run['at'][:10]}, {run['seconds']} s, seed {run['seed']};"
        f" {machine['cores']} cores, {machine['memory']}; {versions}."
    )
    if "failure" in result:
        yield f"**{result['failure']}**"
    for table in result["tables"]:
        columns = tuple(table["rows"][0]) if table["rows"] else ()
        rows = tuple(tuple(row.values()) for row in table["rows"])
        yield Table(table["title"], columns, rows, tuple(table["notes"])).markdown()
    for picture in result.get("pictures", ()):
        yield f"![{Path(picture).stem}](images/{picture})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description="Results of the benchmarks, for the docs.")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where tables are")
    given = parser.parse_args(arguments)
    text = written(PAGE.read_text(encoding="utf-8"), given.results)
    pictures = sorted(given.results.glob("*.png"))
    images = PAGE.parent / "images"
    images.mkdir(exist_ok=True)
    for picture in pictures:
        shutil.copy(picture, images / picture.name)
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.name}: {len(text.splitlines())} lines, {len(pictures)} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
