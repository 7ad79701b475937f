"""``tidemill run`` shows progress and answers, and ends with a code that says how it went."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

import tidemill
from cli.shop import GROWING, write_shop
from kept import kept_session
from tidemill.cli.app import app
from tidemill.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

    from tidemill.runtime.progress import Progress


def run(script: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["run", str(script), "--engine", "local", *options])


def test_the_answer_is_shown_with_the_time_it_is_valid(tmp_path: Path) -> None:
    result = run(write_shop(tmp_path))
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["pen", "10", "2026-03-01", "12:00:00", "2026-03-01", "12:03:00"] in lines
    assert ["cup", "5", "2026-03-01", "12:01:00", "2026-03-01", "12:04:00"] in lines
    assert "top: 3 rows" in result.stdout


def test_the_summary_counts_what_came_and_what_went(tmp_path: Path) -> None:
    result = run(write_shop(tmp_path))
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["bid", "3"] in [line[:2] for line in lines]
    assert "1 batch" in result.stdout
    assert "3 rows in" in result.stdout


def test_output_to_a_file_has_no_control_sequences(tmp_path: Path) -> None:
    assert "\x1b" not in run(write_shop(tmp_path)).stdout


def test_so_many_rows_are_shown_as_asked_for(tmp_path: Path) -> None:
    script = write_shop(tmp_path)
    assert "top: last 1 of 3 rows" in run(script, "--rows", "1").stdout
    assert "12:03:00" not in run(script, "--rows", "0").stdout


def test_the_latest_rows_are_shown_and_not_the_oldest(tmp_path: Path) -> None:
    shown = run(write_shop(tmp_path), "--rows", "1").stdout.partition("top: ")[2]
    lines = [line.split() for line in shown.splitlines()]
    assert lines[3:] == [["pen", "8", "2026-03-01", "12:03:00", "2026-03-01", "12:06:00"]]


def test_what_stays_for_ever_is_shown_as_it_is_in_the_end(tmp_path: Path) -> None:
    text = "SELECT item, COUNT(*) AS n FROM bid [RANGE UNBOUNDED] GROUP BY item;"
    more = f"CREATE QUERY number AS {text}"
    result = run(write_shop(tmp_path, more), "--unbounded-state")
    shown = result.stdout.partition("number in the end: ")[2].splitlines()[:5]
    assert [line.split() for line in (shown[0], *shown[3:])] == [
        ["2", "rows"],
        ["cup", "1"],
        ["pen", "2"],
    ]


def test_where_answers_go_is_said(tmp_path: Path) -> None:
    more = f"CREATE QUERY dear INTO parquet('{tmp_path}/dear') AS SELECT price FROM bid;"
    lines = [line.split() for line in run(write_shop(tmp_path, more)).stdout.splitlines()]
    queries = {line[0]: line[3:] for line in lines if line and line[0] in {"dear", "top"}}
    assert queries == {"dear": ["parquet", f"{tmp_path}/dear"], "top": ["memory"]}


def test_an_answer_with_a_sink_is_written_and_not_shown(tmp_path: Path) -> None:
    more = f"CREATE QUERY dear INTO parquet('{tmp_path}/dear') AS SELECT price FROM bid;"
    result = run(write_shop(tmp_path, more))
    assert result.exit_code == 0, result.output
    assert "dear:" not in result.stdout
    assert sorted(pl.read_parquet(tmp_path / "dear/**/*.parquet")["price"]) == [5, 8, 10]


def test_a_second_run_says_what_to_do_with_the_files_of_the_first(tmp_path: Path) -> None:
    more = f"CREATE QUERY dear INTO parquet('{tmp_path}/dear') AS SELECT price FROM bid;"
    assert run(write_shop(tmp_path, more)).exit_code == 0
    files = {path: path.read_bytes() for path in (tmp_path / "dear").rglob("*.*")}
    result = run(tmp_path / "shop.sql")
    assert result.exit_code == 1
    assert "hint: choose another directory, remove this one, or write replace => true" in (
        " ".join(result.stderr.split())
    )
    assert {path: path.read_bytes() for path in (tmp_path / "dear").rglob("*.*")} == files


def test_what_goes_to_the_console_is_printed(tmp_path: Path) -> None:
    more = "CREATE QUERY dear INTO console() AS SELECT item, price FROM bid WHERE price > 8;"
    result = run(write_shop(tmp_path, more))
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["dear,", "batch", "0"] in lines
    assert ["pen", "10", "2026-03-01", "12:00:00", "2026-03-01", "12:00:00.000001"] in lines


def test_a_trigger_is_for_runs_without_an_end(tmp_path: Path) -> None:
    script = write_shop(tmp_path)
    result = run(script, "--trigger", "5")
    assert result.exit_code == 1
    assert "hint: add --forever" in result.stderr
    assert run(script, "--trigger", "-1").exit_code == 2


def test_brackets_and_colons_mean_themselves(tmp_path: Path) -> None:
    more = "CREATE QUERY odd AS SELECT item || '[/red] :smile:' AS \"[bold]\" FROM bid;"
    result = run(write_shop(tmp_path, more))
    assert result.exit_code == 0, result.output
    assert "pen[/red] :smile:" in result.stdout
    assert "[bold]" in result.stdout


def test_partitions_do_not_change_the_answer(tmp_path: Path) -> None:
    script = write_shop(tmp_path)
    answers = [run(script, "--partitions", n).stdout.partition("top: ")[2] for n in ("1", "3")]
    assert answers[0] == answers[1] != ""


def test_what_the_last_statement_gives_is_shown(tmp_path: Path) -> None:
    result = run(write_shop(tmp_path, "EXPLAIN SELECT item FROM bid WHERE price > 1;"))
    assert "Filter price > 1" in result.stdout


def test_a_mistake_is_shown_with_its_place_and_without_a_traceback(tmp_path: Path) -> None:
    result = run(write_shop(tmp_path, "SELECT prise FROM bid;"))
    assert result.exit_code == 1
    assert result.stderr.startswith('column "prise" does not exist\n   5 | SELECT prise FROM bid')
    assert 'hint: did you mean "price"?' in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_a_source_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    script = write_shop(tmp_path)
    for file in (tmp_path / "bids").iterdir():
        file.unlink()
    result = run(script)
    assert result.exit_code == 1
    assert 'there is nothing to read for "bid"' in result.stderr


def test_a_file_without_a_query_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "empty.sql"
    script.write_text("CREATE STREAM s (x INTEGER) SOURCE memory('s');", encoding="utf-8")
    result = run(script)
    assert result.exit_code == 1
    assert "no query" in result.stderr


def test_a_missing_file_is_wrong_use(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere.sql")
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_a_file_that_is_no_text_is_wrong_use(tmp_path: Path) -> None:
    script = tmp_path / "binary.sql"
    script.write_bytes(b"\xff\xfe\xff")
    result = run(script)
    assert result.exit_code == 2
    assert "UTF-8" in result.stderr


def test_the_local_engine_says_which_options_need_spark(tmp_path: Path) -> None:
    result = run(write_shop(tmp_path), "--master", "spark://127.0.0.1:7077")
    assert result.exit_code == 1
    assert result.stderr == "--master needs Spark\nhint: add --engine spark\n"


def test_the_same_command_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    script = tmp_path / "counts.sql"
    script.write_text(
        f"CREATE STREAM s (k BIGINT, t BIGINT) SOURCE csv('{tmp_path / 'in'}', settle => 0) "
        f"ORDERED BY t; CREATE QUERY q INTO csv('{tmp_path / 'out'}') AS SELECT k FROM s;"
    )
    state = str(tmp_path / "state")
    for number, options in enumerate([(), ("--once",), ("--end",)]):
        (tmp_path / "in" / f"{number}.csv").write_text(f"k,t\n{number},{number}\n")
        result = run(script, "--checkpoint", state, *options)
        assert result.exit_code == 0, result.output
        assert ("goes on from there" in result.stdout) is (number < 2)
    parts = sorted((tmp_path / "out").glob("batch=*/*.csv"))
    assert [part.read_text().splitlines()[1][0] for part in parts] == ["0", "1", "2"]
    assert "has been run to the end" in run(script, "--checkpoint", state, "--forever").stderr


def test_a_run_has_one_way_to_end(tmp_path: Path) -> None:
    script = write_shop(tmp_path)
    assert run(script, "--end").exit_code == run(script, "--until-end").exit_code == 0
    result = run(script, "--end", "--once")
    assert result.exit_code == 1
    assert "hint: choose one of them" in result.stderr
    result = run(script, "--once")
    assert result.exit_code == 1
    assert "hint: add --checkpoint DIR" in result.stderr


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ((), True),
        (("--end",), True),
        (("--engine", "spark", "--checkpoint", "state"), False),
        (("--engine", "spark", "--checkpoint", "state", "--once"), False),
        (("--engine", "spark", "--checkpoint", "state", "--end"), True),
    ],
)
def test_a_run_on_a_checkpoint_ends_the_streams_if_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], *, end: bool
) -> None:
    asked: list[bool | None] = []
    local = partial(tidemill.connect, engine="local")

    def ran(session: Session, *, end: bool | None = None) -> None:
        asked.append(end)
        real(session)

    real = Session.run
    monkeypatch.setattr(Session, "run", ran)
    monkeypatch.setattr("tidemill.cli.run.connect", lambda **_: local())
    result = run(write_shop(tmp_path), *options)
    assert result.exit_code == 0, result.output
    assert asked == [end]
    assert ("the same command goes on from there, with state" in result.stdout) is not end


def test_a_checkpoint_goes_on_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.cli.run.connect", lambda **said: kept_session(said["checkpoint"]))
    state = ("--engine", "spark", "--checkpoint", str(tmp_path / "state"), "--end")
    command = CliRunner()
    result = command.invoke(app, ["run", *state])
    assert result.exit_code == 1
    assert "the checkpoint has no query to run" in result.stderr
    assert not (tmp_path / "state").exists()
    script = str(write_shop(tmp_path))
    for arguments in ([script], [script], []):  # equal statements are no error
        result = command.invoke(app, ["run", *arguments, *state])
        assert result.exit_code == 0, result.output
        assert "top: 3 rows" in result.stdout


def test_without_a_file_there_must_be_a_checkpoint() -> None:
    result = CliRunner().invoke(app, ["run"])
    assert result.exit_code == 1
    assert "there is nothing to run" in result.stderr
    assert "hint: name a file, or write --checkpoint DIR to go on" in result.stderr


def test_growing_state_must_be_asked_for(tmp_path: Path) -> None:
    script = write_shop(tmp_path, GROWING)
    assert run(script).exit_code == 1
    assert run(script, "--unbounded-state").exit_code == 0


def test_ctrl_c_says_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = Session.progress, iter((True,))

    def interrupted(session: Session) -> Progress:
        if next(calls, False):
            raise KeyboardInterrupt
        return real(session)

    monkeypatch.setattr(Session, "progress", interrupted)
    result = run(write_shop(tmp_path))
    assert result.exit_code == 130
    assert "stopped after" in result.stdout
    assert "bid up to" in result.stdout
    assert "top" in result.stdout.partition("bid up to")[2], "what is known of the answer is shown"
