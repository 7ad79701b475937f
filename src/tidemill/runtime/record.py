"""The record of a checkpoint: what it is made for, and what it knows, in one small file.

Law: what was written is read again as it was; anything else in the file is damage. A record is of
one format and one place.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tidemill.algebra.codec.plans import meaning
from tidemill.algebra.reach import unbegun
from tidemill.catalog.codec import write_relation_entry, write_stream_entry
from tidemill.connectors.connector import Engine
from tidemill.errors import RunError
from tidemill.lang.parse import parse_one
from tidemill.lang.statements import CreateQuery, CreateTable
from tidemill.lang.unparse import unparse
from tidemill.runtime.connectors import source_place
from tidemill.runtime.damage import damaged, require_types
from tidemill.runtime.durable import write_durably
from tidemill.runtime.json_lines import json_lines
from tidemill.runtime.paths import file_path
from tidemill.runtime.sinks import Destination, destination_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
    from tidemill.runtime.sinks import Sink

__all__ = [
    "FORMAT",
    "RECORD",
    "Asked",
    "Facts",
    "KeptRelation",
    "KnownQuery",
    "asked_of",
    "content_digest",
    "read_record",
    "relation_digest",
    "stream_digest",
    "write_record",
]

FORMAT = 7

RECORD = "tidemill.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that a session creates, as far as a checkpoint is to know it again.

    Attributes:
        meaning: A short name for the plan that it is bound to; a query that reads the same text
            otherwise, because a view has changed, has another.
        text: What it asks, in normal form, without its sink.
        sink: Where its answer goes.
    """

    meaning: str
    text: str
    sink: Destination


@dataclass(frozen=True, slots=True)
class KnownQuery:
    """A query that a checkpoint runs.

    Attributes:
        asked: What it is known by.
        epoch: When it began.
        version: The plan that it runs with, which names the file that it is in.
    """

    asked: Asked
    epoch: int
    version: str


@dataclass(frozen=True, slots=True)
class KeptRelation:
    """A relation whose rows are kept.

    Attributes:
        declaration: A digest of how it is declared.
        rows: A digest of its rows, which names the file they are in.
    """

    declaration: str
    rows: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a checkpoint is made for, and what it knows.

    Attributes:
        pids: The partitions, on Spark by the numbers Spark knows them by.
        stages: How many stateful stages there are.
        planning: The settings that plans depend on.
        ended: Whether the streams have been run to their end.
        pipeline: The identity of the checkpoint, which its sinks know.
        place: Where it was made.
        latest: The epoch in which a query began last; -1 before the first start.
        queries: The queries that run, by their names in lower case.
        streams: A digest of where each stream comes from and what it is made of.
        relations: The relations that queries read, by their names in lower case.
        begun: Whether the pipeline has been started; from then on what it writes must be there.
        ending: Whether the streams have been told to end; rows that come after that are late.
        engine: The engine that it is a checkpoint of.
    """

    pids: tuple[int, ...]
    stages: int
    planning: Mapping[str, int | str | None]
    ended: bool = False
    pipeline: str = field(default_factory=lambda: uuid4().hex)
    place: str = ""
    latest: int = -1
    queries: Mapping[str, KnownQuery] = field(default_factory=dict)
    streams: Mapping[str, str] = field(default_factory=dict)
    relations: Mapping[str, KeptRelation] = field(default_factory=dict)
    begun: bool = False
    ending: bool = False
    engine: str = Engine.SPARK.value


def asked_of(query: QueryEntry, sink: Sink | None) -> Asked:
    """What a checkpoint is to know of a query."""
    statement = parse_one(query.text)
    # The text of a sink may hold secrets.
    asks = statement.query if isinstance(statement, CreateQuery | CreateTable) else statement
    # When it began is no part of what it asks: the plan that is kept says it.
    return Asked(meaning(unbegun(query.plan)), unparse(asks), destination_of(sink))


def stream_digest(stream: StreamEntry) -> str:
    """What makes a stream this stream; how late rows may be, or how files settle, can change."""
    named = tuple(pair for pair in stream.source.named if pair[0] != "settle")
    source = replace(stream.source, named=named)
    # The same text means other files where another directory is the current one.
    path = file_path(source_place(stream.name, stream.source))
    written = write_stream_entry(replace(stream, source=source))
    kept = [
        None if path is None else str(path),
        *(written.get(part) for part in ("schema", "source", "time_column")),
    ]
    return content_digest(json.dumps(kept, sort_keys=True).encode())


def relation_digest(relation: RelationEntry) -> str:
    """What makes a relation this relation."""
    written = write_relation_entry(replace(relation, name=relation.name.lower()))
    return content_digest(json.dumps(written, sort_keys=True).encode())


def content_digest(content: bytes) -> str:
    """What tells one content from another."""
    return hashlib.sha256(content).hexdigest()[:16]


def read_record(directory: Path, engine: str) -> Facts:
    """What is known in a checkpoint.

    Args:
        directory: The checkpoint.
        engine: The engine that is to go on with it.

    Raises:
        RunError: It is damaged, of another format or engine, or was made at another place.
    """
    try:
        found = json.loads((directory / RECORD).read_text(encoding="utf-8"))
        version = found.pop("format")
        if version != FORMAT:
            raise RunError(
                f'the checkpoint "{directory}" has format {version}, and this version reads '
                f"{FORMAT}",
                hint="go on with the version that wrote it, or choose a new directory",
            )
        require_types(found, Facts)
        facts = _facts(found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(f'"{directory / RECORD}"', error) from error
    if facts.engine != engine:
        raise RunError(
            f'the checkpoint "{directory}" is one of the engine "{facts.engine}", and this session'
            f' has the engine "{engine}"',
            hint=f'write engine="{facts.engine}", or choose a new directory',
        )
    if facts.place != str(directory):
        raise RunError(
            f'the checkpoint "{directory}" was made at "{facts.place}", and cannot be used at'
            " another place yet: it names files by where they are",
            hint=f'move it back to "{facts.place}", or choose a new directory',
        )
    return facts


def _facts(found: dict[str, Any]) -> Facts:
    """The facts as they were before they were written as JSON."""
    queries = {
        name: KnownQuery(
            Asked(**{**known["asked"], "sink": Destination(**known["asked"]["sink"])}),
            known["epoch"],
            known["version"],
        )
        for name, known in found.pop("queries").items()
    }
    relations = {name: KeptRelation(**kept) for name, kept in found.pop("relations").items()}
    pids = tuple(found.pop("pids"))
    return Facts(pids, queries=queries, relations=relations, **found)


def write_record(directory: Path, facts: Facts) -> None:
    """Write down what is known from now on."""
    content = {"format": FORMAT, **asdict(facts)}
    write_durably(directory / RECORD, json_lines(content))
