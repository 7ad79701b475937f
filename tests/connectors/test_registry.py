"""Connectors of other packages: found by their entry points, loaded when they are used."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

import tidemill
from connectors import package as package_
from tidemill.cli.app import app
from tidemill.connectors.registry import installed
from tidemill.errors import BindError, RunError
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.runtime.connectors import source_place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COUNTING = """
import polars as pl
from tidemill.connectors.connector import (
    Connector, Engine, Guarantee, Positions, SinkSide, SourceSide,
)
from tidemill.connectors.forms import FORM
from tidemill.connectors.options import Option, Text, Whole

TAKEN = []

def read(given):
    for start in range(0, given["rows"], 2):
        if start == 6:
            raise OSError("the line is dead")
        yield pl.DataFrame({"n": list(range(start, min(start + 2, given["rows"])))})

def opened(given):
    def take(frame, batch):
        if given["label"] == "broken":
            raise OSError("the line is dead")
        TAKEN.append((given["label"], batch, frame.rows()))
    return take

COUNTING = Connector(
    "counting",
    "Numbers from 0 on",
    SourceSide((Option("rows", Whole(), "How many", required=True, positional=True),),
               Positions.REPLAYABLE, read=read),
    SinkSide((Option("label", Text(), "What is noted", required=True, positional=True), FORM),
             Guarantee.AT_LEAST_ONCE, open=opened),
    frozenset({Engine.LOCAL}),
)
TEXT = "no connector"
OTHER_NAME = Connector("other", "Another", sink=COUNTING.sink, engines=COUNTING.engines)
NOTHING = Connector("nothing", "Neither")
UNREAD = Connector("unread", "No reader", SourceSide((), Positions.NONE))
OPEN_SECRET = Connector(
    "open_secret", "A secret that is shown",
    sink=SinkSide((Option("password", Text(), "It"),), Guarantee.AT_LEAST_ONCE, open=opened),
)
NAMELESS_SECRET = Connector(
    "nameless", "A secret whose name is not written",
    sink=SinkSide((Option("password", Text(), "It", positional=True, secret=True),),
                  Guarantee.AT_LEAST_ONCE, open=opened),
)
def sink(name, option, guarantee=Guarantee.AT_LEAST_ONCE, engines=COUNTING.engines):
    return Connector(name, "A sink", sink=SinkSide((option,), guarantee, open=opened),
                     engines=engines)

LABEL = Option("label", Text(), "It")
KEPT = sink("kept", LABEL, Guarantee.SESSION)
NOWHERE = sink("nowhere", LABEL, engines=frozenset())
OWN_FORM = sink("own_form", Option("form", Text(), "It"))
WRONG_DEFAULT = sink("wrong_default", Option("rows", Whole(), "It", default="many"))
NO_DEFAULT = sink("no_default", Option("rows", Whole(), "It", default=1, required=True))
UNREAD_RELATION = Connector(
    "unread_relation", "A format of Spark's as a relation",
    SourceSide((), Positions.NONE, format="rate"), engines=frozenset({Engine.SPARK}),
)
def logged_in(given):
    TAKEN.append(dict(given))
    if given["at"] == "open":
        raise OSError("cannot log in with " + given["password"])
    def take(frame, batch):
        raise OSError("cannot log in with " + given["password"])
    return take

def with_password(given):
    if given["at"] == "read":
        raise OSError("cannot log in with " + given["password"])
    yield pl.DataFrame({"n": [given["rows"]]})

WITH_SECRET = (
    Option("at", Text(), "Where it fails", default="nowhere"),
    Option("rows", Whole(), "A number", default=7),
    Option("password", Text(), "It", secret=True),
)
SECRET = Connector(
    "secret", "What needs a password",
    SourceSide(WITH_SECRET, Positions.NONE, read=with_password),
    SinkSide(WITH_SECRET, Guarantee.AT_LEAST_ONCE, open=logged_in),
    frozenset({Engine.LOCAL}), passes_options=True,
)
ON_SPARK = Connector(
    "rates", "The rate source of Spark's, with options that are checked",
    SourceSide((Option("rowsPerSecond", Whole(), "How many rows come in a second", default=1),),
               Positions.REPLAYABLE, relations=False, format="rate"),
    engines=frozenset({Engine.SPARK}),
)
PASSING = Connector(
    "passing", "The rate source of Spark's, with all of its options", ON_SPARK.source,
    engines=ON_SPARK.engines, passes_options=True,
)
"""


def install(place: Path, package: str, entries: str, code: str = COUNTING) -> None:
    package_.install(place, package, entries, code)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where packages are installed to, for one test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    installed.cache_clear()
    yield tmp_path
    installed.cache_clear()
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(tmp_path / f"{name}.py"):
            del sys.modules[name]


def failure(source: str, engine: str = "local") -> str:
    with pytest.raises(BindError) as caught:
        tidemill.connect(engine=engine).sql(f"CREATE STREAM s (n BIGINT) SOURCE {source}")
    assert caught.value.span is not None
    return str(caught.value)


def test_an_installed_connector_is_read_and_written_by_the_local_engine(place: Path) -> None:
    install(place, "shop_counting", "counting = shop_counting:COUNTING")
    session = tidemill.connect()
    session.sql("CREATE STREAM s (n BIGINT) SOURCE Counting(5)")
    session.sql("CREATE RELATION r (n INTEGER) SOURCE counting(rows => 2)")
    numbers = session.sql("SELECT n FROM s")
    session.sql("CREATE QUERY few INTO counting('few') AS SELECT s.n FROM s, r WHERE s.n = r.n")
    assert "shop_counting" in sys.modules
    session.run()
    assert isinstance(numbers, tidemill.Query)
    assert numbers.results()["n"].to_list() == [0, 1, 2, 3, 4]
    taken = sys.modules["shop_counting"].TAKEN
    assert [label for label, _, _ in taken] == ["few"]
    assert [row[0] for row in taken[0][2]] == [0, 1]
    shown = session.sql("SHOW QUERIES")
    assert isinstance(shown, pl.DataFrame)
    assert "at least once" in shown["guarantee"].to_list()


def test_its_options_are_checked_at_create(place: Path) -> None:
    install(place, "shop_checked", "counting = shop_checked:COUNTING")
    text = failure("counting(0)")
    assert 'option "rows" must be a whole number, at least 1' in text
    assert "^" in text
    assert 'hint: did you mean "counting"?' in failure("conting(1)")
    assert 'Spark has no connector "counting"' in failure("counting(1)", "spark")
    described = tidemill.connect().sql("DESCRIBE CONNECTOR counting")
    assert isinstance(described, pl.DataFrame)
    assert described["name"].to_list() == ["rows", "label", "form"]


def test_nothing_is_loaded_before_it_is_used(place: Path) -> None:
    install(place, "shop_lazy", "counting = shop_lazy:COUNTING", code="raise OSError('broken')")
    tidemill.connect().sql("CREATE STREAM s (n BIGINT) SOURCE memory()")
    assert "shop_lazy" not in sys.modules


def test_a_connector_that_cannot_be_loaded_names_its_package(place: Path) -> None:
    install(place, "shop_broken", "counting = shop_broken:X", code="import no_such_module_here")
    text = failure("counting(1)")
    assert 'connector "counting" of package "shop_broken" cannot be used: ModuleNotFound' in text
    assert "hint: install the package again" in text
    shown = tidemill.connect().sql("SHOW CONNECTORS")
    assert isinstance(shown, pl.DataFrame)
    name, *_, package, told = shown.row(-1)
    assert (name, package) == ("counting", "shop_broken")
    assert "cannot be used" in told


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("text = {}:TEXT", '"{}:TEXT" is no Connector'),
        ("counting = {}:MISSING", "AttributeError"),
        ("one = {}:OTHER_NAME", '"{}:OTHER_NAME" is called "other"'),
        ("nothing = {}:NOTHING", "it is neither a source nor a sink"),
        ("unread = {}:UNREAD", "does not say how to read it"),
        ("unread_relation = {}:UNREAD_RELATION", "relations can be read from it, but"),
        ("kept = {}:KEPT", "nothing would be written"),
        ("nowhere = {}:NOWHERE", "no engine has it"),
        ("own_form = {}:OWN_FORM", 'option "form" of a sink must be FORM'),
        ("wrong_default = {}:WRONG_DEFAULT", 'the default of option "rows" must be a whole number'),
        ("no_default = {}:NO_DEFAULT", 'option "rows" must be given, so it has no default'),
        ("nameless = {}:NAMELESS_SECRET", 'option "password" is secret, so its name must stand'),
        ("open_secret = {}:OPEN_SECRET", 'option "password" must be secret'),
    ],
)
def test_a_connector_that_breaks_the_contract_is_refused(
    place: Path, entry: str, told: str
) -> None:
    package = f"shop_{abs(hash(entry))}"
    install(place, package, entry.format(package))
    assert told.format(package) in failure(f"{entry.split(maxsplit=1)[0]}(1)")


def test_a_name_of_ours_cannot_be_taken(place: Path) -> None:
    install(place, "shop_clash", "Parquet = shop_clash:COUNTING")
    text = failure("parquet('x')")
    assert 'package "shop_clash" has a connector "parquet", which is a name of Tidemill\'s' in text
    tidemill.connect().sql("CREATE STREAM s (n BIGINT) SOURCE csv('x')")


def test_two_packages_cannot_have_one_name(place: Path) -> None:
    install(place, "shop_first", "counting = shop_first:COUNTING")
    install(place, "shop_second", "counting = shop_second:COUNTING")
    text = failure("counting(1)")
    assert 'packages "shop_first" and "shop_second" all have a connector "counting"' in text


def test_a_source_and_a_sink_that_fail_are_named(place: Path) -> None:
    install(place, "shop_failing", "counting = shop_failing:COUNTING")
    session = tidemill.connect()
    session.sql("CREATE STREAM s (n BIGINT) SOURCE counting(9)")
    session.sql("SELECT n FROM s")
    with pytest.raises(RunError, match='connector "counting", the source of "s", failed: OSError'):
        session.run()
    again = tidemill.connect()
    again.sql("CREATE STREAM s (n BIGINT) SOURCE counting(3)")
    again.sql("CREATE QUERY q INTO counting('broken') AS SELECT n FROM s")
    with pytest.raises(RunError, match='connector "counting" of query "q" failed in batch 0'):
        again.run()


def test_a_connector_can_be_a_format_of_spark_with_options_that_are_checked(place: Path) -> None:
    install(place, "shop_spark", "rates = shop_spark:ON_SPARK")
    assert 'the local engine has no connector "rates"' in failure("rates()")
    assert 'did you mean "rowsPerSecond"?' in failure("rates(rowPerSecond => 5)", "spark")
    found = source_place("s", ConnectorCall(Name("rates"), (), (("rowsPerSecond", 5),)))
    assert (found.kind, found.format, found.options) == ("rates", "rate", {"rowsPerSecond": "5"})


def test_options_that_are_not_given_have_their_defaults(place: Path) -> None:
    install(place, "shop_defaults", "secret = shop_defaults:SECRET\nrates = shop_defaults:ON_SPARK")
    session = tidemill.connect()
    session.sql("CREATE STREAM s (n BIGINT) SOURCE secret()")
    numbers = session.query("SELECT n FROM s")
    session.run()
    assert numbers.results()["n"].to_list() == [7]
    found = source_place("s", ConnectorCall(Name("rates")))
    assert found.options == {"rowsPerSecond": "1"}


def test_options_that_are_passed_on_arrive(place: Path) -> None:
    install(place, "shop_passing", "secret = shop_passing:SECRET\npassing = shop_passing:PASSING")
    session = tidemill.connect()
    session.sql("CREATE STREAM s (n BIGINT) SOURCE secret()")
    session.sql(
        "CREATE QUERY q INTO secret(at => 'open', password => 'x', more => 5) AS SELECT n FROM s"
    )
    with pytest.raises(RunError):
        session.run()
    (given,) = sys.modules["shop_passing"].TAKEN
    assert given == {"at": "open", "rows": 7, "password": "x", "more": "5"}
    found = source_place("s", ConnectorCall(Name("passing"), (), (("rampUpTime", 5),)))
    assert found.options == {"rowsPerSecond": "1", "rampUpTime": "5"}


@pytest.mark.parametrize(
    ("source", "sink", "told"),
    [
        ("read", "nowhere", 'connector "secret", the source of "s", failed: OSError'),
        ("nowhere", "open", 'connector "secret", the sink of "q", cannot be opened: OSError'),
        ("nowhere", "take", 'connector "secret" of query "q" failed in batch 0: OSError'),
    ],
)
def test_a_secret_is_not_told_by_the_code_of_a_package(
    place: Path, source: str, sink: str, told: str
) -> None:
    package = f"shop_secret_{source}_{sink}"
    install(place, package, f"secret = {package}:SECRET")
    session = tidemill.connect()
    options = "at => '{}', password => 'moonlight'"
    session.sql(f"CREATE STREAM s (n BIGINT) SOURCE secret({options.format(source)})")
    session.sql(f"CREATE QUERY q INTO secret({options.format(sink)}) AS SELECT n FROM s")
    with pytest.raises(RunError) as caught:
        session.run()
    assert f"{told}: cannot log in with ***" in str(caught.value)
    assert "moonlight" not in "".join(traceback.format_exception(caught.value))


def test_plans_of_queries_that_only_one_engine_has_can_be_looked_at(place: Path) -> None:
    install(place, "shop_explained", "counting = shop_explained:COUNTING")
    script = place / "numbers.sql"
    script.write_text(
        "CREATE STREAM s (n BIGINT) SOURCE counting(5); CREATE STREAM t (n BIGINT) SOURCE rate();"
        "SELECT n FROM s; SELECT n FROM t;",
        encoding="utf-8",
    )
    result = CliRunner().invoke(app, ["explain", str(script)])
    assert result.exit_code == 0, result.output
