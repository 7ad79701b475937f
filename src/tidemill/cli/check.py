"""``tidemill check``: whether the statements of a file are correct, and what they define."""

from __future__ import annotations

from tidemill.catalog.entries import entry_schema
from tidemill.cli.options import Script, UnboundedState  # noqa: TC001 — typer reads them
from tidemill.cli.table import table
from tidemill.cli.terminal import carry_out, console, read_script, reporting_errors
from tidemill.connecting import connect
from tidemill.lang.statements import ObjectKind

__all__ = ["check"]


def check(
    file: Script,
    *,
    unbounded_state: UnboundedState = False,
) -> None:
    """Say whether the statements of a file are correct, and what they define. Nothing is read."""
    out = console()
    with reporting_errors():
        session = connect(unbounded_state=unbounded_state)
        carry_out(session, read_script(file))
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
