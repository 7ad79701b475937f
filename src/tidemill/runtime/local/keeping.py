"""The keeper: what a pipeline keeps in its checkpoint from step to step, and goes on from.

In a step it is written down what the step depends on before anything is delivered, and what it has
come to when all is: the state of operators in packs, then, by one rename, the commit. A step that
is cut short before that is taken again, from the same state, with the same input, under the same
number.

Law: a pipeline that goes on from a checkpoint, whenever it was left, gives what an undisturbed one
gives: files of sinks have every row once, other sinks may get a batch again, with the same rows.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from tidemill.engine.ingest import Reached
from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.physical.state.at_rest import Saved, read_manifest
from tidemill.physical.state.damaged import DamagedError
from tidemill.runtime.damage import damaged
from tidemill.runtime.local.commit import Commit, StreamCommit, read_commit, write_commit
from tidemill.runtime.local.growing import GrowingFiles
from tidemill.runtime.local.input_log import InputLog
from tidemill.runtime.local.pack_files import MANIFEST, PackFiles
from tidemill.runtime.quarantine import Quarantine
from tidemill.runtime.settling import mark_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from tidemill.engine.ingest import Gate
    from tidemill.migration.moves import Moves
    from tidemill.physical.fragments import Node
    from tidemill.physical.state.at_rest import Manifest
    from tidemill.runtime.file_sink import FileSink
    from tidemill.runtime.local.checkpoint import LocalCheckpoint
    from tidemill.runtime.local.growing import Source
    from tidemill.runtime.local.input_log import Begun
    from tidemill.runtime.local.intake import Intake
    from tidemill.runtime.local.runner import LocalRunner
    from tidemill.runtime.settling import Mark

__all__ = ["Keeper", "later", "stream_commits"]


class Keeper:
    """Keeps what a pipeline has come to.

    Args:
        checkpoint: Where.

    Raises:
        RunError: It is damaged.

    Attributes:
        checkpoint: Where.
        standing: How far an earlier session had come; ``None`` if there was none.
        ran: The last epoch whose queries have run; -1 if none have.
        left: How far streams had come that were read before.
        quarantine: The rows that were refused.
    """

    def __init__(self, checkpoint: LocalCheckpoint) -> None:
        self.checkpoint = checkpoint
        self.quarantine = Quarantine(checkpoint.quarantine)
        self._store = PackFiles(checkpoint.directory)
        self._log = InputLog(checkpoint.input_log)
        self._saved = Saved()
        self._refused: dict[str, dict[str, int]] = {}
        self._manifest, self.standing = self._read()
        self.ran = -1 if self.standing is None else self.standing.ran
        self.left = {} if self.standing is None else dict(self.standing.left)

    def _read(self) -> tuple[Manifest | None, Commit | None]:
        """What was committed last."""
        path = self.checkpoint.directory / MANIFEST
        try:
            manifest = read_manifest(self._store)
            standing = None if manifest is None else read_commit(manifest.facts)
        except DamagedError as error:
            raise damaged(f'"{path}"', error) from error
        if standing is None and self.checkpoint.facts.begun:
            raise damaged(f'"{path}"', "it is missing")
        begun, step = self._log.begun, 0 if standing is None else standing.step
        if begun is not None and begun.step > step:
            why = f"the next step is {step}, and step {begun.step} has begun"
            raise damaged(f'"{path}"', why)
        return manifest, standing

    # Going on

    def again(self) -> Begun | None:
        """The step that had begun and is not committed, if there is one.

        If a file has changed that it has read, the step is another one: it is not taken again.
        """
        begun, standing = self._log.begun, self.standing
        if begun is None or begun.step != (0 if standing is None else standing.step):
            return None
        for name, count in begun.taken.items():
            stream = None if standing is None else standing.streams.get(name)
            first = 0 if stream is None else stream.position.read
            files = self._log.files.get(name, [])[first:count]
            if any(mark_of(path) not in (None, mark) for path, mark in files):
                return None
        return begun

    def go_on(self, name: str, source: Source, gate: Gate, again: Begun | None) -> None:
        """Let a stream go on from where it was.

        Args:
            name: The stream.
            source: What is read, from its beginning.
            gate: How far it has come: nowhere.
            again: The step that is taken again, if one is.

        Raises:
            RunError: Files are not what they were, or the log of them is damaged.
        """
        assert self.standing is not None, "a session was there"
        stream = self.standing.streams[name]
        gate.go_on(stream.reached)
        if isinstance(source, GrowingFiles):
            count = stream.taken if again is None else again.taken.get(name, stream.taken)
            source.go_on(self._log.cut(name, count), stream.position)

    def fill(self, runner: LocalRunner, moves: Moves) -> None:
        """Let operators remember what they remembered, or what others did.

        Raises:
            RunError: Some of it is damaged, or missing.
        """
        assert self._manifest is not None, "a session was there"
        assert self.standing is not None, "a session was there"
        try:
            new = runner.restore(self._manifest.states, moves)
        except DamagedError as error:
            raise damaged("the state", error) from error
        self._require_state(new, self.standing.ran)
        runner.known |= {
            name: Time(self.standing.known[name])
            for name in runner.known
            if name in self.standing.known
        }
        self._saved = self._manifest.saved(runner.remembered())

    def _require_state(self, new: Iterable[Node], ran: int) -> None:
        """Refuse operators without state that have run before."""
        lost = sorted({node.name for node in new if node.apply.epoch <= ran})
        if lost:
            raise damaged(
                f'"{self.checkpoint.directory / MANIFEST}"',
                f"operator {', '.join(lost)} has run before, and its state is not there",
            )

    def tidy(self, sinks: Iterable[FileSink], streams: Mapping[str, Source]) -> None:
        """Remove what a step has left that was cut short, once nothing is refused any more.

        Args:
            sinks: The files of queries that have run before.
            streams: What is read.

        Raises:
            RunError: A sink has rows of later steps.
        """
        step = 0 if self.standing is None else self.standing.step
        for sink in sinks:
            _require_nothing_after(sink, step)
            sink.clear(step)
        self._store.tidy({} if self._manifest is None else self._manifest.packs)
        self._manifest = None  # what it has is in memory
        self._log.keep_only(streams)
        for name, source in streams.items():
            if isinstance(source, GrowingFiles) and name in self._log.files:
                self._log.files[name] = source.taken
        self._log.rewrite()

    # Steps

    def note(self, sources: Mapping[str, Source], begun: Begun | None = None) -> None:
        """Write down which files were taken, and what a step depends on, before it delivers.

        Raises:
            OSError: It cannot be written.
        """
        self._log.note(_files(sources), begun)

    def save(self, commit: Commit, runner: LocalRunner, gates: Mapping[str, Gate]) -> None:
        """Write what is new of the state, and what was refused.

        Raises:
            RunError: What was refused cannot be kept.
            OSError: It cannot be written.
        """
        for name, gate in gates.items():
            self._keep_refused(name, gate, commit.step - 1)
        token = f"{commit.step:08d}-{uuid4().hex[:8]}"
        self._saved.save(runner.remembered(), self._store, token, facts=write_commit(commit))
        self.ran = commit.ran

    def commit(self) -> None:
        """Let the step be done.

        Raises:
            OSError: It cannot be written.
        """
        self._store.commit()
        self.checkpoint.begin()

    def keep_only(self, streams: Container[str]) -> None:
        """Forget the files of streams that are not read any more."""
        self._log.keep_only(streams)

    def leave(self, streams: Mapping[str, Reached]) -> None:
        """Remember how far streams have come that are not read any more."""
        self.left |= {name: later(self.left.get(name), one) for name, one in streams.items()}

    def begin_counting(self, stream: str, gate: Gate) -> None:
        """Count what is refused of a stream after what was refused before."""
        refused = gate.refused
        refused.counts = self.quarantine.counts(stream)
        refused.removed = self.quarantine.removed(stream)
        self._refused[stream] = dict(refused.counts)

    def _keep_refused(self, stream: str, gate: Gate, step: int) -> None:
        """Keep what a step has refused, which leaves the memory."""
        refused, before = gate.refused, self._refused.get(stream, {})
        if refused.counts == before:
            return
        new = {reason: count - before.get(reason, 0) for reason, count in refused.counts.items()}
        self.quarantine.take(stream, step, new, refused.rows)
        refused.rows.clear()
        refused.removed = self.quarantine.removed(stream)
        self._refused[stream] = dict(refused.counts)


def later(before: Reached | None, now: Reached) -> Reached:
    """How far a stream has come that may have been read twice.

    >>> later(Reached(5, 2, 7), Reached(3, 1, 2, 4))
    Reached(watermark=5, rows=1, latest=7, within=None)
    """
    before = before or Reached()
    times = (before.latest, before.within, now.latest, now.within)
    latest = max((time for time in times if time is not None), default=None)
    return Reached(max(before.watermark, now.watermark), now.rows, latest)


def stream_commits(intake: Intake, sources: Mapping[str, Source]) -> dict[str, StreamCommit]:
    """How far each stream has come."""
    return {
        name: StreamCommit(
            gate.reached(),
            intake.silent(name),
            sources[name].position,
            len(source.taken) if isinstance(source := sources[name], GrowingFiles) else 0,
        )
        for name, gate in intake.gates.items()
    }


def _files(sources: Mapping[str, Source]) -> dict[str, list[tuple[str, Mark]]]:
    return {name: s.taken for name, s in sources.items() if isinstance(s, GrowingFiles)}


def _require_nothing_after(sink: FileSink, step: int) -> None:
    """Refuse a sink that has more than the checkpoint knows of: rows would be given again."""
    found = (re.fullmatch(r"batch=(\d+)", path.name) for path in Path(sink.directory).iterdir())
    latest = max((int(name[1]) for name in found if name is not None), default=-1)
    if latest > step:
        raise RunError(
            f'"{sink.directory}", the sink of "{sink.query}", has batch {latest}, and the'
            f" checkpoint has finished none after {step - 1}: it is an older one",
            hint="restore the whole checkpoint as it was, or choose a new one, with other sinks",
        )
