"""Ask the questions of the benchmarks, and write down what they give.

    python -m benchmarks.run [--full] [--seed N] [--out DIRECTORY] [question …]
    python -m benchmarks.run --list

A question is a file in ``questions/``. Its tables are printed, and written as Markdown and JSON
with the machine, the versions and the seed. A question whose sides do not agree fails, and so does
the command. Of several questions, each is asked in a process of its own.
"""

# ruff: noqa: T201 — it prints

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.harness.machine import machine
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Context, Question
from benchmarks.harness.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence


HERE = Path(__file__).parent


def names() -> list[str]:
    """The names of all questions, which are those of their files."""
    return sorted(file.stem for file in (HERE / "questions").glob("[a-z]*.py"))


def load(name: str) -> Question:
    """A question by its name. What its file does to the process, it does from here on."""
    question = import_module(f"benchmarks.questions.{name}").QUESTION
    assert isinstance(question, Question), "a file has a question"
    assert question.name == name, "a question has the name of its file"
    return question


def ask(question: Question, *, full: bool, seed: int, out: Path) -> bool:
    """Print and write down the tables of a question; whether all went well."""
    print(f"\n## {question.title}\n", flush=True)
    began, tables, failure = perf_counter(), list[Table](), ""
    # Spark may not have written its last yet when it is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        context = Context(Path(folder), out, seed, full, _progress)
        try:
            for table in question.answers(context):
                _progress("")
                print(f"{table.markdown()}\n", flush=True)
                tables.append(table)
        except WrongAnswerError as error:
            failure = f"NOT THE SAME: {error}"
            print(failure, flush=True)
        except Exception as error:
            failure = f"FAILED: {type(error).__name__}: {error}"
            raise
        finally:
            _write_run(question, tables, failure, full=full, seed=seed, began=began, out=out)
    _progress("")
    print(f"{perf_counter() - began:.0f} s", flush=True)
    return not failure


def _write_run(  # noqa: PLR0913 — all of it is written
    question: Question,
    tables: Sequence[Table],
    failure: str,
    *,
    full: bool,
    seed: int,
    began: float,
    out: Path,
) -> None:
    options = (" --full" if full else "") + (f" --seed {seed}" if seed != 1 else "")
    command = f"python -m benchmarks.run{options} {question.name}"
    seconds = round(perf_counter() - began)
    run = {"command": command, "full": full, "seed": seed, "seconds": seconds}
    _write(question, tables, failure, run, out)


def _write(
    question: Question, tables: Sequence[Table], failure: str, run: dict[str, object], out: Path
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    facts = {"run": {**run, "at": datetime.now(UTC).isoformat("T", "seconds")}, **_machine()}
    told = {"question": question.title, **facts, "tables": [table.json() for table in tables]}
    told["pictures"] = [file.name for file in sorted(out.glob(f"{question.name}_*.png"))]
    if failure:
        told["failure"] = failure
    (out / f"{question.name}.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    parts = [f"## {question.title}", *(table.markdown() for table in tables), failure]
    text = "\n\n".join(part for part in parts if part)
    (out / f"{question.name}.md").write_text(f"{text}\n", encoding="utf-8")


def _machine() -> dict[str, object]:
    return {"machine": machine()}


def _progress(text: str) -> None:
    """Say on a terminal what is being done, in place."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 0 if all sides agree."""
    parser = argparse.ArgumentParser(description="The benchmarks of Tidemill.")
    parser.add_argument("question", nargs="*", help="which; all if none is named")
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument("--full", action="store_true", help="take the time it needs")
    parser.add_argument("--seed", type=int, default=1, help="what random numbers begin with")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where tables go")
    given = parser.parse_args(arguments)
    known = names()
    if given.list:
        for name in known:
            print(f"{name:20} {load(name).title}")
        return 0
    unknown = [name for name in given.question if name not in known]
    if unknown:
        parser.error(f"there is no question {unknown[0]}; there are {', '.join(known)}")
    if len(given.question) == 1:
        question = load(given.question[0])
        return 0 if ask(question, full=given.full, seed=given.seed, out=given.out) else 1
    for name, fact in machine().items():
        print(f"{name:10} {fact}", flush=True)
    options = ["--seed", str(given.seed), "--out", str(given.out)]
    options += ["--full"] if given.full else []
    failed = [name for name in given.question or known if not _asked_apart(name, options)]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _asked_apart(name: str, options: Sequence[str]) -> bool:
    """Ask a question in a process of its own; whether all went well."""
    command = [sys.executable, "-m", "benchmarks.run", *options, name]
    return subprocess.run(command, check=False).returncode == 0  # noqa: S603 — it is this program


if __name__ == "__main__":
    sys.exit(main())
