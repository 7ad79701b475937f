"""Failures: what stopped the pipeline, in the words of the part that found it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tidemill.errors import RunError
from tidemill.runtime.connectors import shown_cause
from tidemill.runtime.damage import damaged
from tidemill.runtime.spark.driver.java import telling_of_java

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pyspark.sql.streaming.query import StreamingQuery

    from tidemill.runtime.spark.driver.cluster import Cluster
    from tidemill.runtime.spark.driver.delivery import Delivery

__all__ = ["failure_of", "telling_failures"]


@contextmanager
def telling_failures(
    delivery: Delivery | None, cluster: Cluster | None, secrets: Collection[str] = ()
) -> Iterator[None]:
    """Tell why a pipeline that is started or waited for has stopped.

    Args:
        delivery: What was done with its results, here in the driver.
        cluster: Where it runs.
        secrets: What must not be told.

    Raises:
        RunError: It has stopped.
    """
    log = None if cluster is None or cluster.log is None else str(cluster.log)
    try:
        with telling_of_java(None if cluster is None else cluster.java, log):
            yield
    except (PySparkException, Py4JJavaError) as error:
        found = None if delivery is None else delivery.error
        if isinstance(found, RunError):
            raise found from found.__cause__
        told = _told(str(error), log).hide(secrets)
        raise told from shown_cause(error, secrets)


def failure_of(
    query: StreamingQuery | None,
    delivery: Delivery | None,
    cluster: Cluster | None,
    secrets: Collection[str] = (),
) -> str | None:
    """Why a pipeline has stopped, if it has stopped by itself.

    Args:
        query: The pipeline, if it was started.
        delivery: What was done with its results, here in the driver.
        cluster: Where it runs.
        secrets: What must not be told.
    """
    try:
        with telling_failures(delivery, cluster, secrets):
            error = None if query is None else query.exception()
            if error is not None:
                raise error
    except RunError as told:
        return str(told)
    return None


def _told(text: str, log: str | None) -> RunError:
    r"""The error of ours that Spark's text holds, or the first thing it says.

    >>> _told("… tidemill.errors.RunError: it is broken\nhint: fix it\nat …", None).hint
    'fix it'
    >>> _told("… IOException: No space left on device SQLSTATE …", None).message
    'Spark cannot write to disk: No space left on device'
    """
    found = re.search(r"tidemill\.errors\.\w+: (.*?)(?:\nhint: (.*?))?(?:\n|$)", text)
    if found:
        return RunError(found[1], hint=found[2])
    if found := re.search(_UNWRITABLE, text):
        hint = "make room, and let Spark write to it; nothing is lost"
        return RunError(f"Spark cannot write to disk: {found[0]}", hint=hint)
    if re.search(_UNREADABLE, text):
        return damaged("what Spark has kept cannot be read", _reason(text))
    return RunError(f"Spark stopped: {_reason(text)}", hint=f"read {log or 'the log of Spark'}")


_UNWRITABLE = r"No space left on device|Read-only file system|Disk quota exceeded"
"""What the system says about a disk, and Spark says after it."""

_UNREADABLE = (
    r"CANNOT_LOAD_STATE_STORE|MISSING_STATE_DIRECTORY|MISSING_METADATA_FILE"
    r"|Failed to read log file|batch \d+ doesn't exist"
)
"""What Spark says about files of its own that are missing or damaged."""


def _reason(text: str) -> str:
    """The cause that Spark names last, or the first thing that it says."""
    lines = [line.strip() for line in text.strip().splitlines()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b.*: \S", line)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes or raised or lines)[-1 if causes or raised else 0]
