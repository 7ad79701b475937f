"""Places that rows come from, as the sources of statements say.

What a statement says was checked when it was created (``connectors/check.py``); here it becomes
what readers take.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.connectors.check import arguments_of
from tidemill.connectors.connector import Use
from tidemill.connectors.options import option_text
from tidemill.connectors.spark_format import SPARK_FORMAT
from tidemill.errors import RunError
from tidemill.masking import masked_prose, without_secrets
from tidemill.runtime.files import READERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    import polars as pl

    from tidemill.connectors.check import Arguments
    from tidemill.lang.statements import ConnectorCall

__all__ = ["Place", "failure", "passed_options", "shown_cause", "source_place"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from.

    Attributes:
        kind: The name of the connector.
        path: Where it is, if it is said; for ``memory``, the name of the frame.
        files_per_batch: How many files make a batch.
        settle: For how many seconds a file must not have changed before it is read; ``None`` for
            as long as files usually do.
        format: For formats of Spark's, what Spark calls it.
        options: What else is said, for formats of Spark's; not in the ``repr``, as some are
            secret.
        batches: For a connector of another package, how the local engine reads it.
    """

    kind: str
    path: str = ""
    files_per_batch: int = 1
    settle: float | None = None
    format: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    batches: Callable[[], Iterable[pl.DataFrame]] | None = field(default=None, repr=False)


def source_place(name: str, source: ConnectorCall) -> Place:
    """Where the rows of a stream or relation come from.

    Args:
        name: The stream or relation.
        source: What its statement says, which was checked.
    """
    arguments = arguments_of(source, Use.STREAM)
    return _PLACES.get(arguments.connector.name, _installed)(name, arguments)


def passed_options(arguments: Arguments) -> dict[str, str]:
    """The options that Spark gets for a connector of another package."""
    return {name: option_text(value) for name, value in arguments.values().items()}


def failure(what: str, error: Exception, secrets: Collection[str], *, hint: str) -> RunError:
    """What code that is not ours has raised, without secrets."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return RunError(f"{what}: {reason}", hint=hint).hide(secrets)


def shown_cause(error: Exception, secrets: Collection[str]) -> Exception | None:
    """The error, to be shown as a cause; none if its text holds a secret."""
    text = str(error)
    return error if without_secrets(masked_prose(text), secrets) == text else None


def _memory(name: str, arguments: Arguments) -> Place:
    return Place("memory", arguments.text("name") or name)


def _files(_: str, arguments: Arguments) -> Place:
    settle = arguments.given.get("settle")
    return Place(
        arguments.connector.name,
        arguments.text("path"),
        arguments.whole("files_per_batch"),
        None if settle is None else float(settle),
    )


def _format(_: str, arguments: Arguments) -> Place:
    return Place(
        SPARK_FORMAT.name,
        arguments.text("path"),
        format=arguments.text("format"),
        options=arguments.passed,
    )


def _installed(_: str, arguments: Arguments) -> Place:
    source = arguments.connector.source
    assert source is not None, "it was checked"
    read, given = source.read, arguments.values()
    return Place(
        arguments.connector.name,
        format=source.format or "",
        options=passed_options(arguments),
        batches=None if read is None else lambda: read(given),
    )


_PLACES: dict[str, Callable[[str, Arguments], Place]] = {
    "memory": _memory,
    **dict.fromkeys(READERS, _files),
    SPARK_FORMAT.name: _format,
}
"""What the source of each connector means."""
