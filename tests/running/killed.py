"""A pipeline with a checkpoint in a process that is to be killed.

Arguments: the directory that everything is below; then the stage after which it kills itself, and
in which of its steps; without them it runs until it is killed, or, with ``end``, to its end.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from running.kept import connected
from running.shop import DIFFERENT, NAMED, PAIRS, TOTAL
from tidemill.runtime.local import intake, stepping

if TYPE_CHECKING:
    import polars as pl

    from tidemill.runtime.local.stepping import Step

TEXTS = (TOTAL, NAMED, PAIRS, DIFFERENT)
STEP_ROWS = 30


def kill_after(stage: str, step: int) -> None:
    """Let this process be killed when a stage of a step is done."""
    left = [step]

    def kill(_: Step) -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    names = [one.__name__ for one in stepping.STAGES]
    place = names.index(stage) + 1
    stepping.STAGES = (*stepping.STAGES[:place], kill, *stepping.STAGES[place:])


def main(root: Path, words: list[str]) -> None:
    intake._STEP_ROWS = STEP_ROWS  # noqa: SLF001 — many steps

    def taken(rows: pl.DataFrame, number: int) -> None:
        with (root / "taken.jsonl").open("a") as file:
            file.write(f'{{"batch": {number}, "rows": {rows.write_json()}}}\n')

    with connected(root, TEXTS, taken, partitions=2) as session:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        match words:
            case ["end"]:
                session.run(end=True)
            case [stage, step]:
                kill_after(stage, int(step))
                session.run()
            case _:
                session.start()
                while True:
                    session.await_idle()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
