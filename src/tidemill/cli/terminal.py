"""The terminal: where output goes, and how errors are told."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from tidemill.errors import TidemillError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["console", "read_script", "reporting_errors"]

_PLAIN_WIDTH = 120


def console() -> Console:
    """Where output goes; what is no terminal gets plain lines of a fixed width."""
    # Brackets and colons in people's data mean themselves, not colours and pictures.
    out = Console(highlight=False, markup=False, emoji=False)
    if not out.is_terminal:
        out.width = _PLAIN_WIDTH
    return out


def read_script(path: Path) -> str:
    """The text of a script.

    Raises:
        typer.BadParameter: It is no text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"file '{path}' is not text in UTF-8") from error


@contextmanager
def reporting_errors() -> Iterator[None]:
    """An error of the user is told on stderr, without a traceback, and ends with exit code 1."""
    try:
        yield
    except TidemillError as error:
        sys.stdout.flush()
        err = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
        err.print(str(error), style="red")
        raise typer.Exit(1) from None
