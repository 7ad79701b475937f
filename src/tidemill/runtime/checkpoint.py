"""The directory of a checkpoint: what a run can be taken up from, as far as all engines share it.

tidemill.json   what it is made for, where, and which streams, relations and queries it knows
lock            who uses it
plans/          the plan that each query runs with
memory/         frames that were given in memory, as files
quarantine/     rows that were refused and are kept, and how many there were
kept/           rows of streams that keep their past
tables/         the kept answers of queries
relations/      relations as they were when first read, so that a replayed batch sees the same

A query is known by its name. What the session creates is compared with what is known, and refused
if it is something else; only then is anything written.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError
from tidemill.lang.words import quote_name
from tidemill.optimizer.decisions import read_decisions, write_decisions
from tidemill.optimizer.statistics import NOTHING_KNOWN, read_statistics, write_statistics
from tidemill.physical.codec.plans import plan_version, read_physical, write_physical
from tidemill.runtime.durable import make_directory, write_durably
from tidemill.runtime.paths import word_of
from tidemill.runtime.planning import KeptPlan
from tidemill.runtime.record import (
    RECORD,
    Asked,
    Facts,
    KeptRelation,
    KnownQuery,
    content_digest,
    relation_digest,
    stream_digest,
    write_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tidemill.algebra.codec.values import Json
    from tidemill.catalog.entries import RelationEntry, StreamEntry
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.runtime.file_sink import FileSink
    from tidemill.runtime.lock import Lock

__all__ = ["KEPT", "CheckpointDirectory", "keeps_rows"]

KEPT = "kept"
"""Where the rows are, in a checkpoint, that streams keep."""


class CheckpointDirectory:
    """What a checkpoint knows, and keeps of queries, relations and frames.

    Args:
        directory: Where it is.
        facts: What it is made for.
        lock: What keeps others away; a temporary one needs none, and is removed when it is closed.
    """

    def __init__(self, directory: Path, facts: Facts, lock: Lock | None = None) -> None:
        self.directory = directory
        self.facts = facts
        self._lock = lock

    @property
    def lasting_place(self) -> str | None:
        """Where it is, if it stays when it is closed."""
        return None if self._lock is None else str(self.directory)

    @property
    def quarantine(self) -> Path:
        """Where rows are kept that were refused."""
        return self.directory / "quarantine"

    @property
    def kept(self) -> Path:
        """Where the rows are that streams keep."""
        return self.directory / KEPT

    @property
    def relations(self) -> Path:
        """Where the rows of relations are kept."""
        return self.directory / "relations"

    def relation_file(self, name: str, rows: bytes) -> str:
        """The name of the file that the rows of a relation are in."""
        return self._relation_file(name, content_digest(rows)).name

    def frame(self, key: str, make: Callable[[], pl.DataFrame]) -> Path:
        """The directory of a frame in memory, written as a file when first asked for."""
        path = self._frame_file(key)
        if not path.exists():
            frame = make()
            make_directory(path.parent)
            content = io.BytesIO()
            frame.write_parquet(content)
            write_durably(path, content.getvalue())
        return path.parent

    def kept_frame(self, key: str) -> pl.DataFrame | None:
        """A frame in memory that was asked for before."""
        path = self._frame_file(key)
        return pl.read_parquet(path, glob=False, hive_partitioning=False) if path.exists() else None

    # What is refused. These write nothing.

    def check_queries(
        self, queries: Mapping[str, Asked], dropped: Collection[str] = ()
    ) -> dict[str, int]:
        """The epoch in which each of the queries that are to run began; new ones begin now.

        Args:
            queries: All queries that are to run, by name.
            dropped: The names of those that the session no longer has.

        Raises:
            RunError: A query is not the one that is known by its name, or one is missing.
        """
        known = self.facts.queries
        for name, asked in queries.items():
            same = known[name.lower()].asked if name.lower() in known else asked
            if (same.meaning, same.sink) != (asked.meaning, asked.sink):
                raise _another(name, same, asked)
        there = {name.lower() for name in (*queries, *dropped)}
        missing = sorted(known.keys() - there)
        if missing and not self.facts.ended:
            names = ", ".join(f'"{name}"' for name in missing)
            raise RunError(
                f'the checkpoint "{self.directory}" runs {_queries(missing)} {names}, which this'
                " session does not create",
                hint=f"create {'it' if len(missing) == 1 else 'them'} before start(), or write"
                f" DROP QUERY {quote_name(missing[0])} to give up its state",
            )
        now = self.facts.latest + 1
        return {
            name: known[name.lower()].epoch if name.lower() in known else now for name in queries
        }

    def require_open(self, *, ends: bool) -> None:
        """Refuse to go on where the streams were being ended, but to end them.

        Args:
            ends: Whether they are to end.

        Raises:
            RunError: They are not.
        """
        if self.facts.ending and not (self.facts.ended or ends):
            raise RunError(
                f'the checkpoint "{self.directory}" was being run to the end of its streams when'
                " it was stopped, and rows that come now would be late",
                hint="call run(end=True), or write --end, to finish it, or choose a new checkpoint",
            )

    def require_outside(self, query: str, sink: FileSink) -> None:
        """Refuse files of answers among those of the checkpoint.

        Raises:
            RunError: They would be there.
        """
        if Path(sink.directory).resolve().is_relative_to(self.directory):
            raise RunError(
                f'"{sink.directory}", the sink of "{query}", is inside the checkpoint',
                hint="choose a directory outside of it",
            )

    def has_ended_error(self) -> RunError:
        """The error that says that the checkpoint takes nothing more."""
        return RunError(
            f'the checkpoint "{self.directory}" has been run to the end of its streams',
            hint="read the files of its sinks, or choose a new checkpoint",
        )

    def check_streams(self, streams: Mapping[str, StreamEntry]) -> None:
        """See whether streams are those they were here.

        Raises:
            RunError: A stream has the name of another one.
        """
        for name, stream in streams.items():
            digest = stream_digest(stream)
            known = self.facts.streams.get(name.lower(), digest)
            if known != digest or name.lower() in self.facts.relations:
                raise RunError(
                    f'stream "{name}" is not the one that this checkpoint has read so far: it has '
                    "another source, other columns or another time",
                    hint="give it another name, or choose a new checkpoint",
                )

    def check_relation(self, relation: RelationEntry, now: pl.DataFrame | None) -> bytes:
        """The rows of a relation that queries have read here, in Arrow's IPC format.

        Args:
            relation: How it is declared.
            now: The rows that it has now; ``None`` if they are not there any more, or are known.

        Raises:
            RunError: It is declared otherwise, has other rows now, or its copy is damaged.
        """
        name = relation.name
        kept = self.facts.relations.get(name.lower())
        hint = (
            "give it another name, drop the queries that read it and create them again, or choose"
            " a new checkpoint"
        )
        if kept is None or kept.declaration != relation_digest(relation):
            raise RunError(
                f'relation "{name}" is not the one that this checkpoint has read: it has another'
                " source, other columns, another period or another key",
                hint=hint,
            )
        content = self._kept_rows(name, kept.rows)
        if now is not None and not _same_rows(now, pl.read_ipc_stream(content)):
            raise RunError(
                f'relation "{name}" has other rows than this checkpoint has read, and queries that'
                " read it are running",
                hint=f"bring the rows back, {hint}",
            )
        return content

    def kept_plan(self, query: str) -> KeptPlan | None:
        """The plan that a query runs with here, if it is known.

        Raises:
            RunError: It cannot be read, or is damaged.
        """
        known = self.facts.queries.get(query.lower())
        if known is None:
            return None
        path = self._plan_file(known.version)
        hint = "bring the file back, or choose a new checkpoint"
        try:
            written = json.loads(path.read_text(encoding="utf-8"))
            plan = read_physical(written)
            decisions = read_decisions(written.get("decisions", []))
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise RunError(
                f'the plan of query "{query}" in the checkpoint, "{path}", cannot be read: {error}',
                hint=hint,
            ) from error
        except RunError as error:
            raise RunError(
                f'the plan of query "{query}" in the checkpoint, "{path}": {error.message}',
                hint=error.hint,
            ) from error
        if plan_version(plan) != known.version:
            raise RunError(
                f'the plan of query "{query}" in the checkpoint is damaged: "{path}"', hint=hint
            )
        return KeptPlan(plan, decisions, _statistics_in(written))

    # What is written, once nothing is refused.

    def keep_plan(self, planned: Planned) -> None:
        """Keep the plan that a query runs with; ``record`` makes it known.

        Beside it stands what was chosen for it, so that no later start has to choose again, and
        what was known then: if that were something else, other plans could seem to be due.
        """
        path = self._plan_file(planned.version)
        plan = write_physical(planned.physical)
        if planned.decisions:
            plan["decisions"] = write_decisions(planned.decisions)
        if planned.statistics != NOTHING_KNOWN:
            plan["statistics"] = write_statistics(planned.statistics)
        written = json.dumps(plan, indent=1).encode()
        if not path.is_file() or path.read_bytes() != written:
            make_directory(path.parent)
            write_durably(path, written)

    def create(self) -> None:
        """Write down that there is a checkpoint here, before anyone is told its identity."""
        if not (self.directory / RECORD).is_file():
            write_record(self.directory, self.facts)

    def keep_relation(self, relation: RelationEntry, rows: pl.DataFrame) -> bytes:
        """Keep the rows of a relation as they are now; ``record`` makes them known."""
        unfinished = io.BytesIO()
        rows.write_ipc_stream(unfinished)
        content = unfinished.getvalue()
        path = self._relation_file(relation.name, content_digest(content))
        make_directory(path.parent)
        write_durably(path, content)
        return content

    def record(
        self,
        queries: Mapping[str, KnownQuery],
        streams: Mapping[str, StreamEntry],
        relations: Mapping[str, tuple[RelationEntry, bytes]],
        *,
        epoch: int = 0,
        planning: Mapping[str, int | str | None] | None = None,
    ) -> None:
        """Know these queries from now on, and no others; and the streams and relations they read.

        Args:
            queries: The queries that run.
            streams: The streams they read; others that were read stay known.
            relations: The relations they read, with their rows.
            epoch: That of the youngest of their operators.
            planning: The settings that plans are made with; ``None`` if some are still to be made.
        """
        kept = {
            name: KeptRelation(relation_digest(relation), content_digest(rows))
            for name, (relation, rows) in relations.items()
        }
        self.record_kept(queries, streams, kept, epoch=epoch, planning=planning)

    def record_kept(
        self,
        queries: Mapping[str, KnownQuery],
        streams: Mapping[str, StreamEntry],
        relations: Mapping[str, KeptRelation],
        *,
        epoch: int = 0,
        planning: Mapping[str, int | str | None] | None = None,
    ) -> None:
        """Know these queries from now on, and no others; relations by how they are kept."""
        known = {name.lower(): query for name, query in queries.items()}
        facts = replace(
            self.facts,
            queries=known,
            planning=self.facts.planning if planning is None else planning,
            latest=max(epoch, self.facts.latest, *(query.epoch for query in known.values())),
            streams={
                **self.facts.streams,
                **{name.lower(): stream_digest(stream) for name, stream in streams.items()},
            },
            relations={name.lower(): kept for name, kept in relations.items()},
        )
        self.know(facts)

    def know(self, facts: Facts) -> None:
        """Write down what is known from now on."""
        write_record(self.directory, facts)
        self.facts = facts

    def begin_to_end(self) -> None:
        """Note that the streams are told to end, before they are; there is no way back."""
        self.know(replace(self.facts, ending=True))

    def end(self) -> None:
        """Note that the streams have been run to their end."""
        self.know(replace(self.facts, ended=True))

    def _frame_file(self, key: str) -> Path:
        return _frame_file(self.directory, key)

    def _relation_file(self, name: str, digest: str) -> Path:
        return self.relations / f"{word_of(name)}-{digest}.arrow"

    def _plan_file(self, version: str) -> Path:
        return self.directory / "plans" / f"{version}.json"

    def _kept_rows(self, name: str, digest: str) -> bytes:
        path = self._relation_file(name, digest)
        hint = "bring the file back, or choose a new checkpoint"
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RunError(
                f'the rows of relation "{name}" in the checkpoint cannot be read: {error}',
                hint=hint,
            ) from error
        if content_digest(content) != digest:
            raise RunError(
                f'the rows of relation "{name}" in the checkpoint are damaged: "{path}"', hint=hint
            )
        return content


def _statistics_in(written: Json) -> Statistics:
    """What was known when a plan was made; nothing, if that cannot be read."""
    try:
        return read_statistics(written["statistics"])
    except (LookupError, TypeError, AttributeError, ValueError, AssertionError):
        return NOTHING_KNOWN


def keeps_rows(directory: Path, name: str) -> bool:
    """Whether a checkpoint has the rows of a frame that a stream or relation has read."""
    word = word_of(name)
    relations = directory.glob(f"relations/{word}-*.arrow")
    return _frame_file(directory, word).is_file() or any(relations)


def _frame_file(directory: Path, key: str) -> Path:
    return directory / "memory" / key / "frame.parquet"


def _another(name: str, known: Asked, asked: Asked) -> RunError:
    if known.sink != asked.sink:
        why = f"it writes to {asked.sink}, and that one to {known.sink}"
    elif known.text != asked.text:
        why = f"that one asks {known.text}"
    else:
        why = "the text is the same, but a stream, view or function that it uses is another one"
    return RunError(
        f'query "{name}" is not the one that this checkpoint runs: {why}',
        hint="create it as it was and change it while it runs, with ALTER QUERY"
        f" {quote_name(name)} AS …; or give this one another name, or write DROP QUERY"
        f" {quote_name(name)} and create it again",
    )


def _queries(names: Collection[str]) -> str:
    return "query" if len(names) == 1 else "queries"


def _same_rows(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two frames have the same rows, in whatever order."""
    if one.schema != other.schema or one.height != other.height:
        return False
    return one.equals(other) or one.sort(one.columns).equals(other.sort(other.columns))
