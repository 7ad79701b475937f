"""``tidemill ask``: the answer to a SELECT, or to WHY, at one instant; a pipeline goes on."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 — typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.excerpt import excerpt_lines, excerpt_of
from tidemill.cli.terminal import console, reporting_errors
from tidemill.connecting import connect
from tidemill.errors import ParseError
from tidemill.lang.parse import parse_script
from tidemill.lang.statements import Why as WhyStatement
from tidemill.model.time import time_text

if TYPE_CHECKING:
    from rich.console import Console

    from tidemill.model.time import Time
    from tidemill.runtime.one_time import OneTimeAnswer
    from tidemill.runtime.why import Why

__all__ = ["ask"]


def ask(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, help="The checkpoint of a pipeline.")
    ],
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A SELECT, with AS OF or without, or WHY.")
    ],
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
    """Answer a SELECT or WHY once, of one instant. The pipeline goes on; nothing is written."""
    out = console()
    with reporting_errors(), connect(checkpoint=checkpoint, read_only=True) as session:
        time = int(at) if at is not None and at.isdecimal() else at
        if _is_why(query):
            _print_why(out, session.why(query, wait=wait, at=time), as_json=as_json)
            return
        answer = session.ask(query, time, wait)
        if as_json:
            out.print(json.dumps(_told(answer)), soft_wrap=True)
            return
        rows = "1 row" if answer.frame.height == 1 else f"{answer.frame.height:,} rows"
        out.print(
            excerpt_lines(excerpt_of(f"at {time_text(answer.at)}: {rows}", answer.frame), out.width)
        )
        out.print(_known(answer.known, answer.batch), soft_wrap=True)


def _is_why(query: str) -> bool:
    """Whether it is one WHY; what cannot be read is none."""
    try:
        script = parse_script(query)
    except ParseError:
        return False
    return len(script) == 1 and isinstance(script[0][0], WhyStatement)


def _print_why(out: Console, why: Why, *, as_json: bool) -> None:
    if as_json:
        out.print(json.dumps(json.loads(why.json())), soft_wrap=True)
        return
    out.print(f"at {time_text(why.at)}\n{why.tree()}", soft_wrap=True)
    out.print(_known(why.known, why.batch), soft_wrap=True)


def _known(known: Time, batch: int | None) -> str:
    after = "" if batch is None else f", after batch {batch}"
    return f"known up to {time_text(known)}{after}"


def _told(answer: OneTimeAnswer) -> dict[str, object]:
    """An answer as JSON."""
    rows = json.loads(answer.frame.write_json())
    return {"at": answer.at, "known": answer.known, "batch": answer.batch, "rows": rows}
