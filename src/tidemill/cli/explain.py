"""``tidemill explain``: the plan of every query of a file."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from tidemill.algebra.explain import explain as logical_text
from tidemill.cli.options import Script, TechniqueName  # noqa: TC001 — typer reads them
from tidemill.cli.present import queries_of
from tidemill.cli.terminal import carry_out, console, read_script, reporting_errors
from tidemill.connecting import connect
from tidemill.errors import PlanError
from tidemill.optimizer.explain_physical import explain_physical
from tidemill.optimizer.logical.rewrite import rewrite
from tidemill.optimizer.logical.rules import RULES
from tidemill.optimizer.logical.trace import trace_text
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Planning

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

__all__ = ["explain"]


class _Form(Enum):
    """A form of a plan."""

    LOGICAL = "logical"
    PHYSICAL = "physical"
    TRACE = "trace"


def explain(
    file: Script,
    *,
    logical: Annotated[
        bool, typer.Option("--logical", help="What the query means; the default.")
    ] = False,
    physical: Annotated[
        bool, typer.Option("--physical", help="What is run: operators and exchanges.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="What the optimizer does, step by step.")
    ] = False,
    technique: TechniqueName = Technique.PATTERN,
) -> None:
    """Print the plan of every query of a file. Nothing is read or run."""
    form = _form(logical=logical, physical=physical, trace=trace)
    out = console()
    with reporting_errors():
        # A plan can be looked at whatever it costs, and whatever the local engine does not have.
        session = connect(engine="spark", unbounded_state=True)
        carry_out(session, read_script(file))
        queries = list(queries_of(session))
        if not queries:
            raise PlanError("the file has no query", hint="add a SELECT or a CREATE QUERY")
        planning = Planning(technique=technique)
        texts = (f"-- {query.name}\n{_text(query.plan, form, planning)}" for query in queries)
        out.print("\n\n".join(texts), soft_wrap=True)


def _form(*, logical: bool, physical: bool, trace: bool) -> _Form:
    if logical + physical + trace > 1:
        raise typer.BadParameter("choose one of --logical, --physical and --trace")
    if physical:
        return _Form.PHYSICAL
    return _Form.TRACE if trace else _Form.LOGICAL


def _text(plan: Plan, form: _Form, planning: Planning) -> str:
    match form:
        case _Form.LOGICAL:
            return logical_text(plan)
        case _Form.PHYSICAL:
            return explain_physical(planning.annotated(plan))
        case _Form.TRACE:
            return trace_text(rewrite(plan, RULES).steps)
        case _:
            assert_never(form)
