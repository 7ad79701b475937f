"""A query WITH PROVENANCE in a process that is to be killed; arguments as of ``killed``."""

from __future__ import annotations

import sys
from pathlib import Path

import tidemill
from running.killed import kill_after
from running.shop import TOTAL, define
from tidemill.history import tables
from tidemill.runtime.local import intake

_STEP_ROWS = 4


def main(root: Path, words: list[str]) -> None:
    intake._STEP_ROWS = _STEP_ROWS  # noqa: SLF001 — many steps
    tables.LIMITS = tables.Limits(changes=20, crowd=3, lines=7)  # pieces are made anew often
    with tidemill.connect(checkpoint=root / "state", partitions=2) as session:
        define(session, root / "in")
        session.sql(f"CREATE QUERY total WITH PROVENANCE KEEP ALL AS {TOTAL}")
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
