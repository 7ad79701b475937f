"""What a statement says about a source or sink is checked when it is created."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from tidemill.connectors import CONNECTORS
from tidemill.connectors.check import Arguments, check, guarantee
from tidemill.connectors.connector import Connector, Engine, Guarantee, Use
from tidemill.connectors.options import Choice, Flag, Number, Option, Text, Value, Whole
from tidemill.errors import BindError
from tidemill.lang.parse import parse_one
from tidemill.lang.statements import ConnectorCall, CreateStream, Name
from tidemill.lang.unparse import unparse


def call(text: str) -> ConnectorCall:
    statement = parse_one(f"CREATE STREAM s (x BIGINT) SOURCE {text}")
    assert isinstance(statement, CreateStream)
    return statement.source


def said(text: str, use: Use = Use.STREAM) -> Arguments:
    return check(call(text), use)


def values(option: Option) -> st.SearchStrategy[Value]:
    """Values that an option takes."""
    match option.type:
        case Text():
            return st.sampled_from(["a", "it's", "é/*"])
        case Flag():
            return st.booleans()
        case Whole(least, _):
            return st.integers(least, least + 5)
        case Number(_, least, _):
            return st.sampled_from([int(least), least + 0.5])
        case Choice(known):
            return st.sampled_from(known)


@st.composite
def calls(draw: st.DrawFn) -> tuple[Connector, Use, ConnectorCall, dict[str, Value]]:
    """A connector that is described rightly, and what is said about it."""
    connector = draw(st.sampled_from(CONNECTORS))
    use = draw(st.sampled_from([use for use in Use if connector.options(use) is not None]))
    options = connector.options(use) or ()
    given = {o.name: draw(values(o)) for o in options if o.required or draw(st.booleans())}
    first = [o.name for o in options if o.positional]
    most = next((i for i, name in enumerate(first) if name not in given), len(first))
    without = draw(st.integers(0, most))
    positional = tuple(given[name] for name in first[:without])
    named = tuple((name, given[name]) for name in draw(st.permutations(list(given)[without:])))
    return connector, use, ConnectorCall(Name(connector.name.upper()), positional, named), given


@given(case=calls())
def test_what_is_said_rightly_is_taken_as_it_was_said(
    case: tuple[Connector, Use, ConnectorCall, dict[str, Value]],
) -> None:
    connector, use, written, given_ = case
    for engine in (None, *connector.engines):
        found = check(written, use, engine=engine)
        assert found.connector is connector
        assert found.given == given_
        assert found.passed == {}


@given(case=calls(), data=st.data())
def test_a_mistake_is_refused_at_its_place(
    case: tuple[Connector, Use, ConnectorCall, dict[str, Value]], data: st.DataObject
) -> None:
    connector, use, written, given_ = case
    if connector.passes_options or not given_:
        return
    statement = parse_one("CREATE STREAM s (x BIGINT) SOURCE c()")
    assert isinstance(statement, CreateStream)
    wrong = data.draw(st.sampled_from(["zzz", *given_]))
    named = (*((n, v) for n, v in given_.items() if n != wrong), (wrong, "\t"))
    text = unparse(
        CreateStream(statement.name, statement.columns, ConnectorCall(written.name, (), named))
    )
    if wrong != "zzz" and any(
        o.name == wrong and isinstance(o.type, Text) for o in connector.options(use) or ()
    ):
        return  # a tab is a string
    again = parse_one(text)
    assert isinstance(again, CreateStream)
    with pytest.raises(BindError) as caught:
        check(again.source, use)
    assert caught.value.span is not None
    place = text[caught.value.span.start : caught.value.span.end]
    assert place == ("zzz" if wrong == "zzz" else "'\t'")
    assert caught.value.hint


def test_formats_of_spark_get_their_options_as_they_were_written() -> None:
    found = said("rate(rowsPerSecond => 50, \"a.b\" => TRUE, form => 'x', format => 'y')")
    assert found.connector.name == "spark"
    assert found.given == {"format": "rate"}
    assert found.passed == {"rowsPerSecond": "50", "a.b": "true", "form": "x", "format": "y"}
    assert "rowsPerSecond" not in repr(found), "a value may be a secret"


def test_a_format_of_spark_can_be_said_in_full() -> None:
    short, long = said("orc('in', a => 1)"), said("spark('orc', 'in', a => 1)")
    assert (short.given, short.passed) == (long.given, long.passed)
    assert said("spark(format => 'parqet')").given == {"format": "parqet"}
    assert said("spark('csv', 'in', sep => ';')").given == {"format": "csv", "path": "in"}


def test_the_form_of_a_sink_is_not_passed_to_spark() -> None:
    found = said("jdbc(url => 'x', form => 'changes')", Use.SINK)
    assert (found.given["form"], found.passed) == ("changes", {"url": "x"})


@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("name", ["parqet", "jsn", "CVS", "memroy", "calback"])
def test_a_mistyped_name_is_refused_everywhere(engine: Engine, name: str) -> None:
    with pytest.raises(BindError, match="no connector") as caught:
        check(call(f"{name}('x')"), Use.STREAM, engine=engine)
    assert "did you mean" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["orc", "text", "avro", "kafka", "rate", "jdbc", "delta", "xml"])
def test_other_names_are_formats_of_spark_and_unknown_to_the_local_engine(name: str) -> None:
    assert check(call(f"{name}()"), Use.STREAM, engine=Engine.SPARK).text("format") == name
    with pytest.raises(BindError, match="the local engine has no connector"):
        check(call(f"{name}()"), Use.STREAM, engine=Engine.LOCAL)


def test_what_is_refused_is_not_registered() -> None:
    session = tidemill.connect()
    with pytest.raises(BindError):
        session.sql("CREATE STREAM s (x BIGINT) SOURCE csv('a', settle => -1)")
    session.sql("CREATE STREAM s (x BIGINT) SOURCE csv('a', settle => 1)")
    with pytest.raises(BindError):
        session.sql("CREATE QUERY q INTO csv('a', form => 5) AS SELECT x FROM s")
    assert session.sql("CREATE QUERY q INTO csv('a') AS SELECT x FROM s") is not None


def test_places_and_repr_are_no_part_of_what_a_connector_is() -> None:
    one, other = call("csv('a',   settle => 1)"), call("csv('a', settle => 1)")
    assert one == other
    # A checkpoint knows a stream by this text.
    told = "ConnectorCall(name=Name(text='csv'), positional=('a',), named=(('settle', 1),))"
    assert repr(one) == repr(other) == told
    assert hash(one) == hash(other)


def test_without_a_sink_an_answer_is_in_this_session() -> None:
    assert guarantee(None) is guarantee(ConnectorCall(Name("MEMORY"))) is Guarantee.SESSION
