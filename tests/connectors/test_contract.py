"""Each connector keeps its contract, and each engine has a reader and a writer for what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from tidemill.connectors import CONNECTORS
from tidemill.connectors.connector import Connector, Engine, Use
from tidemill.connectors.options import Option, default_text, fault
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.masking import is_secret
from tidemill.runtime.connectors import source_place
from tidemill.runtime.files import READERS
from tidemill.runtime.sinks import sinks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.catalog.entries import QueryEntry

SOURCE = Path(tidemill.__file__).parent


def options_of(connector: Connector) -> Iterator[Option]:
    for use in (Use.STREAM, Use.SINK):
        yield from connector.options(use) or ()


each = pytest.mark.parametrize("connector", CONNECTORS, ids=lambda c: c.name)


@each
def test_names_are_words_and_unique(connector: Connector) -> None:
    assert connector.name == connector.name.lower()
    assert [c.name for c in CONNECTORS].count(connector.name) == 1
    for use in Use:
        names = [option.name for option in connector.options(use) or ()]
        assert len(set(names)) == len(names)


@each
def test_everything_is_documented_in_a_sentence_without_a_full_stop(connector: Connector) -> None:
    for text in (connector.documentation, *(o.documentation for o in options_of(connector))):
        assert text
        assert text[0].isupper()
        assert not text.endswith(".")


@each
def test_a_default_is_of_its_type_and_nothing_that_is_required_has_one(
    connector: Connector,
) -> None:
    for option in options_of(connector):
        assert option.default is None or fault(option.type, option.default) is None
        assert not (option.required and option.default is not None)
        assert option.required or default_text(option) or option.positional


@each
def test_the_names_of_secrets_say_so(connector: Connector) -> None:
    assert all(option.secret == is_secret(option.name) for option in options_of(connector))
    assert connector.holds_secrets == connector.passes_options


@each
def test_an_engine_that_has_it_can_read_it(connector: Connector) -> None:
    if connector.source is None:
        return
    place = source_place("s", ConnectorCall(Name(connector.name), ("x",)))
    assert place.kind == connector.name
    is_local = place.kind in (*READERS, "memory")
    assert is_local == (Engine.LOCAL in connector.engines)
    assert is_local != bool(place.format)


@each
def test_an_engine_that_has_it_can_write_it(connector: Connector, tmp_path: Path) -> None:
    if connector.sink is None:
        return
    session = tidemill.connect(engine="spark")
    session.sql("CREATE STREAM s (x BIGINT) SOURCE memory()")
    is_first = any(option.positional for option in connector.sink.options)
    argument = f"'{tmp_path}'" if is_first else ""
    session.sql(f"CREATE QUERY q INTO {connector.name}({argument}) AS SELECT x FROM s")
    entry: QueryEntry = session.catalog.find("q")  # type: ignore[assignment]
    sinks = sinks_of([entry], {str(tmp_path): print})
    assert bool(sinks) == (connector.name != "memory")


def test_each_connector_has_a_file() -> None:
    shared = {"__init__", "check", "connector", "files", "forms", "options", "registry", "table"}
    files = {path.stem for path in (SOURCE / "connectors").glob("*.py")} - shared
    assert files == {"spark_format" if c.name == "spark" else c.name for c in CONNECTORS}


def test_no_other_module_lists_connectors() -> None:
    """Only the tables of readers and writers name them: where a kind is mapped to what does it."""
    tables = {"runtime/files.py", "runtime/file_sink.py", "runtime/sinks.py"}
    tables |= {"runtime/connectors.py", "runtime/callback.py"}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith("connectors/") or name in tables:
            continue
        text = path.read_text(encoding="utf-8")
        listed = [c.name for c in CONNECTORS if f'"{c.name}",' in text or f'("{c.name}"' in text]
        assert len(listed) < 2, (name, listed)


def test_show_and_describe_say_what_the_contract_says() -> None:
    session = tidemill.connect()
    shown = session.sql("SHOW CONNECTORS")
    assert isinstance(shown, pl.DataFrame)
    assert shown["name"].to_list() == [c.name for c in CONNECTORS]
    assert shown.filter(pl.col("name") == "csv").row(0)[:7] == (
        *("csv", "streams, relations", "replayable", "yes", "exactly once"),
        *("local, spark", "tidemill"),
    )
    assert shown.filter(pl.col("name") == "console")["source"].to_list() == [""]
    described = session.sql("describe connector PARQUET")
    assert isinstance(described, pl.DataFrame)
    assert described.columns == ["name", "used", "type", "default", "required", "documentation"]
    assert described.select("name", "used", "default", "required").rows() == [
        ("path", "source", "", "yes"),
        ("files_per_batch", "source", "1", "no"),
        ("settle", "source", "1.0", "no"),
        ("path", "sink", "", "yes"),
        ("replace", "sink", "FALSE", "no"),
        ("form", "sink", "'results'", "no"),
    ]


def test_a_stream_may_be_called_connector() -> None:
    session = tidemill.connect()
    session.sql("CREATE STREAM connector (x BIGINT) SOURCE memory()")
    described = session.sql("DESCRIBE connector")
    assert isinstance(described, pl.DataFrame)
    assert described["column"].to_list() == ["x"]
