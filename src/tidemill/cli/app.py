"""The command ``tidemill`` and its parts."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from tidemill.cli.ask import ask
from tidemill.cli.calibrate import calibrate
from tidemill.cli.check import check
from tidemill.cli.demo import demo
from tidemill.cli.explain import explain
from tidemill.cli.run import run

__all__ = ["app"]

app = typer.Typer(
    name="tidemill",
    help="Exact continuous SQL queries with sliding windows, on a laptop or on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 — typer calls it so
    if asked:
        typer.echo(f"tidemill {version('tidemill')}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """What stands before a command."""


for command in (run, ask, explain, check, calibrate, demo):
    app.command()(command)
