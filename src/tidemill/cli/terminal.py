"""The terminal: where output goes, and how errors are told."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from tidemill.errors import TidemillError, TidemillWarning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

    from tidemill.session import Result, Session

__all__ = ["can_redraw", "carry_out", "console", "error_console", "read_script", "reporting_errors"]

_PLAIN_WIDTH = 120


def console() -> Console:
    """Where output goes; what is no terminal gets plain lines of a fixed width."""
    _accept_all(sys.stdout)
    # Brackets and colons in people's data mean themselves, not colours and pictures.
    out = Console(highlight=False, markup=False, emoji=False)
    if not out.is_terminal:
        out.width = _PLAIN_WIDTH
    return out


def error_console() -> Console:
    """Where errors and remarks go, after all that was printed before."""
    sys.stdout.flush()
    _accept_all(sys.stderr)
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def can_redraw(out: Console) -> bool:
    """Whether what was written can be replaced: not in a file, nor in a dumb terminal."""
    return out.is_terminal and not out.is_dumb_terminal


def _accept_all(stream: TextIO) -> None:
    """Print a question mark for a character that the terminal does not have, not an error."""
    if isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
        stream.reconfigure(errors="replace")


def read_script(path: Path) -> str:
    """The text of a script, without the mark that some editors put before it.

    Raises:
        typer.BadParameter: It is no text.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"file '{path}' is not text in UTF-8") from error


def carry_out(session: Session, text: str, *, asks: bool = True) -> Result:
    """Carry out the statements of a script; what they are warned of is told on stderr.

    Args:
        session: Where.
        text: The script.
        asks: Whether what it asks once is answered, or checked only.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TidemillWarning)
        result = None
        if asks:
            result = session.sql(text)
        else:
            session.check(text)
    for told in session.warnings:
        error_console().print(f"warning: {told}", style="yellow")
    return result


@contextmanager
def reporting_errors() -> Iterator[None]:
    """An error of the user is told on stderr, without a traceback, and ends with exit code 1."""
    try:
        yield
    except TidemillError as error:
        error_console().print(str(error), style="red")
        raise typer.Exit(1) from None
