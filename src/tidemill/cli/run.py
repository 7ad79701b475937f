"""``tidemill run``: run the queries of a file, and show how far they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import typer

from tidemill.cli.answers import print_answers, print_summary
from tidemill.cli.options import (
    DEFAULT,
    Checkpoint,
    End,
    Engine,
    EngineName,
    Forever,
    Master,
    Once,
    OptionalScript,
    Partitions,
    Rows,
    Trigger,
    UnboundedState,
)
from tidemill.cli.planning import takes_planning
from tidemill.cli.present import Glimpses, queries_of
from tidemill.cli.terminal import carry_out, console, read_script, reporting_errors
from tidemill.cli.units import batches_text
from tidemill.cli.watch import watch
from tidemill.connecting import connect
from tidemill.errors import PlanError, RunError
from tidemill.model.time import time_text
from tidemill.planning import Planning  # noqa: TC001 — takes_planning reads it

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import Console

    from tidemill.runtime.progress import Progress
    from tidemill.session import Session

__all__ = ["INTERRUPTED", "run"]

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

_MASTER = "local[*]"

_GOES_ON = "the same command goes on from there, with {}"


@takes_planning
def run(  # noqa: PLR0913 — every option of the command
    file: OptionalScript = None,
    *,
    engine: Engine = DEFAULT,
    master: Master = _MASTER,
    checkpoint: Checkpoint = None,
    partitions: Partitions = None,
    once: Once = False,
    end: End = False,
    forever: Forever = False,
    trigger: Trigger = None,
    unbounded_state: UnboundedState = False,
    rows: Rows = 10,
    planning: Planning,
) -> None:
    """Run the queries of a file and show their progress and the latest rows of their answers.

    A checkpoint knows its queries: without a file, they go on.
    """
    text, out = "" if file is None else read_script(file), console()
    with reporting_errors():
        if once + end + forever > 1:
            raise PlanError("a run is once, to the end or for ever", hint="choose one of them")
        if engine is EngineName.LOCAL:
            _require_spark({"--master": master != _MASTER})
        if file is None and checkpoint is None:
            raise PlanError(
                "there is nothing to run", hint="name a file, or write --checkpoint DIR to go on"
            )
        if once and checkpoint is None:
            raise PlanError(
                "without a checkpoint there is nothing to go on from", hint="add --checkpoint DIR"
            )
        if trigger is not None and not forever:
            raise PlanError("--trigger is for runs without an end", hint="add --forever")
        session = connect(
            engine=engine.value,
            master=master or None,
            checkpoint=checkpoint,
            partitions=partitions,
            planning=planning,
            trigger=trigger or 0,
            unbounded_state=unbounded_state,
        )
        _register(session, text, out)
        goes_on = checkpoint is not None and not end
        answers = Glimpses(session, rows)
        outcome = watch(session, out, answers=answers, forever=forever, end=not goes_on)
        reading = outcome.reading
        if reading is None or (outcome.stopped and not reading.progress.batches):
            out.print("stopped before the first batch")
            raise typer.Exit(INTERRUPTED)
        print_summary(out, reading, answers.places)
        if outcome.stopped:
            _print_where(out, reading.progress, checkpoint)
        elif goes_on:
            out.print(_GOES_ON.format(checkpoint), soft_wrap=True)
        print_answers(out, session, rows)
        if outcome.stopped:
            raise typer.Exit(INTERRUPTED)


def _require_spark(given: Mapping[str, bool]) -> None:
    """Refuse options that only Spark heeds."""
    for option, is_given in given.items():
        if is_given:
            raise PlanError(f"{option} needs Spark", hint="add --engine spark")


def _register(session: Session, text: str, out: Console) -> None:
    """Carry out the statements; what the last one gives is shown, if it is not a query."""
    result = carry_out(session, text)
    if isinstance(result, str | pl.DataFrame):
        out.print(str(result), soft_wrap=True)
    if not any(True for _ in queries_of(session)):
        where, hint = "file", "add a SELECT or a CREATE QUERY"
        if not text:
            where, hint = "checkpoint", "name a file with queries"
        raise RunError(f"the {where} has no query to run", hint=hint)


def _print_where(out: Console, progress: Progress, checkpoint: Path | None) -> None:
    """Where the run was stopped."""
    places = ", ".join(f"{s.name} up to {time_text(s.watermark)}" for s in progress.streams)
    out.print(f"stopped after {batches_text(progress.batches)}: {places}", soft_wrap=True)
    if checkpoint is not None:
        out.print(_GOES_ON.format(checkpoint), soft_wrap=True)
