"""``tidemill explain``: the plan of every query of a file."""

from __future__ import annotations

from typing import Annotated

import typer

from tidemill.cli.options import Script, TechniqueName  # noqa: TC001 — typer reads them
from tidemill.cli.present import queries_of
from tidemill.cli.terminal import carry_out, console, read_script, reporting_errors
from tidemill.connecting import connect
from tidemill.errors import PlanError
from tidemill.lang.statements import ExplainMode
from tidemill.optimizer.explain.planned import explain_json, explain_planned
from tidemill.optimizer.physical.techniques import Technique

__all__ = ["explain"]


def explain(  # noqa: PLR0913 — every option has a name and a default
    file: Script,
    *,
    logical: Annotated[
        bool, typer.Option("--logical", help="What the query means; the default.")
    ] = False,
    physical: Annotated[
        bool, typer.Option("--physical", help="What is run: operators and exchanges.")
    ] = False,
    stages: Annotated[
        bool, typer.Option("--stages", help="What is done in which stage, and where rows go.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="What the optimizer does, step by step.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one object a query.")] = False,
    technique: TechniqueName = Technique.PATTERN,
) -> None:
    """Print the plan of every query of a file. Nothing is read or run."""
    mode = _mode(logical=logical, physical=physical, stages=stages, trace=trace)
    out = console()
    with reporting_errors():
        # A plan can be looked at, whatever it costs.
        session = connect(unbounded_state=True, technique=technique.value)
        carry_out(session, read_script(file))
        queries = list(queries_of(session))
        if not queries:
            raise PlanError("the file has no query", hint="add a SELECT or a CREATE QUERY")
        planned = {query.name: session.planned(query.name) for query in queries}
        if as_json:
            texts = [explain_json(mode, made) for made in planned.values()]
        else:
            texts = [f"-- {n}\n{explain_planned(mode, made)}" for n, made in planned.items()]
        out.print("\n\n".join(texts), soft_wrap=True, markup=False, highlight=False)


def _mode(*, logical: bool, physical: bool, stages: bool, trace: bool) -> ExplainMode:
    if logical + physical + stages + trace > 1:
        raise typer.BadParameter("choose one of --logical, --physical, --stages and --trace")
    if physical:
        return ExplainMode.PHYSICAL
    if stages:
        return ExplainMode.STAGES
    return ExplainMode.TRACE if trace else ExplainMode.LOGICAL
