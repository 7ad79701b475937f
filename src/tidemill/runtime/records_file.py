"""The records of queries in a checkpoint: what has become of those that were changed.

    queries.json    by query: its versions as texts, its instances, its parts

It is replaced as a whole before a change takes effect, so that a pipeline that is killed in between
takes the change up when it starts again. Plans are not in it: the texts are bound anew.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tidemill.catalog.entries import Kept
from tidemill.catalog.records import Instance, Moving, Part, Paused, Took
from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.runtime.durable import sync_directory, write_durably
from tidemill.runtime.json_lines import json_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tidemill.catalog.records import Record

__all__ = [
    "RECORDS_FILE",
    "RecordKeeper",
    "StoredRecord",
    "read_records",
    "stored",
    "write_records",
]

RECORDS_FILE = "queries.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it is kept.

    Attributes:
        texts: The statements of the versions, in their order.
        instances: Those that run, or have run.
        parts: What is answered when.
        paused: Where it was paused, if it is.
        ended: The instances that have answered all they had to.
    """

    texts: tuple[str, ...]
    instances: tuple[Instance, ...]
    parts: tuple[Part, ...]
    paused: Paused | None
    ended: frozenset[int]


@dataclass(frozen=True, slots=True)
class RecordKeeper:
    """Keeps records in a checkpoint.

    Attributes:
        directory: The checkpoint.
    """

    directory: Path

    def read(self) -> dict[str, StoredRecord]:
        """The records that there are."""
        return read_records(self.directory)

    def write(self, records: Mapping[str, StoredRecord]) -> None:
        """Replace them; there is no file where there are none."""
        if records:
            write_records(self.directory, records)
        elif (path := self.directory / RECORDS_FILE).is_file():
            path.unlink()
            sync_directory(self.directory)


def stored(record: Record) -> StoredRecord:
    """What is kept of a record."""
    texts = tuple(version.text for version in record.versions)
    return StoredRecord(texts, record.instances, record.parts, record.paused, record.ended)


def read_records(directory: Path) -> dict[str, StoredRecord]:
    """The records that a checkpoint has, by the names of queries in lower case.

    Raises:
        RunError: They cannot be read, or are damaged.
    """
    path = directory / RECORDS_FILE
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != _FORMAT:
            raise RunError(
                f'"{path}" has format {found["format"]}, and this version reads {_FORMAT}',
                hint="go on with the version that wrote it, or choose a new checkpoint",
            )
        return {name: _read(one) for name, one in found["queries"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f'"{path}" in the checkpoint is damaged: {error}',
            hint="restore the checkpoint from a copy, or choose a new one",
        ) from error


def write_records(directory: Path, records: Mapping[str, StoredRecord]) -> None:
    """Replace the records of a checkpoint."""
    queries = {name: _written(one) for name, one in records.items()}
    content = {"format": _FORMAT, "queries": queries}
    write_durably(directory / RECORDS_FILE, json_lines(content))


def _written(record: StoredRecord) -> dict[str, object]:
    instances = [_written_instance(one) for one in record.instances]
    return {**asdict(record), "instances": instances, "ended": sorted(record.ended)}


def _written_instance(instance: Instance) -> dict[str, object]:
    """An instance; what is not there for most is left out, so that older versions can read it."""
    written = asdict(instance)
    rare = ("later", "took", "moving", "provenance", "unrecorded")
    return {name: value for name, value in written.items() if value or name not in rare}


def _instance(found: dict[str, object]) -> Instance:
    match found.get("later", []):
        case list(pairs):
            later = tuple((str(name), Time(at)) for name, at in pairs)
        case other:
            raise ValueError(f"{other} is no list of streams")
    took, moving = _took(found.get("took")), _moving(found.get("moving"))
    read = {"took": took, "moving": moving, "provenance": _provenance(found.get("provenance"))}
    return Instance(**{**found, "later": later, **read})  # type: ignore[arg-type] # a TypeError is damage


def _provenance(found: object) -> Kept | None:
    match found:
        case None:
            return None
        case {"length": int() | None as length, "by_reference": False}:
            return Kept(length)
        case _:
            raise ValueError(f"{found} does not say for how long what rows are made of is kept")


def _took(found: object) -> Took | None:
    match found:
        case None:
            return None
        case {"using": str(using), "work": work, "why": str(why), "others": list(others)} if (
            isinstance(work, int | float)
        ):
            return Took(using, float(work), why, tuple(str(one) for one in others))
        case _:
            raise ValueError(f"{found} does not say how a plan took over")


def _moving(found: object) -> Moving | None:
    match found:
        case None:
            return None
        case {"at": int(at), "before": str(before), "after": str(after), "batch": batch} if (
            batch is None or isinstance(batch, int)
        ):
            return Moving(Time(at), before, after, batch)
        case _:
            raise ValueError(f"{found} is no plan that takes over")


def _read(found: dict[str, object]) -> StoredRecord:
    match found:
        case {
            "texts": list(texts),
            "instances": list(instances),
            "parts": list(parts),
            "paused": paused,
            "ended": list(ended),
        }:
            return StoredRecord(
                tuple(str(text) for text in texts),
                tuple(_instance(one) for one in instances),
                tuple(Part(**one) for one in parts),
                _paused(paused),
                frozenset(ended),
            )
        case _:
            raise ValueError(f"{found} is no record")


def _paused(found: object) -> Paused | None:
    match found:
        case None:
            return None
        case {"at": int(at), "parts": list(parts)}:
            return Paused(Time(at), tuple(Part(**one) for one in parts))
        case _:
            raise ValueError(f"{found} is no pause")
