"""``tidemill run``: run the queries of a file, and show how far they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import typer

from tidemill.cli.answers import print_answers, print_summary, queries_of
from tidemill.cli.options import (
    Checkpoint,
    Engine,
    EngineName,
    Forever,
    Master,
    Partitions,
    Rows,
    Script,
    TechniqueName,
    Trigger,
    UnboundedState,
)
from tidemill.cli.terminal import carry_out, console, read_script, reporting_errors
from tidemill.cli.units import batches_text
from tidemill.cli.watch import watch
from tidemill.connecting import connect
from tidemill.errors import PlanError, RunError
from tidemill.model.time import time_text
from tidemill.optimizer.techniques import Technique

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tidemill.cli.watch import Outcome
    from tidemill.session import Session

__all__ = ["INTERRUPTED", "run"]

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def run(  # noqa: PLR0913 — every option of the command
    file: Script,
    *,
    engine: Engine = EngineName.SPARK,
    master: Master = "local[*]",
    checkpoint: Checkpoint = None,
    partitions: Partitions = None,
    technique: TechniqueName = Technique.PATTERN,
    forever: Forever = False,
    trigger: Trigger = None,
    unbounded_state: UnboundedState = False,
    rows: Rows = 10,
) -> None:
    """Run the queries of a file and show their progress and the first rows of their answers."""
    text, out = read_script(file), console()
    with reporting_errors():
        if forever and engine is EngineName.LOCAL:
            raise PlanError("the local engine does not run for ever", hint="use --engine spark")
        if trigger is not None and not forever:
            raise PlanError("--trigger is for runs without an end", hint="add --forever")
        session = connect(
            engine=engine.value,
            master=master or None,
            checkpoint=checkpoint,
            partitions=partitions,
            technique=technique.value,
            trigger=trigger or 0,
            unbounded_state=unbounded_state,
        )
        _register(session, text, out)
        outcome = watch(session, out, forever=forever)
        if outcome.reading is not None:
            print_summary(out, outcome.reading)
        if outcome.stopped:
            _print_where(out, session, outcome, checkpoint, rows)
            raise typer.Exit(INTERRUPTED)
        print_answers(out, session, rows=rows)


def _register(session: Session, text: str, out: Console) -> None:
    """Carry out the statements; what the last one gives is shown, if it is not a query."""
    result = carry_out(session, text)
    if isinstance(result, str | pl.DataFrame):
        out.print(str(result), soft_wrap=True)
    if not any(True for _ in queries_of(session)):
        raise RunError("the file has no query to run", hint="add a SELECT or a CREATE QUERY")


def _print_where(
    out: Console, session: Session, outcome: Outcome, checkpoint: Path | None, rows: int
) -> None:
    """Where the run was stopped, and what is known of its answers."""
    if outcome.reading is None:
        out.print("stopped before the first batch")
        return
    progress = outcome.reading.progress
    places = ", ".join(f"{s.name} up to {time_text(s.watermark)}" for s in progress.streams)
    out.print(f"stopped after {batches_text(progress.batches)}: {places}", soft_wrap=True)
    if checkpoint is not None:
        out.print(f"the same command goes on from there, with {checkpoint}", soft_wrap=True)
    try:
        print_answers(out, session, rows=rows)
    except RunError:
        return  # a run that has not ended has no answers to show
