"""The checkpoint: a directory that a run can be taken up from.

tidemill.json   what can never change: format, partitions, stages; and whether all has ended
spark/          Spark's own: offsets, commits, the state store
control/        the control stream
ledger.jsonl    what time it was, and how far streams had come, when batches began
feed/           in which order the files of each stream are read
memory/         frames that were given in memory, as files
relations/      relations as they were when first read, so that a replayed batch sees the same
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from tidemill.catalog.entries import StreamEntry
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.spark.settings import SparkSettings

__all__ = ["FORMAT", "Checkpoint", "Facts", "open_checkpoint"]

FORMAT = 5


@dataclass(frozen=True, slots=True)
class Facts:
    """What a checkpoint is made for.

    Attributes:
        pids: The partitions, by the numbers Spark knows them by.
        stages: How many stateful stages there are.
        planning: The settings that plans depend on.
        ended: Whether the streams have been run to their end.
        epochs: When each query began, by name and plan: 0 for those of the first start, then 1, …
        streams: A digest of where each stream comes from and what it is made of.
    """

    pids: tuple[int, ...]
    stages: int
    planning: Mapping[str, int | str | None]
    ended: bool = False
    epochs: Mapping[str, int] = field(default_factory=dict)
    streams: Mapping[str, str] = field(default_factory=dict)


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

    @property
    def ledger(self) -> Path:
        """Where it is kept what is known when a batch begins."""
        return self.directory / "ledger.jsonl"

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
        path = self.directory / "memory" / key / "frame.parquet"
        if not path.exists():
            frame = make()
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(".frame")
            frame.write_parquet(unfinished)
            unfinished.rename(path)
        return path.parent

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

    def newcomers(self, plans: Mapping[str, PhysicalPlan]) -> set[str]:
        """Which of the queries are not known here, or have another plan than they had."""
        return {name for name, plan in plans.items() if _key(name, plan) not in self.facts.epochs}

    def admit(self, plans: Mapping[str, PhysicalPlan]) -> Mapping[str, int]:
        """When each of the queries that are to run began; those that are not known begin now."""
        known = self.facts.epochs
        now = max(known.values()) + 1 if known else 0
        keys = {name: _key(name, plan) for name, plan in plans.items()}
        epochs = {name: known.get(key, now) for name, key in keys.items()}
        # A query that was dropped is forgotten, but not its epoch, as long as there is another.
        latest = {"": max((0, *known.values(), *epochs.values()))}
        found = {keys[name]: epoch for name, epoch in epochs.items()}
        self.facts = replace(self.facts, epochs=latest | found)
        _write(self.directory, self.facts)
        return epochs

    def recognize(self, streams: Mapping[str, StreamEntry]) -> None:
        """See whether streams are those they were here; new ones are noted.

        Raises:
            RunError: A stream has the name of another one.
        """
        found = {name.lower(): _digest(stream) for name, stream in streams.items()}
        for name, digest in found.items():
            if self.facts.streams.get(name, digest) != digest:
                raise RunError(
                    f'stream "{name}" is not the one that this checkpoint has read so far: it has '
                    "another source, other columns or another time",
                    hint="give it another name, or choose a new checkpoint",
                )
        self.facts = replace(self.facts, streams={**self.facts.streams, **found})
        _write(self.directory, self.facts)

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
    directory = Path(settings.checkpoint).resolve()
    if (directory / "tidemill.json").is_file():
        return Checkpoint(directory, _read(directory, settings), is_resumed=True)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RunError(
            f'"{directory}" is not a checkpoint, and not empty', hint="choose a new directory"
        )
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory, facts)
    return Checkpoint(directory, facts)


def _key(name: str, plan: PhysicalPlan) -> str:
    return f"{name} {plan.fingerprint}"


def _digest(stream: StreamEntry) -> str:
    """What makes a stream this stream; how late rows may be, or how files settle, can change."""
    named = tuple(pair for pair in stream.source.named if pair[0] != "settle")
    text = repr((replace(stream.source, named=named), stream.schema, stream.time_column))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(directory: Path, settings: SparkSettings) -> Facts:
    try:
        found = json.loads((directory / "tidemill.json").read_text(encoding="utf-8"))
        version = found.pop("format")
        if version != FORMAT:
            raise RunError(
                f'the checkpoint "{directory}" has format {version}, and this version reads '
                f"{FORMAT}",
                hint="go on with the version that wrote it, or choose a new directory",
            )
        facts = Facts(**{**found, "pids": tuple(found["pids"])})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f'the checkpoint "{directory}" is damaged: {error}', hint="choose a new directory"
        ) from error
    _require_fit(directory, facts, settings)
    return facts


def _require_fit(directory: Path, facts: Facts, settings: SparkSettings) -> None:
    """Refuse settings under which the state would be that of other plans."""
    pids = facts.pids
    if settings.partitions not in (None, len(pids)):
        raise RunError(
            f'the checkpoint "{directory}" has {len(pids)} partitions, not {settings.partitions}',
            hint=f"write partitions={len(pids)}, or choose a new directory",
        )
    if settings.stages not in (None, facts.stages):
        raise RunError(
            f'the checkpoint "{directory}" has {facts.stages} stages, not {settings.stages}',
            hint=f"write stages={facts.stages}, or choose a new directory",
        )
    if settings.planning.facts() != facts.planning:
        raise RunError(
            f'the checkpoint "{directory}" was made with other settings of optimize,'
            " max_delay, technique, joins or negation",
            hint="choose them as they were, or a new directory",
        )


def _write(directory: Path, facts: Facts) -> None:
    unfinished = directory / ".tidemill.json"
    content = {"format": FORMAT, **asdict(facts)}
    unfinished.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    unfinished.rename(directory / "tidemill.json")
