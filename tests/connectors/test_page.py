"""The reference page of connectors is what the contract says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import golden
from tidemill.connectors import CONNECTORS
from tidemill.connectors.connector import Connector, Engine, Use
from tidemill.connectors.options import Option, default_text, type_text

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "connectors.md"


def connector_table() -> str:
    """One line for each connector."""
    rows: list[tuple[str, ...]] = [
        ("connector", "is", "source of", "positions", "as a sink", "engines")
    ]
    rows.append(("---",) * 6)
    rows += [_connector(connector) for connector in CONNECTORS]
    return _table(rows)


def option_tables() -> str:
    """One table for each connector that has options."""
    return "\n".join(_options(connector) for connector in CONNECTORS)


def _connector(connector: Connector) -> tuple[str, ...]:
    source, sink = connector.source, connector.sink
    return (
        f"`{connector.name}`",
        connector.documentation,
        "" if source is None else "streams, relations" if source.relations else "streams",
        "" if source is None else source.positions.value,
        "" if sink is None else sink.guarantee.value,
        ", ".join(engine.value for engine in Engine if engine in connector.engines),
    )


def _options(connector: Connector) -> str:
    rows: list[tuple[str, ...]] = [
        ("option", "of a", "without its name", "type", "without it", "meaning")
    ]
    rows.append(("---",) * 6)
    for use, what in ((Use.STREAM, "source"), (Use.SINK, "sink")):
        options = connector.options(use) or ()
        first = [option for option in options if option.positional]
        rows += [_option(option, what, first) for option in options]
    others = "\nOther options are passed to Spark as they were written.\n"
    return f"### {connector.name}\n\n{_table(rows)}{others if connector.passes_options else ''}"


def _option(option: Option, what: str, first: list[Option]) -> tuple[str, ...]:
    place = str(first.index(option) + 1) if option in first else ""
    default = default_text(option)
    missing = default if option.default is None else f"`{default}`"
    missing = "an error" if option.required else missing
    return f"`{option.name}`", what, place, type_text(option.type), missing, option.documentation


def _table(rows: list[tuple[str, ...]]) -> str:
    lines = (f"| {' | '.join(cells)} |\n" for cells in rows)
    return re.sub(r"\|  (?=\|)", "| ", "".join(lines))


@pytest.mark.parametrize(
    ("place", "made"), [("connectors", connector_table()), ("options", option_tables())]
)
def test_the_page_says_what_the_contract_says(place: str, made: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    block = re.compile(rf"(?<=<!-- {place} -->\n).*(?=<!-- /{place} -->)", re.DOTALL)
    if golden.rewriting:
        page = block.sub(lambda _: f"\n{made}\n", page)
        PAGE.write_text(page, encoding="utf-8")
    found = block.search(page)
    assert found is not None, f"{PAGE.name} has no place for the {place}"
    assert found[0] == f"\n{made}\n", "pytest --rewrite-golden writes the tables anew"
