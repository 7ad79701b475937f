"""The log of statements: read again as it was written, cut anywhere, damaged anywhere."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from kept import content, kept_session
from tidemill.catalog.durable import Done, Undone, Written, standing
from tidemill.errors import RunError, TidemillError
from tidemill.lang.statements import ObjectKind
from tidemill.runtime.statement_log import STATEMENTS_FILE, StatementLog

if TYPE_CHECKING:
    from tidemill.catalog.durable import LogEntry

TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
WRITTEN = st.builds(
    lambda kind, name, text, is_drop: (kind, name, text, is_drop),
    st.sampled_from(ObjectKind),
    TEXT,
    TEXT,
    st.booleans(),
)

STATEMENTS = (
    "CREATE STREAM s (a BIGINT, t BIGINT) SOURCE memory('m') ORDERED BY t",
    "CREATE STREAM s (a BIGINT, b BIGINT, t BIGINT) SOURCE memory('m') ORDERED BY t",
    "CREATE STREAM s (a BIGINT, t BIGINT) SOURCE memory('m') ORDERED BY t WITHIN 2 SECONDS",
    "CREATE STREAM r (a BIGINT, t BIGINT) SOURCE memory('r') ORDERED BY t",
    "CREATE RELATION r (a BIGINT, label VARCHAR) SOURCE memory('r')",
    "CREATE STREAM v AS SELECT a FROM s WHERE a > 1",
    "CREATE FUNCTION s(x BIGINT) AS x + 1",
    "CREATE FUNCTION twice(x BIGINT) AS x * 2",
    "CREATE QUERY q AS SELECT twice(a) AS d FROM s [RANGE 5 SECONDS]",
    "CREATE QUERY q AS SELECT a FROM v [RANGE 5 SECONDS]",
    "CREATE QUERY query_1 AS SELECT a FROM s [NOW]",
    "SELECT a FROM s [NOW]",
    "SELECT s(a) AS n FROM s [RANGE 2]",
    "DROP STREAM s",
    "DROP STREAM IF EXISTS v",
    "DROP STREAM r",
    "DROP RELATION IF EXISTS r",
    "DROP FUNCTION twice",
    "DROP FUNCTION s",
    "DROP QUERY IF EXISTS q",
    "DROP QUERY query_1",
    "DROP QUERY query_2",
)
"""Statements that need each other, have the same names, or undo each other."""

SCRIPTS = st.lists(st.sampled_from(STATEMENTS), max_size=14)
CREATING = st.lists(
    st.sampled_from([s for s in STATEMENTS if not s.startswith("DROP") and "WITHIN" not in s])
)


def logged(directory: Path, entries: list[LogEntry]) -> None:
    log = StatementLog(directory)
    for entry in entries:
        log.append(entry)


def numbered(said: list[tuple[ObjectKind, str, str, bool]]) -> list[LogEntry]:
    """Statements with their numbers; every third one is undone, and every fourth one done."""
    entries: list[LogEntry] = []
    for number, one in enumerate(said, start=1):
        entries.append(Written(number, *one))
        entries += [Undone(number)] if not number % 3 else []
        entries += [Done(number)] if not number % 4 else []
    return entries


@given(st.lists(WRITTEN, max_size=6))
def test_what_was_written_is_read_again(said: list[tuple[ObjectKind, str, str, bool]]) -> None:
    entries = numbered(said)
    with TemporaryDirectory() as place:
        logged(Path(place), entries)
        log = StatementLog(Path(place))
        assert log.read() == entries
        assert log.next == len(said) + 1
        assert log.is_unchanged()


@given(st.lists(WRITTEN, min_size=1, max_size=4), st.data())
def test_a_log_that_was_cut_goes_on_with_the_lines_that_are_whole(
    said: list[tuple[ObjectKind, str, str, bool]], data: st.DataObject
) -> None:
    entries = numbered(said)
    with TemporaryDirectory() as place:
        logged(Path(place), entries)
        path = Path(place) / STATEMENTS_FILE
        whole = path.read_bytes()
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])
        left = entries[: max(0, whole[:cut].count(b"\n") - 1)]
        log = StatementLog(Path(place))
        assert log.read() == left
        log.append(Undone(7))
        assert StatementLog(Path(place)).read() == [*left, Undone(7)]


@given(st.lists(WRITTEN, min_size=1, max_size=4), st.data())
def test_a_byte_that_was_changed_is_noticed(
    said: list[tuple[ObjectKind, str, str, bool]], data: st.DataObject
) -> None:
    entries = numbered(said)
    with TemporaryDirectory() as place:
        logged(Path(place), entries)
        path = Path(place) / STATEMENTS_FILE
        whole = path.read_bytes()
        at = data.draw(st.integers(0, len(whole) - 2))  # without its end, a line was cut short
        other = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
        path.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
        found = entries  # another blank is none of the changes
        with suppress(RunError):
            found = StatementLog(Path(place)).read()
        assert found == entries


@pytest.mark.parametrize("change", ["without", "twice", "turned"])
def test_lines_that_are_missing_or_moved_are_noticed(tmp_path: Path, change: str) -> None:
    logged(tmp_path, [Done(number) for number in range(1, 5)])
    path = tmp_path / STATEMENTS_FILE
    lines = path.read_bytes().splitlines(keepends=True)
    if change == "without":
        del lines[2]
    elif change == "twice":
        lines.insert(2, lines[2])
    else:
        lines[2], lines[3] = lines[3], lines[2]
    path.write_bytes(b"".join(lines))
    with pytest.raises(RunError, match=r"the checkpoint is damaged: line [34] of"):
        StatementLog(tmp_path).read()


def test_another_format_is_refused(tmp_path: Path) -> None:
    logged(tmp_path, [])
    path = tmp_path / STATEMENTS_FILE
    log = StatementLog(tmp_path)
    log._append({"format": 9})  # noqa: SLF001 — what a later version would write
    assert json.loads(path.read_bytes())["format"] == 9
    with pytest.raises(RunError, match="has format 9, and this version reads 1"):
        StatementLog(tmp_path).read()


def test_what_another_has_written_is_noticed(tmp_path: Path) -> None:
    one, other = StatementLog(tmp_path), StatementLog(tmp_path)
    assert one.is_unchanged()
    other.append(Done(1))
    assert not one.is_unchanged()
    one.read()
    assert one.is_unchanged()
    other.append(Done(2))
    assert other.is_unchanged()
    assert not one.is_unchanged()


# Sessions


def carried_out(session: tidemill.Session, statement: str) -> None:
    """Carry out a statement, which may be refused."""
    with suppress(TidemillError):
        session.sql(statement)


def made_by(statements: list[str]) -> tuple[dict[str, object], dict[str, object]]:
    """What statements make in a session without a checkpoint.

    Such a session creates nothing twice: the last of two statements of a stream is the first there.
    """
    session = tidemill.connect()
    for number, statement in enumerate(statements):
        here = statement
        if statement.startswith("CREATE STREAM s ("):
            after = [*statements[number + 1 :], "DROP STREAM s"]
            again = after[: after.index("DROP STREAM s")]
            here = [s for s in (statement, *again) if s.startswith("CREATE STREAM s (")][-1]
        carried_out(session, here)
    return content(session.catalog)


@given(SCRIPTS, st.data())
def test_a_catalog_is_what_was_carried_out_wherever_its_log_is_cut(
    script: list[str], data: st.DataObject
) -> None:
    """Reopened after any prefix, and after the last line was cut short anywhere."""
    with TemporaryDirectory() as place:
        directory = Path(place) / "checkpoint"
        session, effective = kept_session(directory), list[str]()
        made = [content(session.catalog)]
        for statement in script:
            before = session.catalog
            carried_out(session, statement)
            if session.catalog is not before:  # what is equal to what is there changes nothing
                effective.append(statement)
                made.append(made_by(effective))
            assert content(session.catalog) == made[-1]
            assert content(kept_session(directory).catalog) == made[-1]
        path = directory / STATEMENTS_FILE
        whole = path.read_bytes() if path.exists() else b""
        cut = data.draw(st.integers(0, len(whole)))
        if whole:
            path.write_bytes(whole[:cut])
        done = sum(b'"number"' in line for line in whole[:cut].split(b"\n")[:-1])
        assert content(kept_session(directory).catalog) == made[done]


@given(CREATING)
def test_a_script_that_is_run_again_changes_nothing(script: list[str]) -> None:
    with TemporaryDirectory() as place:
        directory = Path(place)
        first = kept_session(directory)
        taken: list[str] = []
        for statement in script:
            with suppress(TidemillError):
                first.sql(statement)
                taken.append(statement)
        path = directory / STATEMENTS_FILE
        written = path.read_bytes() if path.exists() else b""
        for _ in range(2):
            again = kept_session(directory)
            for statement in taken:
                again.sql(statement)
            assert content(again.catalog) == content(first.catalog)
            assert (path.read_bytes() if path.exists() else b"") == written


def test_the_log_holds_what_holds(tmp_path: Path) -> None:
    session = kept_session(tmp_path)
    for statement in STATEMENTS:
        carried_out(session, statement)
    held = standing(StatementLog(tmp_path).read())
    assert {one.key for one in held} == {
        *((False, name) for name in session.catalog.objects),
        *((True, name) for name in session.catalog.functions),
    }
