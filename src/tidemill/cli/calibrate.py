"""``tidemill calibrate``: what operators cost on this machine."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 — typer reads it
from time import perf_counter
from typing import Annotated

import typer

from tidemill.calibration.calibrate import SECONDS, measured
from tidemill.cli.terminal import console, error_console, reporting_errors
from tidemill.errors import PlanError
from tidemill.optimizer.constants import read_constants, write_constants

__all__ = ["calibrate"]


def calibrate(
    *,
    output: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="The file to write; without it they are printed."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, help="After so long nothing is run again.")
    ] = SECONDS,
) -> None:
    """Measure what operators cost on this machine, for the choice between plans."""
    began = perf_counter()
    with reporting_errors():
        if output is not None:
            _refuse_others(output)
        errors = error_console()
        with errors.status("measuring") as status:

            def progress(done: int, runs: int) -> None:
                status.update(f"measuring: {done} of at most {runs} runs")

            text = write_constants(measured(seconds=seconds, progress=progress))
        if output is None:
            console().print(text, end="", soft_wrap=True)
            return
        output.write_text(text, encoding="utf-8")
        took = perf_counter() - began
        console().print(f"{output}: the constants, measured in {took:.0f} s", soft_wrap=True)


def _refuse_others(file: Path) -> None:
    """Refuse to write over what is something else.

    Raises:
        PlanError: The file is there and holds no constants, or it cannot be written there.
    """
    if not file.parent.is_dir():
        raise PlanError(f'there is no directory "{file.parent}"', hint="create it first")
    if not file.exists():
        return
    try:
        read_constants(file.read_text(encoding="utf-8"), f'"{file}"')
    except (PlanError, OSError, UnicodeDecodeError):
        raise PlanError(
            f'"{file}" is there and holds no constants of the cost model',
            hint="name another file, or remove it first",
        ) from None
