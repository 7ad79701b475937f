"""Options and arguments of the commands, each with the text of its help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tidemill.connecting import DEFAULT_ENGINE, ENGINES

__all__ = [
    "DEFAULT",
    "Checkpoint",
    "End",
    "Engine",
    "EngineName",
    "Forever",
    "Master",
    "Once",
    "OptionalScript",
    "Partitions",
    "Rows",
    "Script",
    "Trigger",
    "UnboundedState",
]


class EngineName(StrEnum):
    """Where queries run."""

    LOCAL = "local"
    SPARK = "spark"


assert tuple(EngineName) == ENGINES, "the command line has the engines of connect"

DEFAULT = EngineName(DEFAULT_ENGINE)
"""Where queries run if it is not said."""


# A file that is not there ends the command with exit code 2.
Script = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.sql", exists=True, dir_okay=False, help="The file with the statements."
    ),
]

OptionalScript = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE.sql]",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="The file with the statements; a checkpoint that is there has them.",
    ),
]

Engine = Annotated[EngineName, typer.Option(help="Where queries run; the answers are the same.")]

Master = Annotated[
    str, typer.Option(help="Which Spark, as Spark writes it; '' for what spark-submit says.")
]

Checkpoint = Annotated[
    Path | None,
    typer.Option(
        file_okay=False,
        help="Where statements and state are kept, for a later run to go on.",
    ),
]

Partitions = Annotated[
    int | None, typer.Option(min=1, help="How many partitions state is kept in.")
]

Forever = Annotated[
    bool,
    typer.Option("--forever", help="Process what comes until Ctrl-C."),
]

Once = Annotated[
    bool,
    typer.Option(
        "--once", help="Process what is there; a later run goes on. The default with --checkpoint."
    ),
]

End = Annotated[
    bool,
    typer.Option(
        "--end",
        "--until-end",
        help="Process what is there, and end the streams. The default without --checkpoint.",
    ),
]

Trigger = Annotated[
    float | None,
    typer.Option(min=0, help="With --forever, seconds from one batch to the next; 0 for no pause."),
]

UnboundedState = Annotated[
    bool,
    typer.Option("--unbounded-state", help="Accept queries whose state grows without bound."),
]

Rows = Annotated[int, typer.Option(min=0, help="How many rows of each answer are shown.")]
