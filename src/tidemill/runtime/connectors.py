"""Places that rows come from and go to, as a statement names them.

A source or sink is written like a call: ``parquet(path => 'in', files_per_batch => 2)``. What comes
first may stand without its name. Each runtime says which kinds it knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.errors import RunError, suggestion
from tidemill.runtime.files import READERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.lang.statements import ConnectorCall

__all__ = ["Place", "source_place"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from.

    Attributes:
        kind: What kind of place, in lower case.
        path: Where it is; for ``memory``, the name of the frame.
        files_per_batch: How many files make a batch.
        options: What else is said, for kinds that Spark knows.
    """

    kind: str
    path: str
    files_per_batch: int = 1
    options: Mapping[str, str] = field(default_factory=dict)


def source_place(name: str, source: ConnectorCall) -> Place:
    """Where the rows of a stream or relation come from.

    Raises:
        RunError: An argument is missing, wrong or not known.
    """
    kind = source.name.text.lower()
    if kind not in READERS and kind != "memory":
        named = dict(source.named)
        path = source.positional[0] if source.positional else named.pop("path", "")
        return Place(kind, str(path), options={k: _option(v) for k, v in named.items()})
    first, known = ("name", ("name",)) if kind == "memory" else ("path", _FILE_ARGUMENTS)
    if len(source.positional) > 1:
        raise RunError(f'the source of "{name}" takes one {first}', hint=f"write {kind}('…')")
    given = dict(source.named)
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
    return Place(kind, str(given[first]), size)


_FILE_ARGUMENTS = ("path", "files_per_batch")


def _option(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
