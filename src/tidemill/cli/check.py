"""``tidemill check``: whether the statements of a file are correct, and what they define."""

from __future__ import annotations

from tidemill.catalog.entries import entry_schema
from tidemill.cli.options import DEFAULT, Engine, Script, UnboundedState
from tidemill.cli.planning import takes_planning
from tidemill.cli.present import queries_of
from tidemill.cli.table import table
from tidemill.cli.terminal import carry_out, console, read_script, reporting_errors
from tidemill.connecting import connect
from tidemill.lang.statements import ObjectKind
from tidemill.planning import Planning  # noqa: TC001 — takes_planning reads it
from tidemill.runtime.sinks import refuse_shared_places

__all__ = ["check"]


@takes_planning
def check(
    file: Script,
    *,
    engine: Engine = DEFAULT,
    unbounded_state: UnboundedState = False,
    planning: Planning,
) -> None:
    """Say whether the statements of a file can run, and what they define. Nothing is read."""
    out = console()
    with reporting_errors():
        session = connect(engine=engine.value, planning=planning, unbounded_state=unbounded_state)
        carry_out(session, read_script(file), asks=False)
        refuse_shared_places(queries_of(session))
        for query in queries_of(session):
            session.planned(query.name)
        defined = table("defines", "name")
        defined.add_column("columns", overflow="fold")
        for kind in ObjectKind:
            for entry in session.catalog.entries(kind):
                columns = ", ".join(f"{field.name} {field.type}" for field in entry_schema(entry))
                defined.add_row(kind.value.lower(), entry.name, columns)
        out.print(defined)
        queries = sum(1 for _ in session.catalog.entries(ObjectKind.QUERY))
        what = "1 query" if queries == 1 else f"{queries} queries"
        out.print(f"{file}: ok, {what}", soft_wrap=True)
