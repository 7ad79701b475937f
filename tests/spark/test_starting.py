"""Spark that cannot be started says why in one sentence, prints nothing, and leaves nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JError

from tidemill.errors import RunError
from tidemill.runtime.spark.driver.starting import refuse_what_cannot_start, start_failure

if TYPE_CHECKING:
    from pathlib import Path

EXITED = RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited")


def failure(
    said: str, directory: Path, *, master: str = "local[2]", memory: str = "2g", **environment: str
) -> RunError:
    """What is said of a Java that has ended at once."""
    log = directory / "log"
    log.write_text(said, encoding="utf-8")
    return start_failure(EXITED, log, master=master, memory=memory, environment=environment)


def java(directory: Path, text: str) -> str:
    """A home of Java whose only program is a shell script."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(directory)


def test_no_java_at_all(tmp_path: Path) -> None:
    error = failure("JAVA_HOME is not set", tmp_path, PATH=str(tmp_path))
    assert error.message == "Spark needs Java, and there is none on PATH"
    assert error.hint == "install Java 17 or newer, and let JAVA_HOME say where it is"


def test_a_home_that_is_no_home_of_java(tmp_path: Path) -> None:
    error = failure("", tmp_path, JAVA_HOME="/nowhere", PATH=os.environ["PATH"])
    assert error.message.startswith('JAVA_HOME is "/nowhere", where there is no Java')


def test_a_java_that_is_too_old(tmp_path: Path) -> None:
    old = java(tmp_path / "old", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    error = failure("UnsupportedClassVersionError", tmp_path, JAVA_HOME=old, PATH="")
    assert error.message == f'Spark needs Java 17 or newer, and "{old}/bin/java" is Java 11'


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (
            (
                "Picked up JAVA_TOOL_OPTIONS: -XX:NoSuch\nUnrecognized VM option 'NoSuch'\n"
                "Error: Could not create the Java Virtual Machine.\n"
            ),
            "Java does not start: Unrecognized VM option 'NoSuch'",
            'look at JAVA_TOOL_OPTIONS, which is "-XX:NoSuch"',
        ),
        (
            (
                "Error occurred during initialization of VM\n"
                "Could not reserve enough space for 107373108658176KB object heap\n"
            ),
            "Java does not start: Could not reserve enough space for 107373108658176KB object heap",
            'write memory="2g", or less than this host has',
        ),
        (
            (
                'WARNING: Using incubator modules\nException in thread "main" '
                "org.apache.spark.SparkException: Master must either be yarn or start with spark\n"
            ),
            'Spark does not know the master "lokal"',
            "write local[*] for this host, spark://host:port, yarn or k8s://…",
        ),
        (
            (
                'Exception in thread "main" org.apache.spark.SparkException: When running with '
                "master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the"
                " environment.\n"
            ),
            (
                "Spark does not start: When running with master 'yarn' either HADOOP_CONF_DIR or "
                "YARN_CONF_DIR must be set in the environment"
            ),
            "read .*/log",
        ),
        ("", "Java does not start: it says nothing", "look at JAVA_TOOL_OPTIONS, .*"),
    ],
)
def test_what_java_says_is_one_sentence(said: str, message: str, hint: str, tmp_path: Path) -> None:
    home = java(tmp_path / "java", "exit 1")
    options = {"JAVA_HOME": home, "JAVA_TOOL_OPTIONS": "-XX:NoSuch"}
    error = failure(said, tmp_path, master="lokal", **options)
    assert error.message == message
    assert error.hint is not None
    assert error.hint == hint or re.fullmatch(hint, error.hint)


@pytest.mark.parametrize(
    ("raised", "said", "message"),
    [
        (
            ": org.apache.spark.SparkException: Could not parse Master URL: 'local[abc]'\n\tat a",
            "",
            'Spark does not know the master "spark://a:1"',
        ),
        (
            ": io.Client: An error has occurred.\n\tat a.b\nCaused by: a.B: Connection refused\n",
            "",
            "Spark does not start: An error has occurred: Connection refused",
        ),
        (
            ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n",
            "ERROR: Application has been killed. Reason: All masters are unresponsive! Giving up.",
            (
                'no Spark answers at "spark://a:1": what listens there is no master, or one of'
                " another version"
            ),
        ),
    ],
)
def test_what_spark_raises_is_one_sentence(
    raised: str, said: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(f"much\n{said}\n" * 100, encoding="utf-8")
    calling = Py4JError(
        f"An error occurred while calling None.org.apache.JavaSparkContext.\n{raised}"
    )
    error = start_failure(calling, tmp_path / "log", master="spark://a:1", memory="2g")
    assert error.message == message
    assert error.hint


def test_a_home_without_spark(tmp_path: Path) -> None:
    error = start_failure(
        FileNotFoundError("spark-submit"),
        None,
        master="local[2]",
        memory="2g",
        environment={"SPARK_HOME": str(tmp_path)},
    )
    assert error.message == f'SPARK_HOME is "{tmp_path}", where there is no Spark'


@pytest.mark.parametrize(
    ("master", "memory", "message"),
    [
        ("spark://127.0.0.1:1", "1g", 'no Spark answers at "spark://127.0.0.1:1": Connection ref'),
        ("spark://127.0.0.1:1,127.0.0.1:2", "1g", "no Spark answers at"),
        ("spark://nonsense", "1g", 'Spark does not know the master "spark://nonsense"'),
        ("local[2]", "xyz", 'memory "xyz" is no amount of memory'),
        ("local[2]", "0g", 'memory "0g" is no amount of memory'),
        ("local[2]", "900t", 'memory "900t" is more than this host has'),
    ],
)
def test_what_would_take_long_is_refused_at_once(master: str, memory: str, message: str) -> None:
    with pytest.raises(RunError, match=re.escape(message)):
        refuse_what_cannot_start(master, memory)
    refuse_what_cannot_start("local[2]", "512m")


ATTEMPTS = """
import json, os, sys
from pathlib import Path
import polars as pl
import tidemill

rows, attempts = pl.DataFrame({"k": [7], "t": [1]}), []
old, crashing = sys.argv[1:]

def tried(master="local[1]", memory="600m", **environment):
    os.environ.update(environment)
    try:
        session = tidemill.connect(engine="spark", master=master, memory=memory)
        session.sql("CREATE STREAM s (k BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
        session.sql("CREATE QUERY q AS SELECT k FROM s")
        session.put("s", rows)
        session.run()
        said = session.answer("q").results().rows()
    except tidemill.RunError as error:
        assert error.__suppress_context__
        said = str(error)
    finally:
        for name in environment:
            os.environ.pop(name)
    children = " ".join(file.read_text() for file in Path("/proc/self/task").glob("*/children"))
    attempts.append([said, children.split()])

tried(JAVA_HOME="/nowhere")
tried(JAVA_HOME=old)
tried(JAVA_HOME=crashing)
tried(JAVA_TOOL_OPTIONS="-XX:NoSuch")
tried(master="local[abc]")
tried()
sys.stdout.write("answers: " + json.dumps(attempts))
"""


@pytest.mark.spark
@pytest.mark.soak
def test_nothing_is_left_of_an_attempt(tmp_path: Path) -> None:
    old = java(tmp_path / "old", """echo 'openjdk version "11.0.2" 2019-01-15' >&2; exit 1""")
    crashing = java(tmp_path / "crashing", "echo '# Internal Error (os.cpp:1)'; kill -ABRT $$")
    run = subprocess.run(  # noqa: S603 — a text of this file
        [sys.executable, "-c", ATTEMPTS, old, crashing],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.startswith("answers: [")
    *failures, (answer, java_processes) = json.loads(run.stdout.removeprefix("answers: "))
    assert [said.partition("\n")[0] for said, _ in failures] == [
        'JAVA_HOME is "/nowhere", where there is no Java: it has no program bin/java',
        f'Spark needs Java 17 or newer, and "{old}/bin/java" is Java 11',
        "Java does not start: # Internal Error (os.cpp:1)",
        "Java does not start: Unrecognized VM option 'NoSuch'",
        'Spark does not know the master "local[abc]"',
    ]
    assert all(said.count("\n") == 1 and "\nhint: " in said for said, _ in failures)
    assert [children for _, children in failures] == [[]] * len(failures)
    assert answer == [[7, 1, 2]]
    assert len(java_processes) == 1


def test_the_command_says_it_in_two_lines(tmp_path: Path) -> None:
    script = tmp_path / "q.sql"
    script.write_text(
        f"CREATE STREAM s (t BIGINT) SOURCE csv('{tmp_path}') ORDERED BY t; SELECT t FROM s;",
        encoding="utf-8",
    )
    run = subprocess.run(  # noqa: S603 — a command of ours
        [sys.executable, "-m", "tidemill", "run", str(script), "--engine", "spark"],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.splitlines() == [
        f'JAVA_HOME is "{tmp_path}", where there is no Java: it has no program bin/java',
        "hint: set JAVA_HOME to a Java 17 or newer, or unset it if PATH has one",
    ]
