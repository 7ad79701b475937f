"""Damage: whether a file of a checkpoint is what was written; the errors that say that it is not.

Only the last line of a file of lines can be cut short, by a kill or a loss of power, and nothing
has been built on it yet. Anything else that is not as it was written is an error that names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from types import UnionType
from typing import TYPE_CHECKING, get_args, get_origin, get_type_hints

from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["damaged", "json_lines", "require_types", "telling_where"]


def damaged(what: str, why: object) -> RunError:
    """The error that says that a part of a checkpoint is not what was written."""
    return RunError(
        f"the checkpoint is damaged: {what}: {why}",
        hint="restore the whole checkpoint from a copy, or choose a new one",
    )


@contextmanager
def telling_where(directory: Path | str | None) -> Iterator[None]:
    """Tell in our words that a checkpoint cannot be read or written.

    Args:
        directory: The checkpoint; ``None`` if it is in the temporary folder.

    Raises:
        RunError: It cannot.
    """
    try:
        yield
    except ConnectionError:
        raise  # of Java, not of a disk
    except OSError as error:
        where = "in the temporary folder" if directory is None else f'"{directory}"'
        raise RunError(
            f"the checkpoint {where} cannot be read or written: {error}",
            hint="let this user write to it, and make room; nothing is lost",
        ) from error


def json_lines(path: Path) -> Iterator[object]:
    """The lines of a file, without the last if it was cut short.

    Raises:
        RunError: A line is not JSON.
    """
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            yield json.loads(line.decode())
        except ValueError as error:  # not UTF-8, or not JSON
            raise damaged(f'line {number} of "{path}"', error) from error


def require_types(found: Mapping[str, object], record: type) -> None:
    """Refuse values that are not of the types that the fields of a dataclass have.

    Args:
        found: The values by field, as they were read from JSON; some may be left out.
        record: The dataclass.

    Raises:
        TypeError: A value is of another type.
    """
    hints = _hints(record)
    for name, value in found.items():
        if name in hints and not _fits(value, hints[name]):
            raise TypeError(f'"{name}" cannot be {json.dumps(value)[:60]}')


def _hints(record: type) -> dict[str, object]:
    return get_type_hints(record, localns={"Mapping": Mapping})


def _has_types(value: dict[str, object], record: type) -> bool:
    """Whether a value that was read as JSON has the fields of a dataclass, and no others."""
    hints = _hints(record)
    return value.keys() == hints.keys() and all(_fits(value[n], h) for n, h in hints.items())


def _fits(value: object, hint: object) -> bool:
    """Whether a value that was read as JSON is of the type that a field has.

    >>> _fits([1, 2], tuple[int, ...]), _fits({"a": "b"}, Mapping[str, int]), _fits(True, int)
    (True, False, False)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, list) and all(_fits(item, inner[0]) for item in value)
    if origin is not None:
        return isinstance(value, dict) and all(_fits(item, inner[1]) for item in value.values())
    if isinstance(value, bool):
        return hint is bool
    assert isinstance(hint, type), "a field is a number, a text, or made of them"
    if is_dataclass(hint):
        return isinstance(value, dict) and _has_types(value, hint)
    return isinstance(value, hint)
