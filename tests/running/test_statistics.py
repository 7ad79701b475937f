"""Statistics of the local engine: measured, kept, hinted, and never a reason to refuse anything."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.statistics_body import DISTANCE, ROWS, declared, measured_and_kept, shown, write
from tidemill.runtime.measuring import measured
from tidemill.runtime.measuring.measured import STATISTICS_FILE, Measured, load_measured
from tidemill.runtime.measuring.sample import Sample

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_measured_is_kept_and_shown(tmp_path: Path) -> None:
    measured_and_kept(partial(tidemill.connect, checkpoint=tmp_path / "state"), tmp_path)


def test_a_hint_counts_until_there_are_rows_enough(tmp_path: Path) -> None:
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        write(tmp_path, 0)
        declared(session, tmp_path)
        session.query("SELECT k FROM s [NOW]")
        session.start()
        session.await_idle()
        assert shown(session, "FOR s")["s", "rate", ""] == (7.0, "hint")
        write(tmp_path, 1)
        session.await_idle()
        value, how = shown(session, "FOR s")["s", "rate", ""]
        assert (round(value), how) == (1_000_000 // DISTANCE, "measured")
        as_of = session.sql("SHOW STATISTICS s")
        assert isinstance(as_of, pl.DataFrame)
        assert set(as_of["as_of"]) == {(2 * ROWS - 1) * DISTANCE}


def test_other_hints_are_taken_in_a_later_session(tmp_path: Path) -> None:
    for rate in (5, 50):
        with tidemill.connect(checkpoint=tmp_path / "state") as session:
            session.sql(
                "CREATE STREAM s (k BIGINT, t BIGINT) SOURCE parquet('in') ORDERED BY t"
                f" HINT (rate => {rate})"
            )
            session.sql(f"CREATE RELATION r (k BIGINT) SOURCE parquet('r') HINT (rows => {rate})")
            assert shown(session)["s", "rate", ""] == (rate, "hint")
            assert shown(session)["r", "rows", ""] == (rate, "hint")


def test_what_a_query_reads_is_shown_for_it(tmp_path: Path) -> None:
    session = tidemill.connect()
    write(tmp_path, 0)
    declared(session, tmp_path)
    session.sql("CREATE STREAM few AS SELECT k FROM s [RANGE 5 SECONDS] WHERE k < 3")
    session.sql("CREATE QUERY of_r AS SELECT sort FROM r")
    session.sql("CREATE FUNCTION twice(x BIGINT) AS 2 * x")
    assert {name for name, _, _ in shown(session, "few")} == {"s"}
    assert {name for name, _, _ in shown(session, "FOR of_r")} == {"r"}
    assert {name for name, _, _ in shown(session)} == {"r", "s"}
    with pytest.raises(tidemill.BindError, match='"twice" is a function'):
        session.sql("SHOW STATISTICS FOR twice")


BROKEN = {
    "garbage": b"\x00 no json",
    "torn": b'{"format": 1, "batch": 3, "inputs": {"s": {"identity": "x", "ro',
    "another": b'{"format": 99}',
    "odd": b'{"format": 1, "batch": 0, "inputs": {"s": 7}, "conditions": {}}',
    "infinite": b'{"format": 1, "batch": 1e999, "inputs": {}, "conditions": {}}',
}


@pytest.mark.parametrize("content", [None, *BROKEN.values()], ids=["absent", *BROKEN])
def test_what_cannot_be_read_is_as_if_it_was_not_there(
    tmp_path: Path, content: bytes | None
) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    for turn in range(2):
        write(tmp_path, turn)
        session = tidemill.connect(checkpoint=state)
        declared(session, tmp_path)
        session.sql(
            f"CREATE QUERY q INTO parquet('{out}') AS SELECT s.k, r.sort FROM s [NOW], r"
            " WHERE s.k = r.k AND s.v > 5"
        )
        session.run()
        session.stop()
        file = state / STATISTICS_FILE
        assert file.is_file()
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        assert shown(tidemill.connect(checkpoint=state))["s", "rate", ""] == (7.0, "hint")
    given = [pl.read_parquet(f, hive_partitioning=False) for f in out.glob("batch=*/*.parquet")]
    right = sum(n % 4 != 0 and n % 10 > 5 for n in range(2 * ROWS))
    assert sum(frame.height for frame in given) == right


def test_a_kill_leaves_the_old_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Measured(path=tmp_path / STATISTICS_FILE)
    known.take(0, {"s": Sample(10, 0, 90)})
    known.keep()
    known.take(1, {"s": Sample(10, 100, 190)})

    def killed(path: Path, content: bytes) -> None:
        path.with_name(f".{path.name}.part").write_bytes(content[:20])
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(measured, "write_durably", killed)
        known.keep()
    old = load_measured(tmp_path)
    assert (old.batch, old.inputs["s"].rows) == (0, 10)
    old.take(0, {"s": Sample(10, 0, 90)})
    old.take(1, {"s": Sample(10, 100, 190)})
    assert old.inputs["s"].rows == 20, "a batch that is counted is not counted again"
    old.keep()
    assert load_measured(tmp_path).inputs["s"].rows == 20


def test_a_stream_with_the_name_of_another_begins_anew(tmp_path: Path) -> None:
    write(tmp_path, 0)
    write(tmp_path, 1)
    (tmp_path / "u").mkdir()
    pl.DataFrame({"x": ["a"], "t": [1]}).write_parquet(tmp_path / "u" / "0.parquet")
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        declared(session, tmp_path)
        session.sql(f"CREATE QUERY q INTO parquet('{tmp_path / 'o'}') AS SELECT k FROM s [NOW]")
        session.run()
        assert shown(session)["s", "rate", ""][1] == "measured"
        session.sql("DROP QUERY q; DROP STREAM s")
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        session.sql(
            f"CREATE STREAM u (x VARCHAR, t BIGINT) SOURCE parquet('{tmp_path / 'u'}',"
            " settle => 0) ORDERED BY t"
        )
        assert ("s", "rate", "") not in shown(session)


JOINED = (
    "SELECT a.v AS x, b.v AS y, c.v AS z FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS],"
    " c [RANGE 5 SECONDS] WHERE a.k = b.k AND b.k = c.k"
)


def _three(session: tidemill.Session, root: Path, rates: tuple[int, int, int]) -> None:
    for name, rate in zip("abc", rates, strict=True):
        directory = root / name
        directory.mkdir(exist_ok=True)
        pl.DataFrame({"k": [1, 2], "v": [3, 4], "t": [1, 2]}).write_parquet(directory / "0.parquet")
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{directory}',"
            f" settle => 0) ORDERED BY t HINT (rate => {rate}, distinct(k) => 10)"
        )


def test_a_query_keeps_its_plan_whatever_is_known_later(tmp_path: Path) -> None:
    """What would be planned today is another plan, and other settings make the same one."""
    plans: dict[str, set[str]] = {"kept": set(), "new": set()}
    turns: list[tuple[tuple[int, int, int], str]] = [
        ((1, 1000, 1000), "written"),
        ((1000, 1000, 1), "written"),
        ((1000, 1000, 1), "pulled"),
    ]
    for rates, negation in turns:
        with tidemill.connect(checkpoint=tmp_path / "state", negation=negation) as session:
            _three(session, tmp_path, rates)
            session.sql(f"CREATE QUERY q INTO parquet('{tmp_path / 'out'}') AS {JOINED}")
            session.start()
            session.await_idle()
            plans["kept"].add(str(session.sql("EXPLAIN PHYSICAL q")))
            plans["new"].add(str(session.sql(f"EXPLAIN PHYSICAL {JOINED}")))
            assert not session.warnings
            assert len({row[2] for row in session.versions("q").rows()}) == 1
    assert len(plans["kept"]) == 1
    assert len(plans["new"]) == 2, "or nothing was tried"


def test_the_checkpoint_says_what_was_known_of_a_plan(tmp_path: Path) -> None:
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        _three(session, tmp_path, (1, 2, 3))
        session.sql(f"CREATE QUERY q INTO parquet('{tmp_path / 'out'}') AS {JOINED}")
        session.run()
    (file,) = (tmp_path / "state" / "plans").glob("*.json")
    written = json.loads(file.read_text())
    assert written["statistics"]["inputs"]["c"]["distance"] == pytest.approx(1_000_000 / 3)
    written["statistics"] = [7]
    file.write_text(json.dumps(written))
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        session.run()  # that it cannot be read is no reason to refuse anything
