"""env('NAME'): what is in the environment is looked up where it is used, and shown nowhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tidemill
from tidemill.catalog.codec import read_stream_entry, write_stream_entry
from tidemill.catalog.entries import StreamEntry
from tidemill.connectors.check import arguments_of, check, refuse_literal_secrets
from tidemill.connectors.connector import Use
from tidemill.errors import BindError, ParseError, RunError
from tidemill.lang.parse import parse_one
from tidemill.lang.statements import ConnectorCall, CreateStream, Environment, Name
from tidemill.lang.unparse import unparse

TEXT = "CREATE STREAM s (x BIGINT) SOURCE kafka(\"kafka.jaas\" => env('JAAS'), topic => 't')"


def call(text: str) -> ConnectorCall:
    statement = parse_one(f"CREATE STREAM s (x BIGINT) SOURCE {text}")
    assert isinstance(statement, CreateStream)
    return statement.source


def test_it_is_a_value_of_its_own_kind() -> None:
    statement = parse_one(TEXT)
    assert isinstance(statement, CreateStream)
    assert statement.source == ConnectorCall(
        Name("kafka"), (), (("kafka.jaas", Environment("JAAS")), ("topic", "t"))
    )
    assert unparse(statement) == TEXT
    assert call("csv(env('it''s'))").positional == (Environment("it's"),)


@pytest.mark.parametrize("text", ["env()", "env('')", "env('a=b')", "env(5)", "env('A'", "env"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        call(f"csv({text})")


def test_it_is_looked_up_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    source = call("kafka(\"kafka.jaas\" => env('JAAS'), path => env('WHERE'))")
    monkeypatch.setenv("JAAS", "moonlight")
    monkeypatch.setenv("WHERE", "here")
    said = arguments_of(source, Use.STREAM)
    assert (said.passed, said.text("path")) == ({"kafka.jaas": "moonlight"}, "here")
    monkeypatch.setenv("JAAS", "sunlight")
    assert arguments_of(source, Use.STREAM).passed == {"kafka.jaas": "sunlight"}
    for value in ("", None):
        monkeypatch.setenv("JAAS", "") if value == "" else monkeypatch.delenv("JAAS")
        with pytest.raises(BindError, match='variable "JAAS" is not set') as caught:
            check(source, Use.STREAM)
        assert caught.value.span is not None
        assert caught.value.hint == "set JAAS before this process is started"
        with pytest.raises(RunError, match='variable "JAAS" is not set'):
            arguments_of(source, Use.STREAM)
    assert check(source, Use.STREAM, looks_up=False).passed == {"kafka.jaas": "env('JAAS')"}


def test_only_strings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("N", "5")
    with pytest.raises(BindError, match="must be a whole number, at least 1, and what is in"):
        check(call("csv('in', files_per_batch => env('N'))"), Use.STREAM)


def test_its_value_is_a_secret_and_its_name_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAAS", "moonlight")
    session = tidemill.connect(engine="spark")
    session.sql(TEXT)
    assert session.catalog.secrets() == {"moonlight"}
    shown = str(session.sql("SHOW STREAMS").to_dict(as_series=False))  # type: ignore[union-attr]
    entry = session.catalog.find("s")
    assert isinstance(entry, StreamEntry)
    for text in (shown, repr(entry), repr(session.catalog)):
        assert "env('JAAS')" in text
        assert "moonlight" not in text
    assert "moonlight" not in str(write_stream_entry(entry))
    assert read_stream_entry(write_stream_entry(entry)) == replace(entry, source=entry.source)


def test_a_statement_without_its_variable_is_refused_and_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("JAAS", raising=False)
    with pytest.raises(BindError) as caught:
        tidemill.connect(engine="spark").sql(TEXT)
    assert str(caught.value).splitlines()[1] == f"   1 | {TEXT}"


@pytest.mark.parametrize(
    "text",
    [
        "kafka(password => 'moonlight')",
        "jdbc(url => 'jdbc:x://ann:moonlight@host/db')",
        "spark('jdbc', 'x://ann:moonlight@host')",
    ],
)
def test_a_secret_in_a_statement_is_not_to_be_kept(text: str) -> None:
    with pytest.raises(BindError, match="holds a secret") as caught:
        refuse_literal_secrets(call(text))
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("write env('NAME') for it")
    assert "moonlight" not in str(caught.value)


def test_what_is_no_secret_is_kept() -> None:
    refuse_literal_secrets(call("kafka(password => env('PASSWORD'), topic => 'token')"))
