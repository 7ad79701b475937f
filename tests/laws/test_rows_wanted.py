"""Which rows are wanted of a file, or of a stream, decides on what is read and on nothing else."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tidemill
from laws.parquet_cases import DECLARED, NAMES, Written, usual_type, written_files
from laws.test_needed_columns import SCHEMA, Case, Story, small_pieces, small_samples
from tidemill.algebra.expr import conjunction, used_columns
from tidemill.algebra.text import expr_text
from tidemill.errors import RunError
from tidemill.model.schema import Schema
from tidemill.optimizer.planning import Planning
from tidemill.physical.eval import compile_predicate
from tidemill.physical.rows_read import rows_read
from tidemill.runtime.files import read_file
from tidemill.runtime.local.job import Job, Settings
from tidemill.runtime.reading import parquet_groups
from tidemill.runtime.reading.parquet_groups import UNREAD, Wanted
from tidemill.runtime.reading.shaping import fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.engine.ingest import Malformed


@contextmanager
def small_groups(*, skips: bool = True) -> Iterator[None]:
    """Leave out groups of few rows, or none."""
    with (
        mock.patch.object(parquet_groups, "_WORTH_IT", 1),
        mock.patch.object(parquet_groups, "_MOST", 1 << 10 if skips else -1),
    ):
        yield


DAY = "TIMESTAMP '1970-01-02 00:00:00'"
CONSTANTS = {
    "at": ("0", "3", "12"),
    "k": ("0", "1", "2"),
    "price": ("0.0e0", "1.0e0", "5.5e0"),
    "name": ("'a'", "'ab'", "'\u00e9'"),
    "day": ("DATE '1970-01-01'", "DATE '1970-01-02'"),
    "moment": ("TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP '1970-01-01 00:00:00.020'", DAY),
    "small": ("0", "1", "3"),
    "exact": ("1.25", "-3.00"),
}
ODD_PRICES = [None, float("nan"), -0.0, 0.0, 1.0, 5.5]


@st.composite
def odd_files(draw: st.DrawFn, most: int = 8, names: tuple[str, ...] = NAMES) -> Written:
    """A file in whose prices there may be NaN and both zeros."""
    written = draw(written_files(most, names))
    if "price" not in names or not draw(st.booleans()):
        return written
    rows = written.table.num_rows
    prices = draw(st.lists(st.sampled_from(ODD_PRICES), min_size=rows, max_size=rows))
    place = written.table.schema.get_field_index("price")
    column = pl.Series(prices, dtype=pl.Float64()).to_arrow()
    return replace(written, table=written.table.set_column(place, "price", column))


@st.composite
def texts(draw: st.DrawFn, names: tuple[str, ...] = tuple(CONSTANTS)) -> str:
    """A condition, in the language."""
    name = draw(st.sampled_from([name for name in names if name in CONSTANTS]))
    one, other = (draw(st.sampled_from(CONSTANTS[name])) for _ in range(2))
    match draw(st.integers(0, 6)):
        case 0:
            return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case 1:
            return f"{name} BETWEEN {one} AND {other}"
        case 2:
            return f"{name} IN ({one}, {other})"
        case 3:
            sides = draw(texts(names)), draw(texts(names))
            return f"({sides[0]} {draw(st.sampled_from(['AND', 'OR']))} {sides[1]})"
        case 4:
            return f"NOT ({draw(texts(names))})"
        case _:
            return f"{name} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {one}"


@cache
def conditions_of(text: str) -> Wanted | None:
    """What the language makes of a condition."""
    session = tidemill.connect()
    columns = ", ".join(f"{name} {type_}" for name, type_ in DECLARED.items())
    session.sql(f"CREATE STREAM s ({columns}) SOURCE parquet('x') ORDERED BY at")
    session.sql(f"CREATE QUERY q AS SELECT at, flag FROM s WHERE {text}")
    program = Job(session.catalog, {}, Settings())._next_program(session.catalog)  # noqa: SLF001
    return program.wanted.get("s")


class Reading(NamedTuple):
    """A file, and what is needed of it.

    Attributes:
        file: The file.
        schema: Its columns.
        needed: The columns that are needed; ``None`` for all.
        wanted: The rows that are.
        rows: How many rows are read at once.
        fails: Whether a malformed row is an error.
        whole: Whether the first piece is read with all that is in it.
    """

    file: Written
    schema: Schema
    needed: frozenset[str] | None
    wanted: Wanted
    rows: int
    fails: bool
    whole: bool


@st.composite
def readings(draw: st.DrawFn) -> Reading:
    names = draw(st.lists(st.sampled_from(list(CONSTANTS)), min_size=1, max_size=2, unique=True))
    names += draw(st.lists(st.sampled_from(NAMES), max_size=1).filter(lambda n: n[:1] != names[:1]))
    names = list(dict.fromkeys(names))
    some = st.lists(texts(tuple(names)), min_size=1, max_size=2)
    found = [conditions_of(text) for text in draw(some)]
    conditions = frozenset(one for each in found if each for one in each.conditions)
    timed = draw(st.frozensets(st.sampled_from(names), max_size=1))
    used = frozenset(name for each in conditions for one in each for name in used_columns(one))
    needed = used | timed | draw(st.frozensets(st.sampled_from(names), max_size=1))
    return Reading(
        draw(odd_files(names=tuple(names))),
        Schema(tuple(field for field in SCHEMA if field.name in names)),
        draw(st.sampled_from([None, needed or frozenset(names)])),
        Wanted(conditions, timed),
        draw(st.integers(1, 9)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def told(path: Path, case: Reading, wanted: Wanted | None) -> list[object]:
    """What is read of a file: pieces, malformed rows, and the error that it ends with."""
    found: list[object] = []

    def refuse(one: Malformed) -> None:
        found.append(("malformed", one.where, one.unit, one.rows.to_dicts()))

    act = fail if case.fails else refuse
    try:
        found.extend(
            read_file(
                path,
                "parquet",
                case.schema,
                act,
                needed=case.needed,
                wanted=wanted,
                begins_whole=case.whole,
            )
        )
    except RunError as error:
        found.append(f"{error} {error.hint}")
    return found


def seen(one: object, case: Reading) -> object:
    """What may be seen of a piece: all of rows that are wanted, and the times of others."""
    if not isinstance(one, pl.DataFrame):
        return repr(one)
    is_met = pl.repeat(value=False, n=one.height, dtype=pl.Boolean(), eager=True)
    for some in case.wanted.conditions:
        is_met |= one.with_columns(compile_predicate(conjunction(*some)).alias("@met"))["@met"]
    if UNREAD in one.columns:
        assert not (one[UNREAD] & is_met).any(), "rows that are not read are not wanted"
    plain = one.drop(UNREAD, strict=False)
    timed = plain.select(name for name in plain.columns if name in case.wanted.timed)
    return plain.schema, plain.height, repr(timed.rows()), repr(plain.filter(is_met).rows())


@settings(max_examples=4 * settings().max_examples)
@given(case=readings())
def test_a_file_has_the_same_rows_whatever_is_wanted_of_it(case: Reading) -> None:
    with TemporaryDirectory() as folder, small_pieces(case.rows), small_groups():
        path = Path(folder) / "0.parquet"
        case.file.write(path)
        all_, some = (told(path, case, wanted) for wanted in (None, case.wanted))
    assert [seen(one, case) for one in some] == [seen(one, case) for one in all_]


def test_groups_that_are_not_wanted_are_not_read(tmp_path: Path) -> None:
    path, wanted = tmp_path / "0.parquet", conditions_of("k BETWEEN 3 AND 4")
    assert wanted is not None
    rows = pl.DataFrame({"at": range(9), "k": range(9), "price": [7.0] * 9})
    rows.write_parquet(path, row_group_size=3, use_pyarrow=True)
    schema = Schema(tuple(field for field in SCHEMA if field.name in rows.columns))
    with small_groups(), small_pieces(4):
        found = pl.concat(read_file(path, "parquet", schema, wanted=wanted), how="diagonal")
    assert found[UNREAD].fill_null(value=False).to_list() == [True] * 3 + [False] * 3 + [True] * 3
    assert found["at"].to_list() == list(range(9))
    assert found["k"].to_list() == [0] * 3 + [3, 4, 5] + [6] * 3
    assert found["price"].to_list() == [None] * 3 + [7] * 3 + [None] * 3


@pytest.mark.parametrize("prices", [[1.0, float("nan")], [None, 99.0]])
def test_a_group_with_one_row_that_is_wanted_is_read(tmp_path: Path, prices: list[float]) -> None:
    path, wanted = tmp_path / "0.parquet", conditions_of("price > 9")
    pl.DataFrame({"price": prices}, strict=False).write_parquet(path, use_pyarrow=True)
    schema = Schema(tuple(field for field in SCHEMA if field.name == "price"))
    with small_groups():
        (found,) = read_file(path, "parquet", schema, wanted=wanted)
    assert found.columns == ["price"]


def test_malformed_rows_of_groups_that_are_not_wanted_are_found(tmp_path: Path) -> None:
    path, wanted = tmp_path / "0.parquet", conditions_of("k = 3")
    rows = pl.DataFrame({"at": range(4), "k": range(4), "small": [1 << 40, 1, 2, 3]})
    rows.write_parquet(path, row_group_size=2, use_pyarrow=True)
    schema = Schema(tuple(field for field in SCHEMA if field.name in rows.columns))
    malformed: list[Malformed] = []
    with small_groups():
        found = pl.concat(read_file(path, "parquet", schema, malformed.append, wanted=wanted))
    assert found["k"].to_list() == [1, 2, 3]
    assert [one.rows.height for one in malformed] == [1]


SELECTS = (
    "SELECT k, price, name FROM s [RANGE 5 MICROSECONDS]",
    "SELECT COUNT(*) AS n FROM s [RANGE 5 MICROSECONDS]",
    "SELECT name, SUM(k) AS total FROM s [RANGE 4 MICROSECONDS]",
    "SELECT * FROM s",
    "SELECT moment FROM s [ROWS 2]",
    "SELECT k + 1 AS one, word FROM s",
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    select = draw(st.sampled_from(SELECTS))
    where = f" WHERE {draw(texts())}" if draw(st.integers(0, 9)) else ""
    return select + where + (" GROUP BY name" if "SUM" in select else "")


POLICIES = (
    "MALFORMED DROP",
    "MALFORMED QUARANTINE",
    "MALFORMED DROP LATE QUARANTINE",
    "MALFORMED DROP KEEP ALL",
    "MALFORMED QUARANTINE KEEP ALL BY REFERENCE",
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    some = st.lists(queries(), min_size=1, max_size=2, unique=True)
    files = st.lists(odd_files(6), min_size=1, max_size=2)
    return Case(
        (draw(files), draw(files)),
        (draw(some), draw(some)),
        draw(st.sampled_from(POLICIES)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 4)),
    )


class Tale(Story):
    """A story in which it is noted, too, what operators have done."""

    def note_figures(self, job: Job) -> None:
        super().note_figures(job)
        found = job.metrics().values()
        self.seen += sorted((one.fingerprint, one.rows_in, one.rows_out) for one in found)


def same_with_and_without(case: Case, act: Callable[[Tale], None]) -> None:
    with TemporaryDirectory() as folder, small_pieces(case.rows), small_samples():
        found: list[list[str]] = []
        for skips in (True, False):
            place = Path(folder) / str(skips)
            place.mkdir()
            tale = Tale(case, place, optimize=True)
            with small_groups(skips=skips):
                try:
                    act(tale)
                except RunError as error:
                    tale.seen.append(error)
            found.append([repr(one).replace(str(place), "") for one in tale.seen])
    assert found[0] == found[1]


def in_order(times: list[int]) -> Written:
    """A file whose rows are in the order of ``k``."""
    rows = len(times)
    found: dict[str, list[object]] = {name: [None] * rows for name in NAMES}
    found |= {"at": [*times], "k": [*range(rows)], "price": [0.5] * rows, "word": ["a"] * rows}
    types = {name: usual_type(name) for name in NAMES}
    table = pa.table({name: pa.array(found[name], types[name]) for name in NAMES})
    return Written(table, 2, statistics=True, keeps_schema=True)


def ordered(policy: str, *others: str, first: str = "k BETWEEN 4 AND 5") -> Case:
    """Files in order, of which queries want some rows only; late ones are not among them."""
    files = [in_order([0, 1, 2, 3, 4, 5]), in_order([9, 8, 0, 1, 9, 10, 11, 12])]
    query = f"SELECT k, price FROM s [RANGE 5 MICROSECONDS] WHERE {first}"
    return Case((files, files[1:]), ([query], [*others, SELECTS[1] + " WHERE k = 7"]), policy, 1, 2)


AHEAD = ordered(POLICIES[0], SELECTS[1] + " WHERE k = 4", first="k = 7")
"""What a later query wants has been left out when it comes."""


@settings(max_examples=settings().max_examples // 2)
@given(case=cases())
@example(case=ordered(POLICIES[0]))
@example(case=ordered(POLICIES[2]))
@example(case=ordered(POLICIES[4], SELECTS[0]))
def test_a_session_shows_the_same_whatever_rows_are_read(case: Case) -> None:
    same_with_and_without(case, Tale.once)


@settings(max_examples=settings().max_examples // 16)
@given(case=cases())
def test_a_later_session_goes_on_whatever_rows_were_read(case: Case) -> None:
    same_with_and_without(case, Tale.in_two_sessions)


@settings(max_examples=settings().max_examples // 2)
@given(case=cases())
@example(case=AHEAD)
def test_queries_that_come_and_go_get_their_rows(case: Case) -> None:
    same_with_and_without(case, Tale.in_between)


def test_conditions_are_put_in_columns_of_the_input() -> None:
    session = tidemill.connect(optimize=False)
    session.sql("CREATE STREAM s (at BIGINT, a BIGINT, b BIGINT) SOURCE parquet('x') ORDERED BY at")
    inner = "(SELECT a AS b, b AS a, a + b AS c FROM s) AS x"
    session.sql(f"CREATE QUERY q AS SELECT a FROM {inner} WHERE a > 1 AND c > 2 AND b IS NULL")
    job = Job(session.catalog, {}, Settings(planning=Planning(optimized=False)))
    graph = job._next_program(session.catalog).graph  # noqa: SLF001
    found = rows_read(graph.intake("s"))
    assert found is not None
    assert [[expr_text(part) for part in some] for some in found] == [["b > 1", "a IS NULL"]]
