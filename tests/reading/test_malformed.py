"""What becomes of malformed rows, by the policy of their stream; and what files may look like."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zlib
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import tidemill
from tidemill.runtime.reading import blocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COLUMNS = "a BIGINT, b VARCHAR"


def session_on(
    place: Path, kind: str, columns: str = COLUMNS, clauses: str = ""
) -> tuple[tidemill.Session, tidemill.Query]:
    session = tidemill.connect()
    session.sql(f"CREATE STREAM s ({columns}) SOURCE {kind}('{place}') {clauses}")
    query = session.sql("SELECT * FROM s")
    assert isinstance(query, tidemill.Query)
    return session, query


def rows_of(place: Path, kind: str, columns: str = COLUMNS) -> list[tuple[object, ...]]:
    session, query = session_on(place, kind, columns)
    session.run()
    return query.results().drop("start", "end").rows()


def failure(place: Path, kind: str, columns: str = COLUMNS, clauses: str = "") -> str:
    session, _ = session_on(place, kind, columns, clauses)
    with pytest.raises(tidemill.RunError) as caught:
        session.run()
    return str(caught.value)


BAD_CSV = 'a,b\n1,x\n2\nthree,y\n4,"z\nz"\n5,v,\n'


def test_a_malformed_row_stops_the_run_and_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "1.csv"
    path.write_text("a,b\n1,x\nthree,y\n")
    assert failure(path, "csv") == (
        f'line 3 of file "{path}" is malformed: column "a" has "three", which is not a BIGINT\n'
        "hint: fix it; a stream may be declared with MALFORMED QUARANTINE or MALFORMED DROP"
    )
    path.write_text(BAD_CSV)
    assert f'line 3 of file "{path}" is malformed: it has 1 field instead of 2' in failure(
        path, "csv"
    )
    pl.DataFrame({"a": [1.0, 2.5], "b": ["x", "y"]}).write_parquet(tmp_path / "1.parquet")
    text = failure(tmp_path / "1.parquet", "parquet")
    assert f'row 2 of file "{tmp_path / "1.parquet"}" is malformed: column "a" has 2.5' in text


def test_malformed_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text(BAD_CSV)
    session, query = session_on(tmp_path, "csv", clauses="MALFORMED DROP")
    session.run()
    assert query.results()["a"].to_list() == [1, 4]
    assert session.refused().rows() == [("s", "malformed", 3)]
    assert session.quarantine("s").is_empty()
    assert [(s.rows, s.refused) for s in session.progress().streams] == [(5, 3)]


def test_malformed_rows_are_kept_with_their_place_and_text(tmp_path: Path) -> None:
    path = tmp_path / "1.csv"
    path.write_text(BAD_CSV)
    session, _ = session_on(tmp_path, "csv", clauses="MALFORMED QUARANTINE")
    session.run()
    kept = session.quarantine("s")
    assert kept.columns == ["a", "b", "reason", "file", "line", "problem", "text"]
    where = ("malformed", str(path))
    assert kept.rows() == [
        (None, None, *where, 3, "it has 1 field instead of 2", "2"),
        (None, "y", *where, 4, 'column "a" has "three", which is not a BIGINT', "three,y"),
        (None, None, *where, 7, "it has 3 fields instead of 2", "5,v,"),
    ]


def test_late_rows_and_malformed_ones_have_policies_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n5,x\n")
    (tmp_path / "2.csv").write_text("a,b\n4,y\nz,z\n,n\n")
    for late, malformed, reasons in (
        ("DROP", "QUARANTINE", ["malformed"]),
        ("QUARANTINE", "DROP", ["late", "time is NULL"]),
        ("QUARANTINE", "QUARANTINE", ["late", "malformed", "time is NULL"]),
    ):
        clauses = f"ORDERED BY a LATE {late} MALFORMED {malformed}"
        session, _ = session_on(tmp_path, "csv", clauses=clauses)
        session.run()
        assert sorted(session.quarantine("s")["reason"]) == reasons
        counts = [("s", "late", 1), ("s", "malformed", 1), ("s", "time is NULL", 1)]
        assert session.refused().rows() == counts


def test_null_is_malformed_where_it_is_declared_so(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,x\n,y\n")
    text = failure(tmp_path, "csv", "a BIGINT NOT NULL, b VARCHAR")
    assert 'column "a" is NULL, and declared NOT NULL' in text


def test_a_relation_takes_no_malformed_row(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("a,b\nx,y\n")
    session = tidemill.connect()
    session.sql(f"CREATE RELATION r (a BIGINT, b VARCHAR) SOURCE csv('{tmp_path}')")
    session.sql("SELECT * FROM r")
    with pytest.raises(tidemill.RunError, match='column "a" has "x", which is not a BIGINT'):
        session.run()


def test_a_frame_in_memory_follows_the_rule() -> None:
    session = tidemill.connect()
    session.sql("CREATE STREAM s (a BIGINT) SOURCE memory('f') MALFORMED QUARANTINE")
    session.put("f", pl.DataFrame({"a": [1.0, 1.5]}))
    query = session.sql("SELECT a FROM s")
    assert isinstance(query, tidemill.Query)
    session.run()
    assert query.results()["a"].to_list() == [1]
    problem = 'column "a" has 1.5, which is not a BIGINT'
    assert session.quarantine("s").rows() == [(None, "malformed", None, 2, problem, '{"a": 1.5}')]


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_file_of_0_bytes_has_no_rows(tmp_path: Path, kind: str) -> None:
    (tmp_path / "1").touch()
    assert rows_of(tmp_path, kind) == []


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_nothing_compressed_has_no_rows(tmp_path: Path, kind: str) -> None:
    (tmp_path / "1.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "2.gz").touch()
    assert rows_of(tmp_path, kind) == []


def test_a_csv_file_without_rows_or_without_names(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n")
    assert rows_of(tmp_path, "csv") == []
    (tmp_path / "1.csv").write_text("1,x\n2,y\n")
    assert 'has no column "a"' in failure(tmp_path, "csv")
    (tmp_path / "1.csv").write_text("\n1,x\n")
    assert "does not begin with the names of its columns" in failure(tmp_path, "csv")


def test_empty_lines_are_no_rows_unless_there_is_one_column(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_bytes(b"\xef\xbb\xbfa,b\r\n1,x\r\n\r\n2,y\r\n\n")
    assert rows_of(tmp_path, "csv") == [(1, "x"), (2, "y")]
    (tmp_path / "1.csv").write_text("a\n1\n\n")
    assert rows_of(tmp_path, "csv", "a BIGINT") == [(None,), (1,)]


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip in parts": lambda content: gzip.compress(content[:5]) + gzip.compress(content[5:]),
    "zlib": zlib.compress,
    "zstd": lambda content: pa.compress(content, "zstd", asbytes=True),
}


@pytest.mark.parametrize("how", COMPRESS)
def test_compressed_files_are_read_and_damaged_ones_are_not(tmp_path: Path, how: str) -> None:
    content = b"a,b\n" + b"".join(b"%d,x%d\n" % (n, n) for n in range(9))
    (tmp_path / "1").write_bytes(COMPRESS[how](content))
    assert len(rows_of(tmp_path, "csv")) == 9
    (tmp_path / "1").write_bytes(COMPRESS[how](content)[:-3])
    assert "cannot be read as csv: " in failure(tmp_path, "csv")
    lines = b"".join(b'{"a": %d, "b": "x"}\n' % n for n in range(9))
    (tmp_path / "1").write_bytes(COMPRESS[how](lines))
    assert len(rows_of(tmp_path, "json")) == 9


def test_numbers_of_json_keep_their_digits_whatever_other_lines_have(tmp_path: Path) -> None:
    lines = [
        '{"a": 9007199254740993, "b": 12345678901234.5678}',
        '{"a": 1.0, "b": 0.5}',
        '{"b": "1.2500"}',
    ]
    columns = "a BIGINT, b DECIMAL(18, 4)"
    expected = {
        (9007199254740993, Decimal("12345678901234.5678")),
        (1, Decimal("0.5000")),
        (None, Decimal("1.2500")),
    }
    for number in range(4):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "1").write_text("\n".join(lines[:number]) + "\n" * (number > 0))
        (place / "2").write_text("\n".join(lines[number:]))
        assert set(rows_of(place, "json", columns)) == expected


def test_a_field_that_is_in_no_line_is_null(tmp_path: Path) -> None:
    (tmp_path / "1").write_text('{"a": 1}\n')
    assert rows_of(tmp_path, "json") == [(1, None)]


def test_what_is_not_declared_is_not_looked_at(tmp_path: Path) -> None:
    lines = [
        '{"a": 1, "b": "x", "c": {"d": [1, {"e": null}]}}',
        '{"a": 2, "b": "y", "c": 7}',
        '{"a": 3, "b": "z", "c": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ]
    (tmp_path / "1.json").write_text("\n".join(lines))
    assert [row[0] for row in rows_of(tmp_path / "1.json", "json")] == [1, 2, 3]
    odd = pa.table(
        {
            "a": [1],
            "b": ["x"],
            "m": pa.array([[("k", [1])]], pa.map_(pa.string(), pa.list_(pa.int8()))),
            "d": pa.array([5], pa.duration("ns")),
            "h": pa.array([1.5], pa.float16()),
            "w": pa.array([Decimal(1)], pa.decimal256(60, 2)),
        }
    )
    parquet.write_table(odd, tmp_path / "1.parquet")
    assert rows_of(tmp_path / "1.parquet", "parquet") == [(1, "x")]


@pytest.mark.parametrize("content", ["a,b\r1,x\r", "a,b\r1,x\n", "a,b," + "c" * 200_000 + "\n"])
def test_a_first_line_that_has_no_names_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "1.csv").write_bytes(content.encode())
    assert "does not begin with the names of its columns" in failure(tmp_path / "1.csv", "csv")


def test_a_declared_column_that_is_there_twice_is_not_chosen_from(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("A,b,a\n1,x,2\n")
    assert 'has 2 columns "a"' in failure(tmp_path / "1.csv", "csv")
    for names in (["a", "b", "a"], ["A", "b", "a"]):
        table = pa.Table.from_arrays([pa.array([1]), pa.array(["x"]), pa.array([2])], names=names)
        parquet.write_table(table, tmp_path / "1.parquet")
        assert 'has 2 columns "a"' in failure(tmp_path / "1.parquet", "parquet")
    (tmp_path / "2.csv").write_text("a,b,c,C\n1,x,2,3\n")
    assert rows_of(tmp_path / "2.csv", "csv") == [(1, "x")]


def test_what_follows_compressed_rows_is_not_passed_over(tmp_path: Path) -> None:
    first, second = b"a,b\n1,x\n", b"2,y\n"
    (tmp_path / "1.csv").write_bytes(zlib.compress(first) + zlib.compress(second))
    assert "something follows that does not belong to it" in failure(tmp_path / "1.csv", "csv")
    (tmp_path / "1.csv").write_bytes(gzip.compress(first) + gzip.compress(second))
    assert rows_of(tmp_path / "1.csv", "csv") == [(1, "x"), (2, "y")]


def test_an_exponent_gives_a_decimal_no_more_digits_than_it_has(tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    for number in ("1E32", "-1e32", "1.5e32"):
        path.write_text(f'{{"a": {number}}}\n')
        assert "which is not a DECIMAL(38,6)" in failure(path, "json", "a DECIMAL(38, 6)")
    path.write_text('{"a": 1E31}\n{"a": null}\n{"a": -99999999999999999999999999999999.999999}\n')
    found = {Decimal(10**31), None, Decimal("-99999999999999999999999999999999.999999")}
    assert {a for (a,) in rows_of(path, "json", "a DECIMAL(38, 6)")} == found


def test_a_text_of_parquet_that_is_no_utf_8_is_malformed(tmp_path: Path) -> None:
    content = pa.array([b"\xff\xfe", b"ok"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(content), content.buffers())
    parquet.write_table(pa.table({"a": [1, 2], "b": texts}), tmp_path / "1.parquet")
    text = failure(tmp_path / "1.parquet", "parquet")
    assert "row 1 of file" in text
    assert 'column "b" has' in text
    session, query = session_on(tmp_path / "1.parquet", "parquet", clauses="MALFORMED DROP")
    session.run()
    assert query.results()["b"].to_list() == ["ok"]


def test_a_file_whose_name_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.csv")).write_text("a,b\n1,x\n")
    assert rf'the name of file "{tmp_path}/\xff.csv" is not UTF-8' in failure(tmp_path, "csv")


def test_a_source_has_one_path(tmp_path: Path) -> None:
    with pytest.raises(tidemill.BindError, match='option "path" is given twice'):
        tidemill.connect().sql(
            f"CREATE STREAM s (a BIGINT) SOURCE csv('{tmp_path}', path => 'other')"
        )


def test_a_line_that_is_no_json_is_one_malformed_row(tmp_path: Path) -> None:
    (tmp_path / "1").write_text('{"a": 1, "b": "x"}\n{"a": \n{"a": 2, "A": 3}\n7\n{"a": 4}')
    session, query = session_on(tmp_path, "json", clauses="MALFORMED QUARANTINE")
    session.run()
    assert query.results()["a"].to_list() == [1, 4]
    assert session.quarantine("s").select("line", "problem").rows() == [
        (2, "it is not JSON"),
        (3, 'column "a" is there twice'),
        (4, "it is not a JSON object"),
    ]


@pytest.mark.parametrize("unit", ["ms", "ns"])
def test_times_of_other_units_are_not_taken_for_microseconds(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "1.parquet"
    times = pl.Series([7_000_000]).cast(pl.Datetime(unit))  # type: ignore[arg-type]
    pl.DataFrame({"a": times, "b": ["x"]}).write_parquet(path)
    text = failure(path, "parquet")
    assert 'column "a" of file' in text
    assert "hint: declare it TIMESTAMP" in text
    ((moment, _),) = rows_of(path, "parquet", "a TIMESTAMP, b VARCHAR")
    count = 7_000_000 * 1000 if unit == "ms" else 7_000
    assert isinstance(moment, datetime)
    assert pl.Series([moment]).to_physical().to_list() == [count]


SECRET = "root:secret,hash\n{not json}\n"  # noqa: S105 — it is what must not be shown


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize("columns", ["a BIGINT", '"hash" BIGINT, "root:secret" BIGINT'])
def test_errors_show_nothing_of_a_file_that_a_link_leads_to(
    tmp_path: Path, kind: str, columns: str
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1").symlink_to(tmp_path / "secret")
    text = failure(tmp_path / "in", kind, columns)
    for told in (str(tmp_path), '"root:secret"', '"hash"'):
        text = text.replace(told, "")
    assert not any(word in text for word in ("root", "secret", "hash", "json}"))
    clauses = "MALFORMED QUARANTINE"
    if kind == "json":
        session, _ = session_on(tmp_path / "in", kind, columns, clauses)
        session.run()
        assert session.quarantine("s")["text"].to_list() == [None, None]
    plain = tmp_path / "in" / "1"
    plain.unlink()
    plain.write_text("a,b\n1,x\n")
    (tmp_path / "in" / "2").symlink_to("1")
    assert rows_of(tmp_path / "in", "csv") == [(1, "x"), (1, "x")]


def test_lateness_is_judged_by_batches_not_by_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 8)
    monkeypatch.setattr("tidemill.runtime.local.intake._STEP_ROWS", 1)
    (tmp_path / "1.csv").write_text("a,b\n9,x\n1,y\n5,z\n")
    (tmp_path / "2.csv").write_text("a,b\n8,late\n")
    session, query = session_on(tmp_path, "csv", clauses="ORDERED BY a")
    session.run()
    assert sorted(query.results()["a"]) == [1, 5, 9]
    assert session.refused().rows() == [("s", "late", 1)]


def test_a_row_that_is_too_long_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 8)
    monkeypatch.setattr(blocks, "LONGEST", 64)
    long = "x" * 100
    (tmp_path / "1.csv").write_text(f'a,b\n1,x\n2,{long}\n3,z\n4,"open\n5,v\n' + "6,w\n" * 30)
    session, query = session_on(tmp_path, "csv", clauses="MALFORMED QUARANTINE")
    session.run()
    assert query.results()["a"].to_list() == [1, 3, 5, *[6] * 30]
    assert session.quarantine("s")["line"].to_list() == [3, 5]
    place = tmp_path / "json"
    place.mkdir()
    lines = [{"a": 1}, {"a": 2, "b": long}, {"a": 3}]
    (place / "1").write_text("\n".join(map(json.dumps, lines)))
    session, query = session_on(place, "json", clauses="MALFORMED DROP")
    session.run()
    assert query.results()["a"].to_list() == [1, 3]


PROGRAM = """
import resource, sys
import tidemill

def count(path):
    session = tidemill.connect()
    session.sql(f"CREATE STREAM s (a BIGINT, b VARCHAR) SOURCE {sys.argv[1]}('{path}')")
    query = session.sql("SELECT COUNT(*) AS n FROM s [RANGE 1]")
    session.run()
    return query.snapshot().rows()

count(sys.argv[2])  # what libraries take for themselves
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 20), resource.RLIM_INFINITY))
print(count(sys.argv[3]))
"""


@pytest.mark.parametrize("kind", ["csv", pytest.param("json", marks=pytest.mark.soak), "parquet"])
def test_a_file_that_becomes_large_is_read_in_bounded_memory(tmp_path: Path, kind: str) -> None:
    few, count, wide = 1_000, 1_500_000, "x" * 480
    small, large = tmp_path / "small", tmp_path / "large"
    if kind == "parquet":
        frame = pl.select(a=pl.int_range(count)).with_columns(b=pl.lit(wide))
        frame[:few].write_parquet(small)
        frame.write_parquet(large, row_group_size=count)
    else:
        names = gzip.compress(b"a,b\n") if kind == "csv" else b""
        line = f"7,{wide}\n" if kind == "csv" else f'{{"a": 7, "b": "{wide}"}}\n'
        rows = gzip.compress(line.encode() * few)
        small.write_bytes(names + rows)
        large.write_bytes(names + rows * (count // few))
    assert large.stat().st_size < 10 << 20, "it becomes 700 MB"
    done = subprocess.run(  # noqa: S603 — it is ours
        [sys.executable, "-c", PROGRAM, kind, str(small), str(large)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout == f"[({count},)]\n", done.stderr[-2000:]
