"""Places that rows come from and go to, as a statement names them.

A source or sink is written like a call: ``parquet(path => 'in', files_per_batch => 2)``. What comes
first may stand without its name. A kind that is not one of ours is a format of Spark's, which gets
its options as they were written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.errors import RunError, suggestion
from tidemill.runtime.files import READERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.lang.statements import ConnectorCall

__all__ = ["Place", "path_and_options", "source_place"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from.

    Attributes:
        kind: What kind of place, in lower case; or a format, as Spark calls it.
        path: Where it is, if it is said; for ``memory``, the name of the frame.
        files_per_batch: How many files make a batch.
        settle: For how many seconds a file must not have changed before it is read; ``None`` for
            as long as files usually do.
        options: What else is said, for kinds that Spark knows; not in the ``repr``, as some are
            secret.
    """

    kind: str
    path: str
    files_per_batch: int = 1
    settle: float | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def source_place(name: str, source: ConnectorCall) -> Place:
    """Where the rows of a stream or relation come from.

    Raises:
        RunError: An argument is missing, wrong or not known.
    """
    kind = source.name.text.lower()
    if kind not in READERS and kind != "memory":
        path, options = path_and_options(f'the source of "{name}"', source)
        return Place(source.name.text, path, options=options)
    first, known = ("name", ("name",)) if kind == "memory" else ("path", _FILE_ARGUMENTS)
    given = dict(source.named)
    if len(source.positional) + (first in given) > 1:
        raise RunError(f'the source of "{name}" takes one {first}', hint=f"write {kind}('…')")
    unknown = [key for key in given if key not in known]
    if unknown:
        raise RunError(
            f'the source of "{name}" takes no argument "{unknown[0]}"',
            hint=suggestion(unknown[0], known, what="arguments"),
        )
    if source.positional:
        given[first] = source.positional[0]
    if first not in given:
        raise RunError(f'the source of "{name}" needs a {first}', hint=f"write {kind}('…')")
    size = given.get("files_per_batch", 1)
    if not isinstance(size, int) or size < 1:
        raise RunError(f'files_per_batch of "{name}" must be a positive number', hint="write 1")
    settle = given.get("settle")
    if settle is not None and (not isinstance(settle, int | float) or settle < 0):
        raise RunError(f'settle of "{name}" must be a number of seconds', hint="write 1, or 0")
    return Place(kind, str(given[first]), size, settle)


def path_and_options(what: str, call: ConnectorCall) -> tuple[str, dict[str, str]]:
    """The path and the options of a format of Spark's; without a path the text is empty.

    Args:
        what: The source or sink, for errors.
        call: What is said about it.

    Raises:
        RunError: The path is no text, or there is more than one.
    """
    options = dict(call.named)
    named = [options.pop("path")] if "path" in options else []
    paths = [*call.positional, *named]
    if len(paths) > 1 or not all(isinstance(path, str) for path in paths):
        raise RunError(
            f"{what} takes one path, which is a text",
            hint=f"write {call.name.text}('…', option => value)",
        )
    path = str(paths[0]) if paths else ""
    return path, {name: _option(value) for name, value in options.items()}


_FILE_ARGUMENTS = ("path", "files_per_batch", "settle")


def _option(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
