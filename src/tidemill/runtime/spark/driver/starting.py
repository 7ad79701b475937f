"""What kept Spark from starting, in one sentence and a way on.

Spark itself says it in a hundred lines: of a shell script, of Java, and of whatever failed inside.
Nothing is looked at before it has failed, except what would take Spark minutes to find out.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["java_version", "refuse_what_cannot_start", "start_failure"]

_OLDEST = 17
"""The oldest Java that Spark runs on."""

_GIVE_JAVA = f"install Java {_OLDEST} or newer, and let JAVA_HOME say where it is"
_MASTERS = "write local[*] for this host, spark://host:port, yarn or k8s://…"

_PATIENCE = 5.0
"""How long a master may take to answer, in seconds; Spark itself would wait for a minute."""

_NOISE = re.compile(
    r"\s+at |Picked up |WARNING: |Using Spark's default |Setting default log level"
    r"|To adjust logging level|Error: (Could not create the Java|A fatal exception)"
    r"|Error occurred during initialization of|\S+ \S+ (WARN|INFO) |.*bad array subscript|\s*$"
)
"""Lines that do not say what is wrong."""

_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Where people can tell Java how to start."""

_UNITS = {"": 2**20, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}


def refuse_what_cannot_start(master: str | None, memory: str) -> None:
    """Refuse a master where nothing listens, and more memory than this host has.

    Spark would try a minute for the first, and Java takes any promise until it needs the second.

    Raises:
        RunError: It is so.
    """
    _refuse_memory(memory, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if master is not None and master.startswith("spark://"):
        _refuse_silent(master)


def _refuse_memory(memory: str, there: int) -> None:
    """Refuse what is no amount, or more than there is.

    A host has a little less memory than it is said to have, so that is rounded up.

    >>> _refuse_memory("2g", 1_900 << 20)
    >>> _refuse_memory("64g", 7 << 30)
    Traceback (most recent call last):
    tidemill.errors.RunError: memory "64g" is more than this host has, which is 7g
    hint: write memory="2g", or less than this host has
    """
    found = re.fullmatch(r"(\d+)([bkmgtp]?)b?", memory.strip().lower())
    if found is None or not int(found[1]):
        raise RunError(f'memory "{memory}" is no amount of memory', hint='write memory="2g"')
    host = ceil(there / 2**30)
    if int(found[1]) * _UNITS[found[2]] > host * 2**30:
        raise RunError(
            f'memory "{memory}" is more than this host has, which is {host}g',
            hint='write memory="2g", or less than this host has',
        )


def _refuse_silent(master: str) -> None:
    """Refuse a master of Spark's own kind none of whose addresses takes a connection."""
    reason = ""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise _unknown(master)
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
        else:
            return
    raise _silent(master, reason)


def _silent(master: str, reason: str) -> RunError:
    return RunError(
        f'no Spark answers at "{master}": {reason}',
        hint='start the master, or correct the address; master="local[*]" needs none',
    )


def start_failure(
    error: BaseException,
    log: Path | None,
    *,
    master: str | None,
    memory: str,
    environment: Mapping[str, str] = os.environ,
) -> RunError:
    """Why Spark has not started.

    Args:
        error: What was raised.
        log: What Java, and the programs that start it, have written.
        master: Where Spark was to run.
        memory: How much memory Java was to have.
        environment: The variables they were started with.
    """
    said = "" if log is None else log.read_text(encoding="utf-8", errors="replace")
    way = f"read {log or 'the log of Spark'}"
    if master is not None and "All masters are unresponsive" in said:
        return _silent(master, "what listens there is no master, or one of another version")
    text = _spoken(error)
    if text is not None:
        return _refused(text, master, way)
    home = environment.get("SPARK_HOME")
    if isinstance(error, OSError) and home:
        return RunError(
            f'SPARK_HOME is "{home}", where there is no Spark',
            hint="unset SPARK_HOME to use the Spark that comes with PySpark",
        )
    return _without_java(environment) or _refusing_java(said, environment, memory, master, way)


def _without_java(environment: Mapping[str, str]) -> RunError | None:
    """That there is no Java, if there is none, or none that is new enough."""
    home = environment.get("JAVA_HOME")
    java = shutil.which("java", path=environment.get("PATH", os.defpath))
    if home:
        java = str(Path(home) / "bin" / "java")
        if not os.access(java, os.X_OK) or Path(java).is_dir():
            return RunError(
                f'JAVA_HOME is "{home}", where there is no Java: it has no program bin/java',
                hint=f"set JAVA_HOME to a Java {_OLDEST} or newer, or unset it if PATH has one",
            )
    if java is None:
        return RunError("Spark needs Java, and there is none on PATH", hint=_GIVE_JAVA)
    version = java_version(_answer(java, environment))
    if version is not None and version < _OLDEST:
        return RunError(
            f'Spark needs Java {_OLDEST} or newer, and "{java}" is Java {version}', hint=_GIVE_JAVA
        )
    return None


def _answer(java: str, environment: Mapping[str, str]) -> str:
    """What a Java says when it is asked for its version."""
    try:
        ran = subprocess.run(  # noqa: S603 — what Spark would start
            [java, "-version"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode(errors="replace")


def java_version(said: str) -> int | None:
    """The version of a Java, by what it says of itself.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('version "1.8.0_292"')
    (17, 8)
    >>> java_version("what?")
    """
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return None if found is None else int(found[1])


def _refusing_java(
    said: str, environment: Mapping[str, str], memory: str, master: str | None, way: str
) -> RunError:
    """What a Java that has ended at once has said."""
    found = re.search(r'^Exception in thread "main" [\w.$]+: (.*)', said, re.MULTILINE)
    if found is not None:
        return _refused(found[1], master, way)
    lines = [line.strip() for line in said.splitlines() if not _NOISE.match(line)]
    reason = lines[0].removeprefix("Error: ") if lines else "it says nothing"
    given = next((name for name in _OPTIONS if environment.get(name)), None)
    if f"-Xmx{memory}" in reason or "object heap" in reason:
        hint = 'write memory="2g", or less than this host has'
    elif given is not None:
        hint = f'look at {given}, which is "{environment[given]}"'
    else:
        hint = way
    return RunError(f"Java does not start: {_sentence(reason)}", hint=hint)


def _refused(text: str, master: str | None, way: str) -> RunError:
    """What Spark has said when it ran already."""
    if re.match(r"Master must|Could not parse Master|Invalid master|Asked to run locally", text):
        return _unknown(master or "")
    return RunError(f"Spark does not start: {_sentence(text)}", hint=way)


def _unknown(master: str) -> RunError:
    return RunError(f'Spark does not know the master "{master}"', hint=_MASTERS)


def _spoken(error: BaseException) -> str | None:
    r"""What Java has raised, if that is what was raised.

    >>> _spoken(ValueError("An error occurred.\n: java.lang.Error: it is broken\n\tat a.b"))
    'it is broken'
    >>> _spoken(ValueError(": a.B: it is broken\n\tat a.b\nCaused by: c.D: by a fall\n"))
    'it is broken: by a fall'
    """
    try:
        text = str(error)  # Java is asked for it
    except (Py4JError, OSError):
        return None
    found = re.search(r"^: [\w.$]+(?:: (.*))?", text, re.MULTILINE)
    if found is None:
        return None
    causes: list[str] = re.findall(r"^Caused by: [\w.$]+: (.*)", text, re.MULTILINE)
    said = [found[1] or found[0].removeprefix(": "), *causes[-1:]]
    return ": ".join(dict.fromkeys(line.strip().rstrip(".") for line in said))


def _sentence(text: str) -> str:
    """A line that others have written, as a part of ours.

    >>> _sentence("Something is wrong.")
    'Something is wrong'
    """
    most = 200
    text = text.strip().rstrip(".")
    return text if len(text) <= most else f"{text[: most - 1]}…"
