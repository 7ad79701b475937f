"""Damage: whether the files of a checkpoint are what was written, and agree with each other.

Spark and we both write down how far a run has come. A checkpoint of which a part was lost would go
on with the rest: read files again, or leave them out, without a word. So at every start the parts
are compared, before anything is changed. What a kill or a loss of power can leave behind is normal,
because of the order in which it is written:

    Spark   offsets of batch n
    batch log  begin n
            the batch is computed, its files and Spark's are flushed
    batch log  end n
    Spark   commit of batch n

Only the last line of a file can be cut short, and nothing has been built on it yet.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tidemill.runtime.damage import damaged, json_lines
from tidemill.runtime.durable import rename_durably

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = [
    "entries_taken",
    "require_agreement",
    "require_file_log",
    "require_notes_read",
    "require_words",
    "set_aside_torn",
]

_ENTRY = re.compile(rb"/(\d{12})\.json\"")
"""An entry of a file log, as Spark's list of files that it has taken names it."""


def require_agreement(directory: Path, *, has_begun: bool) -> None:
    """Refuse a checkpoint in which Spark's part and ours do not fit together.

    Args:
        directory: The checkpoint.
        has_begun: Whether its pipeline has been started before.

    Raises:
        RunError: A part is missing, or is older than another one.
    """
    batch_log, spark = directory / "batches.jsonl", directory / "spark"
    offset, commit = _newest(spark / "offsets"), _newest(spark / "commits")
    if not batch_log.exists():
        if has_begun or offset >= 0 or commit >= 0:
            raise damaged(f'"{batch_log}"', "it is missing")
        return
    begun, ended = _batches(batch_log)
    if ended < commit:
        raise damaged(
            f'"{batch_log}"', f"it ends with batch {ended}, and Spark has finished batch {commit}"
        )
    if begun > offset + 1 or max(ended, commit) > offset:
        why = f"batch {max(begun, commit)} has begun, and Spark knows of none after {offset}"
        raise damaged(f'"{spark / "offsets"}"', why)
    if ended > commit + 1:
        why = f"batch {ended} has been delivered, and Spark has finished none after {commit}"
        raise damaged(f'"{spark / "commits"}"', why)
    if offset >= 0:
        _require_metadata(spark / "metadata")


def set_aside_torn(directory: Path) -> None:
    """Set aside what Spark had begun to write when the power was lost, and what relies on it.

    A file that has a name and no content was never flushed, so nothing that has been delivered
    relies on it. Spark refuses such a file; without it, it computes the batch again.

    Args:
        directory: The checkpoint.
    """
    batch_log, spark = directory / "batches.jsonl", directory / "spark"
    ended = _batches(batch_log)[1] if batch_log.exists() else -1
    open_batches = [p for p in _numbered(spark / "offsets") if int(p.name) > ended]
    sources = [log for source in spark.glob("sources/*") for log in _numbered(source)[-1:]]
    commits = _numbered(spark / "commits")[-1:]
    snapshots = spark.glob("state/*/*/*.zip")
    torn = [p for p in (*open_batches, *commits, *sources, *snapshots) if _is_torn(p)]
    if any(log in torn for log in sources):
        torn += [p for p in open_batches if p not in torn]
    for path in torn:
        rename_durably(path, path.with_name(f".{path.name}.torn"))


def _numbered(log: Path) -> list[Path]:
    """The files of a log of Spark's, in order."""
    found = (p for p in log.glob("[0-9]*") if p.name.partition(".")[0].isdecimal())
    return sorted(found, key=_number)


def _number(path: Path) -> int:
    return int(path.name.partition(".")[0])


def _is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        return not file.read(64).strip(b"\0")


def require_file_log(  # noqa: PLR0913, PLR0917 — what is known of a list of files
    stream: str,
    index: Path,
    numbers: Collection[int],
    written: Collection[int],
    taken: int,
    committed: int = 0,
) -> None:
    """Refuse a list of files that has lost some of them, or lost the note of one that was read.

    Files would get the numbers of others, or be read again.

    Args:
        stream: The stream.
        index: Where the list is.
        numbers: The numbers of the files in the list, in its order.
        written: The numbers of the files that there are notes of, which Spark reads.
        taken: How many notes Spark has read.
        committed: How many of them it never reads again, so that they may be gone.

    Raises:
        RunError: Numbers or notes are missing.
    """
    count, known = len(numbers), max((taken, committed, *(n + 1 for n in written)))
    if list(numbers) != list(range(count)):
        raise damaged(f'"{index}"', f'the files of "{stream}" are not numbered one after another')
    if known > count:
        why = f'it names {count} files of "{stream}", and there were {known} at least'
        raise damaged(f'"{index}"', why)
    # A kill can leave the last files without notes, before Spark has heard of them.
    lost = [number for number in range(committed, known) if number not in written]
    if lost:
        raise damaged(f'"{index.parent}"', f'the note of file {lost[0]} of "{stream}" is missing')


def entries_taken(log: Path, until: int | None = None) -> int:
    """How many files of a list Spark has read, as far as its newest note tells.

    Args:
        log: Where Spark notes what it has read of the list.
        until: The newest of these notes that counts; ``None`` for the last.
    """
    newest = [path for path in _numbered(log) if until is None or _number(path) <= until][-1:]
    found = (int(n) for path in newest for n in _ENTRY.findall(path.read_bytes()))
    return max((number + 1 for number in found), default=0)


def require_notes_read(  # noqa: PLR0913, PLR0917 — what was to be read, and what was
    stream: str, spark: Path, source: str, batch: int, first: int, read: int
) -> None:
    """Refuse a batch in which Spark has not read all notes on files that it was to read.

    Spark says nothing if a note is gone that it has planned to read: the file would be lost.

    Args:
        stream: The stream.
        spark: Where Spark keeps what it has planned.
        source: What Spark calls the stream.
        batch: The batch.
        first: The number of the first file that was not read before.
        read: How many notes the tasks of the batch have read.

    Raises:
        RunError: It has read fewer of them.
    """
    plan = (spark / "offsets" / str(batch)).read_text(encoding="utf-8")
    until = re.search(rf'^{re.escape(source)}:.*"logOffset":(\d+)', plan, re.MULTILINE)
    if until is None:
        return  # nothing has come on this stream so far
    planned = entries_taken(spark / "sources" / source, int(until[1])) - first
    if read < planned:
        why = f"Spark was to read {planned} of them in batch {batch}, and has found {read}"
        raise damaged(f'the notes on the files of "{stream}"', why)


def require_words(directory: Path, words: Collection[str]) -> None:
    """Refuse a control stream that says what was never said.

    Args:
        directory: Where it is.
        words: What can be said.

    Raises:
        RunError: A file holds something else.
    """
    for path in sorted(directory.glob("[!._]*")):
        for line in json_lines(path):
            match line:
                case {"word": str(word)} if word in words:
                    pass
                case _:
                    raise damaged(f'"{path}"', f"there is no word {line}")


def _newest(log: Path) -> int:
    """The last batch that a log of Spark's knows; -1 if there is none."""
    return max((int(path.name) for path in _numbered(log)), default=-1)


def _batches(batch_log: Path) -> tuple[int, int]:
    """The last batch that a batch log saw begin, and the last that it saw end; -1 for none."""
    begun = ended = -1
    for line in json_lines(batch_log):
        match line:
            case {"begin": int(batch)}:
                begun = max(begun, batch)
            case {"end": int(batch)}:
                ended = max(ended, batch)
    return begun, ended


def _require_metadata(path: Path) -> None:
    """Without it Spark would take the run for another one."""
    try:
        is_there = path.is_file() and "id" in json.loads(path.read_bytes())
    except (ValueError, TypeError) as error:
        raise damaged(f'"{path}"', error) from error
    if not is_there:
        raise damaged(f'"{path}"', "it is missing")
