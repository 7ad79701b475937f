"""Sources of the local runtime: files of a directory, and frames in memory.

A source delivers batches of rows with the columns and types of its stream, each in pieces.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tidemill.connectors.check import arguments_of
from tidemill.connectors.connector import Positions, Use
from tidemill.engine.ingest import check_keys, file_id
from tidemill.errors import RunError, TidemillError, closest
from tidemill.model.batch import polars_schema
from tidemill.runtime import settling
from tidemill.runtime.connectors import failure, shown_cause, source_place
from tidemill.runtime.files import READERS, list_files, read_file
from tidemill.runtime.measuring.sample import has_head
from tidemill.runtime.reading.frames import shaped_frame
from tidemill.runtime.reading.shaping import Input, fail

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from tidemill.catalog.entries import RelationEntry
    from tidemill.engine.ingest import Malformed
    from tidemill.lang.statements import ConnectorCall
    from tidemill.model.schema import Schema
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.reading.parquet_groups import Wanted
    from tidemill.runtime.reading.shaping import Refuse

__all__ = [
    "Arrival",
    "Given",
    "file_batch",
    "is_there",
    "memory_frame",
    "named_frame",
    "read_relation",
    "read_source",
]


class Given(NamedTuple):
    """How many rows of a batch have been given, and how many malformed ones have been refused."""

    rows: int = 0
    malformed: int = 0


NOTHING = Given()


class Arrival(NamedTuple):
    """Some rows of a batch.

    Attributes:
        batch: The number of the batch.
        rows: The rows.
        is_last: Whether there are no others in the batch.
        first: The id of the first row; those of others follow.
        file: The file that they stand in, if there is one.
    """

    batch: int
    rows: pl.DataFrame
    is_last: bool
    first: int = 0
    file: settling.FileRows | None = None


def read_source(  # noqa: PLR0913 — what is read, and how
    name: str,
    source: ConnectorCall,
    schema: Schema,
    memory: Mapping[str, pl.DataFrame],
    refuse: Refuse = fail,
    *,
    skip: int = 0,
    needed: AbstractSet[str] | None = None,
    wanted: Wanted | None = None,
) -> Iterator[Arrival]:
    """The rows of a stream or relation, batch by batch, and each of them piece by piece.

    That they are there is found out at once.

    Args:
        name: The stream or relation.
        source: Where its rows are.
        schema: Its columns.
        memory: The frames that ``memory`` sources name.
        refuse: What is done with malformed rows; if it is not said, they are an error.
        skip: Of a connector of another package that can go back to a position, how many batches
            are left out, since they were read before.
        needed: The columns that are needed of files, some of which may be given with others;
            ``None`` for all.
        wanted: The rows that are wanted of files; ``None`` for all. Others come as well, some of
            them marked by ``UNREAD``.

    Raises:
        RunError: The source cannot be read, or does not have these columns.
    """
    place = source_place(name, source)
    if place.kind == "memory":
        only = memory_frame(name, place.path, schema, memory, refuse)
        return iter([Arrival(0, only, is_last=True)])
    if place.kind in READERS:
        return _read_files(name, place, schema, refuse, needed, wanted)
    side = arguments_of(source, Use.STREAM).connector.source
    if side is None or side.positions is not Positions.REPLAYABLE:
        skip = 0  # what it gives now is what has not been given
    return _read_installed(name, place, schema, refuse, source.secrets(), skip)


def _read_files(  # noqa: PLR0913, PLR0917 — what is read, and how
    name: str,
    place: Place,
    schema: Schema,
    refuse: Refuse,
    needed: AbstractSet[str] | None,
    wanted: Wanted | None,
) -> Iterator[Arrival]:
    """The rows of files."""
    found = map(str, _files(name, place.path, place.kind))
    seconds = settling.SETTLE if place.settle is None else place.settle
    marks = list(settling.await_settled(name, found, seconds).items())
    starts = range(0, len(marks), place.files_per_batch)
    chosen = [marks[first : first + place.files_per_batch] for first in starts]
    return chain.from_iterable(
        file_batch(
            n,
            some,
            place.kind,
            schema,
            refuse,
            file=n * place.files_per_batch,
            needed=needed,
            wanted=wanted,
        )
        for n, some in enumerate(chosen)
    )


def file_batch(  # noqa: PLR0913 — what is read, and how
    number: int,
    files: Sequence[tuple[str, settling.Mark]],
    kind: str,
    schema: Schema,
    refuse: Refuse,
    *,
    given: Given = NOTHING,
    file: int = 0,
    needed: AbstractSet[str] | None = None,
    wanted: Wanted | None = None,
) -> Iterator[Arrival]:
    """The rows of some files, which are as they were when they were taken.

    Malformed rows are refused when the rows are given that they stand among, not sooner, so that
    what has been given and what has been refused belong together whenever it is stopped.

    Args:
        number: The number of the batch that they make.
        files: The files, and what they were.
        kind: Their format.
        schema: The columns to read.
        refuse: What is done with malformed rows.
        given: What is left out, since it was given before; in which pieces does not matter.
        file: The number of the first file among those of the stream.
        needed: The columns that are needed, some of which may be given with others; ``None`` for
            all.
        wanted: The rows that are wanted; ``None`` for all. Others come as well, some of them marked
            by ``UNREAD``.

    Raises:
        RunError: A file cannot be read, or has changed.
    """
    found: list[Malformed] = []

    def pieces() -> Iterator[_Piece]:
        for place, (path, mark) in enumerate(files, start=file):
            rows, where = 0, settling.FileRows(path, mark, file_id(place, 0), kind)
            read = read_file(
                Path(path),
                kind,
                schema,
                found.append,
                needed=needed,
                wanted=wanted,
                begins_whole=has_head(place),
            )
            for frame in read:
                settling.require_unchanged(path, mark)  # it might grow for ever
                file_id(place, max(rows + frame.height - 1, 0))  # there are ids for all of them
                yield _Piece(frame, _taken_from(found), file_id(place, rows), where)
                rows += frame.height
            settling.require_unchanged(path, mark)

    return _arrivals(number, pieces(), found, _Rest(refuse, given))


def _read_installed(  # noqa: PLR0913, PLR0917 — what is read, and how
    name: str, place: Place, schema: Schema, refuse: Refuse, secrets: frozenset[str], skip: int
) -> Iterator[Arrival]:
    """The rows of a connector of another package, with the columns and types of the stream."""
    assert place.batches is not None, "a connector that the local engine has says how to read it"
    input_ = Input(f'the source of "{name}"', unit="row")
    try:
        for number, frame in enumerate(place.batches()):
            if number < skip:
                continue
            shaped = shaped_frame(frame, schema, input_, refuse, first=None)
            yield Arrival(number, shaped, is_last=True, first=file_id(number, 0))
    except TidemillError:
        raise
    except Exception as error:  # noqa: BLE001 — code that is not ours
        what = f'connector "{place.kind}", the source of "{name}", failed'
        told = failure(what, error, secrets, hint="fix what it says, and run again")
        raise told from shown_cause(error, secrets)


def read_relation(entry: RelationEntry, memory: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """All rows of a relation.

    Raises:
        RunError: They cannot be read, or use a key twice.
    """
    arrivals = read_source(entry.name, entry.source, entry.schema, memory)
    nothing = pl.DataFrame(schema=polars_schema(entry.schema))
    frame = pl.concat([nothing, *(arrival.rows for arrival in arrivals)])
    check_keys(entry, frame)
    return frame


def is_there(name: str, source: ConnectorCall, memory: Mapping[str, pl.DataFrame]) -> bool:
    """Whether there are files, or a frame, to read; what they hold is not looked at."""
    place = source_place(name, source)
    if place.kind == "memory":
        return place.path in memory
    return place.kind not in READERS or bool(list_files(Path(place.path)))


class _Piece(NamedTuple):
    """Some rows, the malformed ones that were found since those before, and where they stand."""

    rows: pl.DataFrame
    malformed: list[Malformed]
    first: int
    file: settling.FileRows


def _taken_from(found: list[Malformed]) -> list[Malformed]:
    """What is in a list, which is empty then."""
    taken = list(found)
    found.clear()
    return taken


class _Rest:
    """What is left of a batch when what was given before is left out.

    Args:
        refuse: What is done with malformed rows.
        given: What was given before.
    """

    def __init__(self, refuse: Refuse, given: Given) -> None:
        self._refuse = refuse
        self._rows, self._malformed = given

    def of(self, rows: pl.DataFrame, malformed: Iterable[Malformed]) -> pl.DataFrame:
        """The rows that have not been given; malformed ones that have not are refused."""
        for one in malformed:
            over = min(self._malformed, one.rows.height)
            self._malformed -= over
            if not over:
                self._refuse(one)
            elif over < one.rows.height:
                self._refuse(replace(one, rows=one.rows.slice(over)))
        over = min(self._rows, rows.height)
        self._rows -= over
        return rows.slice(over) if over else rows


def _arrivals(
    batch: int, pieces: Iterator[_Piece], found: list[Malformed], rest: _Rest
) -> Iterator[Arrival]:
    """The pieces of a batch; of each it is known whether it is the last."""
    waiting, is_first = next(pieces, None), True
    while waiting is not None:
        failure, following = None, None
        try:
            following = next(pieces, None)
        except RunError as error:
            failure = error  # what was read before is not lost
        is_last = following is None and failure is None
        # What stands behind the last rows belongs to them.
        rows = rest.of(waiting.rows, [*waiting.malformed, *(_taken_from(found) if is_last else ())])
        if rows.height or is_last or not waiting.rows.height:
            left_out = waiting.rows.height - rows.height
            yield Arrival(batch, rows, is_last, waiting.first + left_out, waiting.file)
        if failure is not None:
            raise failure
        waiting, is_first = following, False
    if is_first:
        rest.of(pl.DataFrame(), found)


def memory_frame(
    name: str,
    key: str,
    schema: Schema,
    memory: Mapping[str, pl.DataFrame],
    refuse: Refuse = fail,
) -> pl.DataFrame:
    """A frame in memory, with the columns and types of the stream that reads it.

    Args:
        name: The stream or relation.
        key: The name of the frame.
        schema: The columns of the stream.
        memory: The frames, by name.
        refuse: What is done with malformed rows; if it is not said, they are an error.

    Raises:
        RunError: There is no such frame, or it does not have these columns.
    """
    input_ = Input(f'frame "{key}"', unit="row")
    return shaped_frame(named_frame(name, key, memory), schema, input_, refuse)


def named_frame(name: str, key: str, memory: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """A frame in memory, as it was given.

    Raises:
        RunError: There is no such frame.
    """
    if key not in memory:
        raise RunError(
            f'there is no frame "{key}" in memory for "{name}"',
            hint=closest(key, memory) or f"give one with session.put({key!r}, frame)",
        )
    return memory[key]


def _files(name: str, path: str, kind: str) -> list[Path]:
    found = list_files(Path(path))
    if not found:
        raise RunError(
            f'there is nothing to read for "{name}" at "{path}"',
            hint=f"give a {kind} file, a directory of them, or a pattern such as data/*.{kind}",
        )
    return found
