"""What people write is taken as they mean it, or they are told: frames, instants, settings."""

from __future__ import annotations

import math
import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tidemill
from tidemill.cli.app import app
from tidemill.errors import BindError, ParseError, PlanError, RunError, TidemillWarning
from tidemill.model.time import to_instant
from tidemill.runtime.console import cell_text
from tidemill.runtime.writing import write_csv, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill.runtime.frames import Frame

STREAM = "CREATE STREAM t (a BIGINT, v VARCHAR, at TIMESTAMP) SOURCE memory('t') ORDERED BY at"
NUMBERED = "CREATE STREAM n (a BIGINT, x DOUBLE, at BIGINT) SOURCE memory('n') ORDERED BY at"
ARRIVING = "CREATE STREAM r (a BIGINT) SOURCE memory('n')"
NOON = datetime(2026, 3, 1, 12)  # noqa: DTZ001 — UTC


def answer(frame: Frame) -> list[tuple[object, ...]]:
    session = tidemill.connect()
    session.sql(STREAM)
    session.put("t", frame)
    query = session.sql("SELECT a, v, at FROM t [NOW]")
    session.run()
    assert isinstance(query, tidemill.Query)
    return [row[:3] for row in query.results().rows()]


COLUMNS = {"a": [1, 2], "v": ["x", None], "at": [NOON, NOON + timedelta(microseconds=1)]}
ROWS = list(zip(*COLUMNS.values(), strict=True))


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame(COLUMNS),
        pl.LazyFrame(COLUMNS),
        pd.DataFrame(COLUMNS, index=["one", "two"]),
        pd.DataFrame(COLUMNS).convert_dtypes(),
        pa.table(COLUMNS),
        pa.table(COLUMNS).to_batches()[0],
    ],
    ids=["polars", "lazy", "pandas", "pandas with types of its own", "arrow", "batch"],
)
def test_a_frame_of_any_library_is_taken(frame: Frame) -> None:
    assert answer(frame) == ROWS


def test_a_missing_value_of_pandas_is_null() -> None:
    frame = pd.DataFrame({**COLUMNS, "a": [1, math.nan]})
    assert [row[0] for row in answer(frame)] == [1, None]


@pytest.mark.parametrize(
    "value", [{"a": [1]}, [(1,)], None, 5, pl.Series([1]), pd.Series([1]), "t.csv"]
)
def test_what_is_no_frame_is_refused(value: object) -> None:
    with pytest.raises(RunError, match='the rows of "t" must be a frame, not a ') as caught:
        tidemill.connect().put("t", value)  # type: ignore[arg-type]
    assert caught.value.hint is not None


def test_a_column_of_many_types_is_refused() -> None:
    with pytest.raises(RunError, match='the rows of "t" cannot be taken'):
        tidemill.connect().put("t", pd.DataFrame({"a": [1, "x", (2,)]}))


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_frame_is_kept_as_it_was(library: str) -> None:
    session = tidemill.connect()
    session.sql(NUMBERED)
    columns = {"a": [1, 2], "x": [0.5, 1.5], "at": [1, 2]}
    frame = pl.DataFrame(columns) if library == "polars" else pd.DataFrame(columns)
    session.put("n", frame)
    if isinstance(frame, pl.DataFrame):
        frame[0, "x"] = 9.0
    else:
        frame.loc[0, "x"] = 9.0
        frame["x"].to_numpy()[:] = 9.0
    query = session.sql("SELECT x FROM n [NOW]")
    session.run()
    assert isinstance(query, tidemill.Query)
    assert query.results()["x"].to_list() == [0.5, 1.5]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, 5),
        (-5, -5),
        (NOON, 1_772_366_400_000_000),
        (NOON.replace(tzinfo=UTC), 1_772_366_400_000_000),
        (NOON.replace(tzinfo=timezone(timedelta(hours=2))), 1_772_359_200_000_000),
        (NOON.replace(microsecond=7), 1_772_366_400_000_007),
        (date(2026, 3, 1), 1_772_323_200_000_000),
        ("2026-03-01T12:00:00", 1_772_366_400_000_000),
        ("2026-03-01 12:00:00.000007", 1_772_366_400_000_007),
        ("2026-03-01T12:00:00Z", 1_772_366_400_000_000),
        ("2026-03-01T14:00+02:00", 1_772_366_400_000_000),
        ("2026-03-01", 1_772_323_200_000_000),
        (pd.Timestamp("2026-03-01T12:00:00"), 1_772_366_400_000_000),
    ],
)
def test_an_instant_is_taken(given: object, expected: int) -> None:
    assert to_instant(given) == expected


@pytest.mark.parametrize(
    "given",
    [5.0, True, None, "noon", "", "2026-02-30", "03/01/2026", "5", "2026-03-01T12:00:00.1234567"],
)
def test_what_is_no_instant_is_refused(given: object) -> None:
    with pytest.raises(RunError, match="is no instant") as caught:
        to_instant(given)
    assert "'2026-03-01T12:00:00'" in str(caught.value.hint)


def test_a_snapshot_takes_a_text() -> None:
    session = tidemill.connect()
    session.sql(STREAM)
    session.put("t", pl.DataFrame(COLUMNS))
    query = session.sql("SELECT a FROM t [RANGE 1 MINUTE]")
    session.run()
    assert isinstance(query, tidemill.Query)
    assert query.snapshot("2026-03-01T12:00:00").rows() == [(1,)]
    with pytest.raises(RunError, match=r"1\.5 is no instant"):
        query.snapshot(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "setting",
    [
        {"stages": 2},
        {"trigger": 1.0},
        {"memory": "8g"},
        {"master": "spark://host:7077"},
        {"master": None},
    ],
)
def test_a_setting_of_spark_is_refused_by_the_local_engine(setting: dict[str, object]) -> None:
    (name,) = setting
    with pytest.raises(PlanError, match=f"the local engine has no {name}") as caught:
        tidemill.connect(**setting)  # type: ignore[arg-type]
    assert caught.value.hint == f'write engine="spark", or leave {name} out'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT a FROM t [RANGE 300]", "RANGE 300 without a unit means 300 microseconds"),
        ("SELECT a FROM t [RANGE 10 SECONDS SLIDE 5]", "RANGE 10000000 without a unit"),
        ("SELECT a FROM t [SESSION 5]", "SESSION 5 without a unit means 5 microseconds"),
        ("EXPLAIN SELECT a FROM t [RANGE 300]", "RANGE 300 without a unit"),
        ("SELECT COUNT(*) AS c FROM n", 'an aggregate over stream "n" without a window'),
        ("SELECT a, MAX(x) AS m FROM n GROUP BY a", 'an aggregate over stream "n" without'),
        ("CREATE QUERY q AS SELECT a FROM view GROUP BY a", 'an aggregate over stream "view"'),
        ("SELECT COUNT(*) AS c FROM n, t", 'an aggregate over stream "n" without a window'),
    ],
)
def test_what_is_probably_not_meant_is_warned_of(text: str, message: str) -> None:
    session = tidemill.connect()
    session.sql(f"{STREAM};{NUMBERED}; CREATE STREAM view AS SELECT a FROM n WHERE a > 1")
    with pytest.warns(TidemillWarning, match=message) as caught:
        session.sql(text)
    assert caught[0].filename == __file__
    assert [str(one.message) for one in caught] == list(session.warnings)
    assert "\nhint: write " in session.warnings[0]
    assert "   1 | " in session.warnings[0]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t [RANGE 300 MICROSECONDS]",
        "SELECT a FROM t [ROWS 300]",
        "SELECT a FROM n [RANGE 300 SLIDE 10]",
        "SELECT a FROM r [RANGE 300]",
        "SELECT COUNT(*) AS c FROM n [NOW]",
        "SELECT COUNT(*) AS c FROM n [RANGE UNBOUNDED]",
        "SELECT COUNT(*) AS c FROM n, t [RANGE 1 MINUTE]",
        "SELECT COUNT(*) AS c FROM (SELECT a FROM n [NOW]) AS s",
        "SELECT COUNT(*) AS c FROM windowed",
        "SELECT a FROM n",
    ],
)
def test_what_is_said_clearly_is_not_warned_of(text: str) -> None:
    session = tidemill.connect()
    session.sql(
        f"{STREAM};{NUMBERED};{ARRIVING}; CREATE STREAM windowed AS SELECT a FROM n [RANGE 5]"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.sql(text)
    assert session.warnings == ()


def test_a_warning_that_is_made_an_error_changes_nothing() -> None:
    session = tidemill.connect()
    session.sql(NUMBERED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TidemillWarning):
            session.sql("CREATE QUERY q AS SELECT COUNT(*) AS c FROM n")
    assert session.catalog.find("q") is None


def test_the_command_line_tells_warnings_on_stderr(tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(f"{NUMBERED};\nCREATE QUERY q AS SELECT COUNT(*) AS c FROM n;")
    done = CliRunner().invoke(app, ["check", str(script)])
    assert done.exit_code == 0
    assert 'warning: an aggregate over stream "n" without a window' in done.stderr
    assert "warning" not in done.stdout


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT ALL a FROM n [NOW]", "SELECT a FROM n [NOW]"),
        ("SELECT COUNT(ALL a) AS c FROM n [NOW]", "SELECT COUNT(a) AS c FROM n [NOW]"),
        ("SELECT SUM(ALL a + 1) AS c FROM n [NOW]", "SELECT SUM(a + 1) AS c FROM n [NOW]"),
    ],
)
def test_all_is_what_is_meant_without_it(one: str, other: str) -> None:
    session = tidemill.connect()
    session.sql(NUMBERED)
    assert session.sql(f"EXPLAIN {one}") == session.sql(f"EXPLAIN {other}")


def test_all_is_for_aggregates() -> None:
    session = tidemill.connect()
    session.sql(NUMBERED)
    with pytest.raises(BindError, match="ALL has no meaning in ABS"):
        session.sql("SELECT ABS(ALL a) AS c FROM n [NOW]")


@pytest.mark.parametrize(
    "over",
    [
        "(ORDER BY at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "(PARTITION BY a ORDER BY at RANGE UNBOUNDED PRECEDING)",
        "(ROWS 5 PRECEDING)",
        "w",
        "()",
    ],
)
def test_over_gets_a_hint(over: str) -> None:
    session = tidemill.connect()
    session.sql(NUMBERED)
    with pytest.raises((BindError, ParseError), match="a function with OVER") as caught:
        session.sql(f"SELECT SUM(a) OVER {over} AS c FROM n [NOW]")
    assert "put a window behind the stream in FROM and aggregate" in str(caught.value.hint)


SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@pytest.mark.parametrize("optimize", [True, False])
def test_what_is_no_finite_number_has_one_text(*, optimize: bool) -> None:
    session = tidemill.connect(optimize=optimize)
    session.sql(NUMBERED)
    values = [*SPECIAL.values(), 0.5]
    session.put("n", pl.DataFrame({"a": [1] * 4, "x": values, "at": [1, 2, 3, 4]}))
    query = session.sql(
        "SELECT CAST(x AS VARCHAR) AS text, 'x' || CAST(x AS VARCHAR) AS joined, "
        "CAST(CAST(x AS VARCHAR) AS DOUBLE) AS back, CAST(CAST('-inf' AS DOUBLE) AS VARCHAR) AS c "
        "FROM n [NOW]"
    )
    session.run()
    assert isinstance(query, tidemill.Query)
    rows = query.results()
    assert rows["text"].to_list() == [*SPECIAL, "0.5"]
    assert rows["joined"].to_list() == [f"x{text}" for text in (*SPECIAL, "0.5")]
    assert rows["back"].equals(pl.Series("back", values))
    assert set(rows["c"]) == {"-Infinity"}


def test_files_and_the_console_have_the_same_text(tmp_path: Path) -> None:
    frame = pl.DataFrame({"n": [1, 2, 3, None, 5], 'x"': [*SPECIAL.values(), None, 0.25]})
    write_csv(frame, tmp_path / "file.csv")
    assert (tmp_path / "file.csv").read_text() == (
        'n,"x"""\n1,NaN\n2,Infinity\n3,-Infinity\n,\n5,0.25\n'
    )
    write_json(frame, tmp_path / "file.json")
    assert (tmp_path / "file.json").read_text() == (
        '{"n":1,"x\\"":"NaN"}\n{"n":2,"x\\"":"Infinity"}\n{"n":3,"x\\"":"-Infinity"}\n'
        '{"n":null,"x\\"":null}\n{"n":5,"x\\"":0.25}\n'
    )
    assert [cell_text(value) for value in SPECIAL.values()] == list(SPECIAL)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_what_is_no_finite_number_comes_back_from_files(kind: str, tmp_path: Path) -> None:
    session = tidemill.connect()
    session.sql(NUMBERED)
    values = [*SPECIAL.values(), 0.5]
    session.put("n", pl.DataFrame({"a": [1] * 4, "x": values, "at": [1, 2, 3, 4]}))
    session.sql(f"CREATE QUERY q INTO {kind}('{tmp_path}/out') AS SELECT x, at FROM n [NOW]")
    session.run()
    (place,) = (tmp_path / "out").glob("batch=*")
    again = tidemill.connect()
    again.sql(f"CREATE STREAM back (x DOUBLE, at BIGINT) SOURCE {kind}('{place}') ORDERED BY at")
    query = again.sql("SELECT x FROM back [NOW]")
    again.run()
    assert isinstance(query, tidemill.Query)
    assert query.results()["x"].equals(pl.Series("x", values))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [2**70, 1]}),
        pd.DataFrame({"a": [1j]}),
        pa.table({"a": pa.array([1], pa.decimal256(50, 2))}),
    ],
)
def test_a_frame_with_values_that_no_column_holds_is_told(frame: Frame) -> None:
    with pytest.raises(RunError, match='the rows of "n" cannot be taken'):
        tidemill.connect().put("n", frame)
