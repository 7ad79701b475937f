"""What the benchmarks have found stands in the page about them, and what people wrote stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness.question import Context, Question
from benchmarks.harness.table import Table
from benchmarks.report import MARK, PAGE, written
from benchmarks.run import ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_results_stand_below_the_mark(tmp_path: Path) -> None:
    def answers(context: Context) -> Iterator[Table]:
        (context.out / "speed_up.png").write_bytes(b"")
        yield Table("Speed", ("side", "seconds"), (("a", 1.25),), ("a note",))

    ask(Question("speed", "How fast", answers), full=False, seed=3, out=tmp_path)
    page = written(f"By people.\n\n{MARK}\n\nold", tmp_path)
    assert page.startswith(
        f"By people.\n\n{MARK}\n\n## How fast\n\n`python -m benchmarks.run --seed 3 speed`"
    )
    assert "| a | 1.25 |\n\na note\n\n![speed_up](images/speed_up.png)" in page
    assert "old" not in page
    assert written(page, tmp_path) == page


def test_what_was_not_asked_again_stays(tmp_path: Path) -> None:
    def answers(_: Context) -> Iterator[Table]:
        yield Table("Speed", ("side", "seconds"), (("a", 1.25),))

    page = f"{MARK}\n\n## How far\n\nto the sea\n\n### By road\n\nten\n\n## How fast\n\nslow\n"
    ask(Question("speed", "How fast", answers), full=False, seed=1, out=tmp_path)
    new = written(page, tmp_path)
    assert new.startswith(
        f"{MARK}\n\n## How far\n\nto the sea\n\n### By road\n\nten\n\n## How fast"
    )
    assert "slow" not in new
    assert written(new, tmp_path) == new


def test_the_page_has_a_mark() -> None:
    assert MARK in PAGE.read_text(encoding="utf-8")
