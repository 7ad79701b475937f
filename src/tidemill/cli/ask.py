"""``tidemill ask``: the answer to a SELECT at one instant, while a pipeline goes on."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 — typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.excerpt import excerpt_lines, excerpt_of
from tidemill.cli.terminal import console, reporting_errors
from tidemill.connecting import connect
from tidemill.model.time import time_text

if TYPE_CHECKING:
    from tidemill.runtime.one_time import OneTimeAnswer

__all__ = ["ask"]


def ask(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, help="The checkpoint of a pipeline.")
    ],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A SELECT, with AS OF or without.")],
    *,
    at: Annotated[
        str | None,
        typer.Option(
            help="The instant: microseconds since 1970, or a time such as 2026-03-01T12:00:00."
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(min=0, help="For how many seconds to wait until the instant is known."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As one line of JSON.")] = False,
) -> None:
    """Answer a SELECT once, of one instant. The pipeline goes on; nothing is written."""
    out = console()
    with reporting_errors(), connect(checkpoint=checkpoint, read_only=True) as session:
        time = int(at) if at is not None and at.isdecimal() else at
        answer = session.ask(query, time, wait)
        if as_json:
            out.print(json.dumps(_told(answer)), soft_wrap=True)
            return
        batch = "" if answer.batch is None else f", after batch {answer.batch}"
        rows = "1 row" if answer.frame.height == 1 else f"{answer.frame.height:,} rows"
        known = f"known up to {time_text(answer.known)}{batch}"
        out.print(
            excerpt_lines(excerpt_of(f"at {time_text(answer.at)}: {rows}", answer.frame), out.width)
        )
        out.print(known, soft_wrap=True)


def _told(answer: OneTimeAnswer) -> dict[str, object]:
    """An answer as JSON."""
    rows = json.loads(answer.frame.write_json())
    return {"at": answer.at, "known": answer.known, "batch": answer.batch, "rows": rows}
