"""Spark's Java process: whether it has ended, why, and how this process goes on without it.

Java can be killed, by the system when memory is short or by hand. Then every call to Spark fails,
each in its own way, and PySpark would go on to call it.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from socket import socket

__all__ = [
    "forget_java",
    "has_ended",
    "hush_java",
    "java_ended",
    "java_process",
    "telling_of_java",
]

_WAIT = 5.0
"""How long, in seconds, a process that does not answer any more may take to end."""

_TAIL = 1 << 16
"""How many bytes at the end of a log are searched for a reason."""

_REASON = re.compile(r"java\.lang\.OutOfMemoryError[^\r\n]*|SIG[A-Z]+ \(0x[0-9a-f]+\)[^\r\n]*")


def java_process() -> Popen[bytes] | None:
    """The Java process that PySpark has started; ``None`` if it was there before this one."""
    gateway = SparkContext._gateway  # noqa: SLF001 — there is no other way to it
    process = None if gateway is None else gateway.__dict__.get("proc")
    return process if isinstance(process, Popen) else None


@contextmanager
def telling_of_java(java: Popen[bytes] | None, log: str | None) -> Iterator[None]:
    """Tell in one sentence that Java has ended, whichever call to it has failed.

    Args:
        java: The process, if it was started here.
        log: Where Spark writes what it has to say.

    Raises:
        RunError: It has ended.
    """
    try:
        yield
    except Py4JJavaError:
        raise  # it has answered
    except (Py4JError, ConnectionError, EOFError) as error:
        if java is None and isinstance(error, Py4JNetworkError | ConnectionError):
            raise java_ended(java, log) from error
        if not has_ended(java, wait=_WAIT):
            raise
        raise java_ended(java, log) from error


def has_ended(java: Popen[bytes] | None, *, wait: float = 0) -> bool:
    """Whether a Java process that was started here has ended.

    Args:
        java: The process, if it was started here.
        wait: How long it may take, in seconds.
    """
    if java is None:
        return False
    if wait:
        with suppress(TimeoutExpired):
            java.wait(wait)
    return java.poll() is not None


def java_ended(java: Popen[bytes] | None, log: str | None) -> RunError:
    """The error that says that Java has ended, and why if it can be found out."""
    reason = _reason(java, log)
    return RunError(
        f"Spark's Java process has ended{'' if reason is None else f': {reason}'}",
        hint=f"read {log or 'the log of Spark'}, give it more memory if that was the reason, and "
        "start again; a checkpoint goes on where it was",
    )


def forget_java() -> None:
    """Let PySpark start a new Java process when it is asked for one the next time."""
    gateway = SparkContext._gateway  # noqa: SLF001 — PySpark has no public way for all of this
    context = SparkContext._active_spark_context  # noqa: SLF001
    if context is not None:
        context._jsc = None  # noqa: SLF001 — it would be asked to stop
        context.stop()
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkSession._activeSession = None  # noqa: SLF001
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    if gateway is not None:
        with suppress(Py4JError, OSError):
            gateway.shutdown_callback_server()


def hush_java(context: SparkContext) -> None:
    """Leave it to us to tell that Java has ended: PySpark and Py4J would print where they saw it.

    Args:
        context: The connection to it.
    """
    server = context._accumulatorServer  # noqa: SLF001 — there is no other way to it
    report = server.handle_error

    def handle_error(request: socket | tuple[bytes, socket], address: object) -> None:
        if not isinstance(sys.exc_info()[1], EOFError):
            report(request, address)

    vars(server)["handle_error"] = handle_error
    root = logging.getLogger()
    if not any(isinstance(known, _WhileJavaRuns) for known in root.filters):
        root.addFilter(_WhileJavaRuns())


class _WhileJavaRuns(logging.Filter):
    """Drops what Py4J says, straight to the root, about a process that has ended."""

    def filter(self, record: logging.LogRecord) -> bool:
        is_of_py4j = Path(record.pathname).parent.name == "py4j"
        return not (is_of_py4j and has_ended(java_process(), wait=_WAIT))


def _reason(java: Popen[bytes] | None, log: str | None) -> str | None:
    """Why Java has ended: what it has written last, or how the system has ended it."""
    found = [] if log is None else _REASON.findall(_tail(Path(log)))
    if found:
        return str(found[-1])
    code = None if java is None else java.poll()
    if code is None:
        return None
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
