"""What all benchmarks have in common: no time counts for a wrong answer, and tables say so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.harness.machine import machine
from benchmarks.harness.measure import Timing, WrongAnswerError, measured
from benchmarks.harness.question import Context, Question
from benchmarks.harness.table import Table
from benchmarks.run import ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAIR = Table("Speed", ("side", "seconds", "ok"), (("a", 1.25, True), ("b", 1234567.0, False)))


def test_sides_take_turns_and_only_measured_runs_count() -> None:
    runs: list[str] = []

    def side(name: str) -> int:
        runs.append(name)
        return 7

    sides = {name: lambda n=name: lambda: side(n) for name in "ab"}
    timings = measured(sides, same=int.__eq__, repeat=2, warm_up=1)
    assert runs == list("ababab")
    assert {name: len(timing.seconds) for name, timing in timings.items()} == {"a": 2, "b": 2}


def test_another_output_is_an_error() -> None:
    with pytest.raises(WrongAnswerError, match="b gives another output than a"):
        measured({"a": lambda: lambda: 1, "b": lambda: lambda: 2}, same=int.__eq__)


def test_a_timing_has_a_middle_and_a_spread() -> None:
    timing = Timing((2.0, 1.0, 4.0))
    assert (timing.median, timing.best, timing.spread) == (2.0, 1.0, 1.5)


def test_a_table_is_read_by_people_and_programs() -> None:
    assert PAIR.markdown().splitlines()[2:] == [
        "| side | seconds | ok |",
        "|---|---:|---|",
        "| a | 1.25 | yes |",
        "| b | 1,234,567 | NO |",
    ]
    assert PAIR.json()["rows"] == [
        {"side": "a", "seconds": 1.25, "ok": True},
        {"side": "b", "seconds": 1234567.0, "ok": False},
    ]


def test_what_was_found_is_written_with_the_machine_and_the_seed(tmp_path: Path) -> None:
    def answers(context: Context) -> list[Table]:
        assert context.folder.is_dir()
        return [PAIR]

    question = Question("speed", "How fast", lambda context: iter(answers(context)))
    assert ask(question, full=False, seed=3, out=tmp_path)
    told = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    assert told["run"]["seed"] == 3
    assert told["machine"] == machine()
    assert told["tables"][0]["title"] == "Speed"
    assert (
        (tmp_path / "speed.md").read_text(encoding="utf-8").startswith("## How fast\n\n### Speed")
    )


def test_a_question_that_fails_leaves_no_tables_of_an_earlier_run(tmp_path: Path) -> None:
    def broken(_: Context) -> Iterator[Table]:
        yield from [PAIR] * int("no number")

    assert ask(Question("q", "?", lambda _: iter([PAIR])), full=False, seed=1, out=tmp_path)
    with pytest.raises(ValueError, match="no number"):
        ask(Question("q", "?", broken), full=False, seed=1, out=tmp_path)
    told = json.loads((tmp_path / "q.json").read_text(encoding="utf-8"))
    assert told["tables"] == []
    assert told["failure"].startswith("FAILED: ValueError: ")


def test_a_question_whose_sides_do_not_agree_fails(tmp_path: Path) -> None:
    def answers(_: Context) -> list[Table]:
        raise WrongAnswerError("a gives another output than b")

    question = Question("wrong", "Who is right", lambda context: iter(answers(context)))
    assert not ask(question, full=False, seed=1, out=tmp_path)
    told = json.loads((tmp_path / "wrong.json").read_text(encoding="utf-8"))
    assert told["failure"] == "NOT THE SAME: a gives another output than b"
