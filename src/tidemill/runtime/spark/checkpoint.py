"""The checkpoint: a directory that a run can be taken up from.

tidemill.json   what can never change: format, partitions, stages; and whether all has ended
spark/          Spark's own: offsets, commits, the state store
control/        the control stream
feed/           in which order the files of each stream are read
memory/         frames that were given in memory, as files
relations/      relations as they were when first read, so that a replayed batch sees the same
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import polars as pl

    from tidemill.runtime.spark.settings import SparkSettings

__all__ = ["Checkpoint", "Facts", "open_checkpoint"]

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Facts:
    """What a checkpoint is made for.

    Attributes:
        pids: The partitions, by the numbers Spark knows them by.
        stages: How many stateful stages there are.
        ended: Whether the streams have been run to their end.
        epochs: When each query began: 0 for those of the first start, then 1, 2, …
    """

    pids: tuple[int, ...]
    stages: int
    ended: bool = False
    epochs: Mapping[str, int] = field(default_factory=dict)


class Checkpoint:
    """A directory with the state of a pipeline.

    Args:
        directory: Where it is.
        facts: What it is made for.
        is_temporary: Whether it is removed when it is closed.
        is_resumed: Whether it was there before.
    """

    def __init__(
        self, directory: Path, facts: Facts, *, is_temporary: bool = False, is_resumed: bool = False
    ) -> None:
        self.directory = directory
        self.facts = facts
        self.is_resumed = is_resumed
        self._is_temporary = is_temporary

    @property
    def spark(self) -> Path:
        """Where Spark keeps its own."""
        return self.directory / "spark"

    @property
    def control(self) -> Path:
        """Where the control stream is."""
        return self.directory / "control"

    def feed(self, word: str) -> Path:
        """Where the order of the files of a stream is kept."""
        return self.directory / "feed" / word

    @property
    def cache(self) -> Path:
        """Where each host keeps copies of state."""
        digest = hashlib.sha256(str(self.directory.resolve()).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"tidemill-cache-{digest}"

    def frame(self, key: str, make: Callable[[], pl.DataFrame]) -> Path:
        """The directory of a frame in memory, written as a file when first asked for."""
        directory = self.directory / "memory" / key
        if not directory.exists():
            frame = make()
            directory.mkdir(parents=True)
            frame.write_parquet(directory / "frame.parquet")
        return directory

    def relation(self, name: str, read: Callable[[], pl.DataFrame]) -> bytes:
        """The rows of a relation as they were when first read, in Arrow's IPC format."""
        path = self.directory / "relations" / f"{name.lower()}.arrow"
        if not path.exists():
            rows = read()
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".part")
            rows.write_ipc_stream(unfinished)
            unfinished.rename(path)
        return path.read_bytes()

    def admit(self, queries: Iterable[str]) -> Mapping[str, int]:
        """When each of the queries that are to run began; those that are not known begin now."""
        known = self.facts.epochs
        now = max(known.values()) + 1 if known else 0
        epochs = {query: known.get(query, now) for query in queries}
        # A query that was dropped is forgotten, but not its epoch, as long as there is another.
        latest = {"": max((0, *known.values(), *epochs.values()))}
        self.facts = replace(self.facts, epochs=latest | epochs)
        _write(self.directory, self.facts)
        return epochs

    def end(self) -> None:
        """Note that the streams have been run to their end."""
        self.facts = replace(self.facts, ended=True)
        _write(self.directory, self.facts)

    def close(self) -> None:
        """Remove it, if nobody is to take it up again."""
        if self._is_temporary:
            shutil.rmtree(self.cache, ignore_errors=True)
            shutil.rmtree(self.directory, ignore_errors=True)


def open_checkpoint(settings: SparkSettings, facts: Facts) -> Checkpoint:
    """The checkpoint of a session; a new one is made for ``facts``.

    Raises:
        RunError: There is something else, or a checkpoint that does not fit the settings.
    """
    if settings.checkpoint is None:
        directory = Path(tempfile.mkdtemp(prefix="tidemill-"))
        _write(directory, facts)
        return Checkpoint(directory, facts, is_temporary=True)
    directory = Path(settings.checkpoint)
    if (directory / "tidemill.json").is_file():
        return Checkpoint(directory, _read(directory, settings), is_resumed=True)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RunError(
            f'"{directory}" is not a checkpoint, and not empty', hint="choose a new directory"
        )
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory, facts)
    return Checkpoint(directory, facts)


def _read(directory: Path, settings: SparkSettings) -> Facts:
    try:
        found = json.loads((directory / "tidemill.json").read_text(encoding="utf-8"))
        version, pids = found["format"], tuple(found["pids"])
        facts = Facts(pids, found["stages"], found["ended"], found["epochs"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f'the checkpoint "{directory}" is damaged: {error}', hint="choose a new directory"
        ) from error
    if version != FORMAT:
        raise RunError(
            f'the checkpoint "{directory}" has format {version}, and this version reads {FORMAT}',
            hint="go on with the version that wrote it, or choose a new directory",
        )
    if settings.partitions not in (None, len(pids)):
        raise RunError(
            f'the checkpoint "{directory}" has {len(pids)} partitions, not {settings.partitions}',
            hint=f"write partitions={len(pids)}, or choose a new directory",
        )
    return facts


def _write(directory: Path, facts: Facts) -> None:
    unfinished = directory / ".tidemill.json"
    content = {
        "format": FORMAT,
        "pids": list(facts.pids),
        "stages": facts.stages,
        "ended": facts.ended,
        "epochs": dict(facts.epochs),
    }
    unfinished.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    unfinished.rename(directory / "tidemill.json")
