"""Failures: what stopped the pipeline, in the words of whoever found it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from tidemill.errors import RunError
from tidemill.masking import masked_prose, without_secrets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pyspark.sql.streaming.query import StreamingQuery

    from tidemill.runtime.spark.delivery import Delivery

__all__ = ["failure_of", "telling_failures", "without_traces"]


@contextmanager
def telling_failures(
    delivery: Delivery | None, log: str | None, secrets: Collection[str] = ()
) -> Iterator[None]:
    """Tell why a pipeline that is waited for has stopped.

    Args:
        delivery: What was done with its results, here in the driver.
        log: Where Spark writes what it has to say.
        secrets: What must not be told.

    Raises:
        RunError: It has stopped.
    """
    try:
        yield
    except StreamingQueryException as error:
        found = None if delivery is None else delivery.error
        if isinstance(found, RunError):
            raise found from found.__cause__
        told = _told(str(error), log).hide(secrets)
        raise told from without_traces(error, secrets)


def failure_of(
    query: StreamingQuery | None,
    delivery: Delivery | None,
    log: str | None,
    secrets: Collection[str] = (),
) -> str | None:
    """Why a pipeline has stopped, if it has stopped by itself.

    Args:
        query: The pipeline, if it was started.
        delivery: What was done with its results, here in the driver.
        log: Where Spark writes what it has to say.
        secrets: What must not be told.
    """
    error = None if query is None else query.exception()
    if error is None:
        return None
    try:
        with telling_failures(delivery, log, secrets):
            raise error
    except RunError as told:
        return str(told)


def without_traces(error: Exception, secrets: Collection[str] = ()) -> Exception | None:
    """The error, to be shown as a cause; none if its text holds a secret."""
    text = str(error)
    return error if without_secrets(masked_prose(text), secrets) == text else None


def _told(text: str, log: str | None) -> RunError:
    r"""The error of ours that Spark's text holds, or the first thing it says.

    >>> _told("… tidemill.errors.RunError: it is broken\nhint: mend it\nat …", None).hint
    'mend it'
    """
    found = re.search(r"tidemill\.errors\.\w+: (.*?)(?:\nhint: (.*?))?(?:\n|$)", text)
    if found:
        return RunError(found[1], hint=found[2])
    lines = [line.strip() for line in text.strip().splitlines()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b.*: \S", line)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    reason = (causes or raised or lines)[-1 if causes or raised else 0]
    return RunError(f"Spark stopped: {reason}", hint=f"read {log or 'the log of Spark'}")
