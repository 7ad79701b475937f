"""``tidemill explain``: the plan of every query of a file."""

from __future__ import annotations

import json
from typing import Annotated, NoReturn

import typer

from tidemill.cli.options import Script  # noqa: TC001 — typer reads it
from tidemill.cli.planning import takes_planning
from tidemill.cli.present import queries_of
from tidemill.cli.terminal import carry_out, console, read_script, reporting_errors
from tidemill.errors import PlanError
from tidemill.lang.statements import ExplainMode
from tidemill.planning import Planning  # noqa: TC001 — takes_planning reads it
from tidemill.runtime.planning import planner_of
from tidemill.session import Session

__all__ = ["explain"]


def _never_run(*_: object) -> NoReturn:
    raise AssertionError("nothing is run here")


@takes_planning
def explain(  # noqa: PLR0913 — every option of the command
    file: Script,
    *,
    logical: Annotated[
        bool, typer.Option("--logical", help="What the query means; the default.")
    ] = False,
    physical: Annotated[
        bool, typer.Option("--physical", help="What is run: operators and exchanges.")
    ] = False,
    stages: Annotated[
        bool, typer.Option("--stages", help="Which operators run where, and what is sent.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="What the optimizer does, step by step.")
    ] = False,
    cost: Annotated[
        bool, typer.Option("--cost", help="What it is expected to cost, operator by operator.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one line a query.")] = False,
    planning: Planning,
) -> None:
    """Print the plan of every query of a file. Nothing is read or run."""
    asked = {
        ExplainMode.LOGICAL: logical,
        ExplainMode.PHYSICAL: physical,
        ExplainMode.STAGES: stages,
        ExplainMode.TRACE: trace,
        ExplainMode.COST: cost,
    }
    modes = [mode for mode, is_asked in asked.items() if is_asked] or [ExplainMode.LOGICAL]
    if len(modes) > 1:
        raise typer.BadParameter(
            "choose one of --logical, --physical, --stages, --trace and --cost"
        )
    out = console()
    with reporting_errors():
        # A plan can be looked at whatever it costs, and whichever engine has what it needs.
        chosen = planning.for_optimizer()
        session = Session(_never_run, planner=planner_of(chosen), unbounded_state=True)
        carry_out(session, read_script(file))
        queries = list(queries_of(session))
        if not queries:
            raise PlanError("the file has no query", hint="add a SELECT or a CREATE QUERY")
        for number, query in enumerate(queries):
            text = session.explain(query.name, modes[0], as_json=as_json)
            if as_json:
                text = json.dumps({"query": query.name, **json.loads(text)})
            title = "" if as_json else f"-- {query.name}\n"
            between = "\n" * (number > 0 and not as_json)
            out.print(f"{between}{title}{text}", soft_wrap=True, markup=False, highlight=False)
