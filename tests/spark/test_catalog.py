"""A checkpoint on Spark knows its streams and queries: in a new process, and after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

import tidemill
from running.shop import NAMED, TOTAL, define, expected, write
from spark.on_spark import MASTER
from tidemill.catalog.durable import Written
from tidemill.runtime.statement_log import StatementLog

pytestmark = pytest.mark.spark

SHORT = "SELECT k, SUM(v) AS total FROM s [RANGE 5] GROUP BY k"
LONGER = SHORT.replace("5", "9")
PLAIN = "SELECT k, twice(v) AS d FROM large [NOW]"
SECRET = "moonlight"  # noqa: S105 — that of a test

FIRST = f"""
import sys
import tidemill
from pathlib import Path
from running.shop import NAMED, TOTAL, define

directory, checkpoint = sys.argv[1:]
session = tidemill.connect(
    engine="spark", master="local[2]", partitions=2, checkpoint=checkpoint
)
define(session, Path(directory))
session.sql('''
    CREATE STREAM large AS SELECT k, v, t FROM s WHERE v > 3;
    CREATE FUNCTION twice(x BIGINT) AS 2 * x
''')
session.callback("tell", lambda rows, batch: None)
session.sql(f"CREATE QUERY total INTO parquet('{{directory}}-out') AS {{TOTAL}}")
session.sql("CREATE QUERY told INTO callback('tell') AS {SHORT}")
session.sql(f"CREATE QUERY named AS {{NAMED}}")
session.sql("{PLAIN}")
session.start()
session.await_idle()
session.sql("CREATE QUERY changed AS {SHORT}")  # while it runs
session.sql("ALTER QUERY changed AS {LONGER}")
session.sql("CREATE QUERY gone AS {SHORT}")
session.sql("DROP QUERY gone")
print("running", flush=True)
sys.stdin.readline()
session.stop()
"""

KILLED = """
import os, signal, sys
import tidemill
from tidemill.runtime.spark.driver.job import SparkJob

checkpoint, statement = sys.argv[1:]
session = tidemill.connect(
    engine="spark", master="local[2]", partitions=2, checkpoint=checkpoint
)
session.start()
session.await_idle()
SparkJob.change = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
session.sql(statement)
"""


def started(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Our own program in a process of its own."""
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    return subprocess.Popen(  # noqa: S603 — this interpreter
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def connected(checkpoint: Path) -> tidemill.Session:
    return tidemill.connect(engine="spark", master=MASTER, partitions=2, checkpoint=checkpoint)


def shown(session: tidemill.Session, kind: str) -> list[str]:
    found = session.sql(f"SHOW {kind}")
    assert isinstance(found, pl.DataFrame)
    return found["name"].to_list()


def same(found: pl.DataFrame, wanted: pl.DataFrame, since: int, until: int) -> bool:
    """Whether the changes between two instants are the same."""
    due = (pl.col("time") >= since) & (pl.col("time") < until)
    order = wanted.columns
    return found.filter(due).sort(order).equals(wanted.filter(due).sort(order))


def test_a_new_process_knows_everything_and_goes_on(tmp_path: Path) -> None:
    directory, checkpoint = tmp_path / "in", tmp_path / "state"
    write(directory, 0, 50)
    with started(FIRST, str(directory), str(checkpoint)) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "running\n"
        with pytest.raises(tidemill.RunError, match=f"is in use by process {first.pid} of"):
            connected(checkpoint)
        first.communicate("\n", timeout=60)
        assert first.returncode == 0
    with connected(checkpoint) as session:
        assert shown(session, "STREAMS") == ["large", "s"]
        assert shown(session, "RELATIONS") == ["r"]
        assert shown(session, "FUNCTIONS")[0] == "twice"
        assert shown(session, "QUERIES") == ["changed", "named", "query_4", "told", "total"]
        # The rows of the relation have been read, and are kept; a function is not.
        with pytest.raises(tidemill.RunError) as caught:
            session.start()
        assert caught.value.message == (
            'there is no callback "tell", which query "told" is to call'
        )
        rows: list[pl.DataFrame] = []
        session.callback("tell", lambda frame, _: rows.append(frame))
        assert session.query(PLAIN).name == "query_4", "a script can be run again"
        assert session.query(f"CREATE QUERY changed AS {SHORT}").name == "changed"
        session.start()
        write(directory, 50, 100)
        session.await_idle()
        since, until = 60, 99
        texts = {"total": TOTAL, "named": NAMED, "changed": LONGER}
        for name, text in texts.items():
            assert same(session.find(name).changes(), expected(directory, text), since, until), name
        assert session.find("query_4").results()["start"].min() == 51
        assert session.find("total").results()["start"].min() == 0, "files have it all"
        parts = session.find("changed").versions().select("version", "fresh").rows()
        assert parts == [(1, 50), (2, 50)]
        assert rows
        assert pl.concat(rows).height


@pytest.mark.soak
def test_a_kill_between_the_log_and_the_effect(tmp_path: Path) -> None:
    directory, checkpoint = tmp_path / "in", tmp_path / "state"
    write(directory, 0, 50)
    with connected(checkpoint) as session:
        define(session, directory)
        session.sql(f"CREATE QUERY q AS {SHORT}")
    for statement in (f"CREATE QUERY p AS {LONGER}", "DROP QUERY q"):
        with started(KILLED, str(checkpoint), statement) as killed:
            killed.communicate(timeout=120)
        assert killed.returncode == -signal.SIGKILL
        with suppress(ProcessLookupError):  # Java lives on for a moment
            os.killpg(killed.pid, signal.SIGKILL)
        last = StatementLog(checkpoint).read()[-1]
        assert isinstance(last, Written)
        assert last.text == statement
    with connected(checkpoint) as session:
        assert shown(session, "QUERIES") == ["p"]
        session.start()
        write(directory, 50, 100)
        session.await_idle()
        assert same(session.find("p").changes(), expected(directory, LONGER), 60, 99)


def test_no_secret_is_in_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pipeline that uses it in a format of Spark's."""
    monkeypatch.setenv("OUT_PASSWORD", SECRET)
    write(tmp_path / "in", 0, 50)
    with connected(tmp_path / "state") as session:
        define(session, tmp_path / "in")
        into = f"spark('csv', '{tmp_path / 'out'}', password => "
        with pytest.raises(tidemill.BindError, match="holds a secret") as caught:
            session.sql(f"CREATE QUERY q INTO {into}'{SECRET}') AS {SHORT}")
        assert SECRET not in str(caught.value)
        into = f"spark('csv', '{tmp_path / 'out'}', password => env('OUT_PASSWORD'))"
        session.sql(f"CREATE QUERY q INTO {into} AS {SHORT}")
        session.run()
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
