"""``tidemill demo``: five queries over an auction site, and how their answers are checked."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.answers import print_answers, print_summary
from tidemill.cli.options import DEFAULT, Engine, EngineName
from tidemill.cli.present import Glimpses
from tidemill.cli.run import INTERRUPTED
from tidemill.cli.terminal import console, reporting_errors
from tidemill.cli.watch import watch
from tidemill.connecting import connect
from tidemill.demo.checks import at_one_instant, same_answers
from tidemill.demo.nexmark import demo_site
from tidemill.demo.questions import QUESTIONS, script
from tidemill.demo.site import declarations, write_site

if TYPE_CHECKING:
    from rich.console import Console

    from tidemill.demo.checks import Check
    from tidemill.demo.nexmark import Site
    from tidemill.session import Session

__all__ = ["demo"]

_FILES = 6
_ROWS = 5


def demo(
    *,
    engine: Engine = DEFAULT,
    events: Annotated[int, typer.Option(min=50, help="How many events there are.")] = 60_000,
    seed: Annotated[int, typer.Option(min=0, help="Which random numbers.")] = 1,
) -> None:
    """Run five queries over a generated auction site, show the answers, and check them."""
    out = console()
    site = demo_site(events, seed)
    with reporting_errors(), TemporaryDirectory(prefix="tidemill-demo-") as directory:
        place = Path(directory)
        write_site(site, place, files=_FILES)
        _introduce(out, site, engine)
        session = _registered(site, place, engine=engine)
        answers = Glimpses(session, _ROWS)
        outcome = watch(session, out, answers=answers)
        if outcome.stopped or outcome.reading is None:
            out.print("stopped")
            raise typer.Exit(INTERRUPTED)
        print_summary(out, outcome.reading, answers.places)
        print_answers(out, session, _ROWS)
        checks = [_engines(session, site, place, engine), at_one_instant(session, site, place)]
        if not _print_checks(out, checks):
            raise typer.Exit(1)


def _introduce(out: Console, site: Site, engine: EngineName) -> None:
    streams = site.streams()
    people, auctions, bids = (streams[name].height for name in ("person", "auction", "bid"))
    out.print(
        f"An auction site: {people:,} people register, {auctions:,} auctions open, {bids:,} bids"
        f" are made. Five questions, asked at once and answered for every instant, on"
        f" {engine.value}:\n"
    )
    for question in QUESTIONS:
        out.print(f"  {question.name:<15} {question.says}", soft_wrap=True)
    out.print()


def _registered(
    site: Site,
    place: Path,
    *,
    engine: EngineName,
    partitions: int | None = None,
    optimize: bool = True,
) -> Session:
    session = connect(engine=engine.value, partitions=partitions, optimize=optimize)
    session.sql(declarations(site, place))
    session.sql(script())
    return session


def _engines(session: Session, site: Site, place: Path, engine: EngineName) -> Check:
    """Compare with the local engine; if that is what ran, with other plans and partitions."""
    if engine is EngineName.SPARK:
        other = _registered(site, place, engine=EngineName.LOCAL)
        what = "the local engine gives the same rows, valid from and until the same instants"
    else:
        other = _registered(site, place, engine=EngineName.LOCAL, partitions=3, optimize=False)
        what = "in 3 partitions and not optimized, the same rows come out, valid as long"
    other.run()
    return same_answers(session, other, what=what)


def _print_checks(out: Console, checks: list[Check]) -> bool:
    """How the answers were checked; whether all agree."""
    out.print("\nHow these answers were checked:")
    for check in checks:
        if check.differing:
            verdict, style, found = "differs", "red", f": {', '.join(check.differing)}"
        else:
            verdict, style, found = "agrees ", "green", f" ({len(QUESTIONS)} of {len(QUESTIONS)})"
        out.print(f"  {verdict}", style=style, end="")
        out.print(f" {check.what}{found}", soft_wrap=True)
    return not any(check.differing for check in checks)
