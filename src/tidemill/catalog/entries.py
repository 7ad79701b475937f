"""The entries of the catalog: what the system knows about each registered thing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.catalog.hints import NO_HINTS, Hints
from tidemill.lang.statements import LatePolicy, MalformedPolicy, ObjectKind
from tidemill.model.schema import Schema
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.algebra.plan import Plan, Validity
    from tidemill.catalog.records import Moving, Record
    from tidemill.lang.statements import ConnectorCall, StartMode
    from tidemill.model.schema import Field
    from tidemill.model.spans import Cut
    from tidemill.model.types import DataType

__all__ = [
    "ChangingRelationEntry",
    "DerivedStreamEntry",
    "Entry",
    "FunctionEntry",
    "Kept",
    "QueryEntry",
    "RelationEntry",
    "Room",
    "StreamEntry",
    "connector_of",
    "entry_schema",
    "function_use",
    "is_of",
    "kind_of",
    "object_use",
    "uses_of",
]


@dataclass(frozen=True, slots=True)
class Kept:
    """How much of its past a stream keeps.

    Attributes:
        length: For how long behind its watermark, in microseconds; ``None`` for ever.
        by_reference: Whether the files of the source are named, since they stay, and not copied.
    """

    length: int | None = None
    by_reference: bool = False

    def first(self, watermark: int) -> int:
        """The first instant whose rows are kept when the stream has come so far.

        When it has ended, time does not pass on it any more, and what it has kept stays.
        """
        is_all = self.length is None or watermark >= END_OF_TIME
        return 0 if is_all else max(watermark - (self.length or 0), 0)


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A source stream.

    Attributes:
        time_column: The column that orders the stream; ``None`` means arrival time.
        within: How much disorder the source promises at most, in microseconds.
        late: What becomes of rows that break the promise.
        idle_after: After how much silence, in microseconds, it no longer holds others back.
        malformed: What becomes of rows with a value that its column's type does not hold.
        keep: How much of its past it keeps; ``None`` if nothing.
        hints: What is said of its rows.
    """

    name: str
    schema: Schema
    source: ConnectorCall
    time_column: str | None = None
    within: int = 0
    late: LatePolicy = LatePolicy.DROP
    idle_after: int | None = None
    malformed: MalformedPolicy = MalformedPolicy.FAIL
    keep: Kept | None = None
    hints: Hints = NO_HINTS


@dataclass(frozen=True, slots=True)
class RelationEntry:
    """A constant relation, or a temporal one if its rows have periods.

    Attributes:
        key: The columns whose values belong to one content for ever, if it is not retroactive.
        retroactive: Whether a change reaches results made before it.
        hints: What is said of its rows.
    """

    name: str
    schema: Schema
    source: ConnectorCall
    validity: Validity | None = None
    key: tuple[str, ...] = ()
    retroactive: bool = True
    hints: Hints = NO_HINTS


@dataclass(frozen=True, slots=True)
class ChangingRelationEntry:
    """A relation that a stream changes: using its name is the same as using its plan.

    Attributes:
        name: Its name.
        plan: The last row of each key, in the columns of the relation.
        stream: The stream whose rows change it.
        key: The columns by which a row replaces another.
        deleted: Which rows only take away the one of their key, as text; ``None`` if none do.
        retroactive: Whether a change reaches results made before it.
        uses: What its definition refers to.
    """

    name: str
    plan: Plan
    stream: str
    key: tuple[str, ...]
    deleted: str | None
    retroactive: bool
    uses: frozenset[str]


@dataclass(frozen=True, slots=True)
class DerivedStreamEntry:
    """A named view: using its name is the same as using its plan."""

    name: str
    plan: Plan
    text: str = field(repr=False)
    uses: frozenset[str]


@dataclass(frozen=True, slots=True)
class Room:
    """How much a query may be expected to take.

    Attributes:
        cpu: How many microseconds of work for a second of the streams; ``None`` for any number.
        memory: How many bytes of state; ``None`` for any number.
    """

    cpu: float | None
    memory: float | None


@dataclass(frozen=True, slots=True)
class QueryEntry:
    """A continuous query and where its answer goes.

    Attributes:
        sink: Where; ``None`` for memory.
        time: The type that the times of the answer have for its readers, TIMESTAMP or BIGINT.
        start: Which windows it is to answer from if others run when it is created.
        record: What has become of it; ``None`` if it has run from the beginning on, if at all.
        cut: Of an instance that does not answer everything, which instants its sink gets. It does
            not tell it from others, since it changes while the instance runs.
        replays: Of an instance that is filled with rows that streams have kept, from when on its
            answer is asked for.
        keep: Of a table, for how long its rows are kept that have gone; ``None`` of other queries.
        room: How much it may take, if less than the limits of the session: what others had left.
        moving: Of an instance, the plan that takes over. It does not tell it from others, either.
        provenance: For how long what its rows are made of is kept; ``None`` if it is not.
    """

    name: str
    plan: Plan
    text: str = field(repr=False)
    uses: frozenset[str]
    sink: ConnectorCall | None = None
    time: DataType = BIGINT
    start: StartMode | None = field(default=None, compare=False)
    record: Record | None = field(default=None, repr=False)
    cut: Cut | None = field(default=None, repr=False, compare=False)
    replays: int | None = None
    keep: Kept | None = None
    room: Room | None = field(default=None, repr=False, compare=False)
    moving: Moving | None = field(default=None, repr=False, compare=False)
    provenance: Kept | None = None

    @property
    def is_table(self) -> bool:
        """Whether its answer is a table."""
        return self.keep is not None

    @property
    def was_changed(self) -> bool:
        """Whether what it answers is not all of one version, from its beginning on."""
        record = self.record
        if record is None:
            return False
        is_open = bool(record.parts) and record.parts[-1].until == END_OF_TIME
        is_whole = is_open and all(part.joins for part in record.parts[1:])
        return len(record.versions) > 1 or record.paused is not None or not is_whole


@dataclass(frozen=True, slots=True)
class FunctionEntry:
    """An abbreviation for an expression over its parameters."""

    name: str
    parameters: tuple[Field, ...]
    body: exp.Expr
    result: Field
    text: str = field(repr=False)
    uses: frozenset[str]


Entry: TypeAlias = (
    StreamEntry
    | RelationEntry
    | ChangingRelationEntry
    | DerivedStreamEntry
    | QueryEntry
    | FunctionEntry
)

_KINDS: dict[type[Entry], ObjectKind] = {
    StreamEntry: ObjectKind.STREAM,
    DerivedStreamEntry: ObjectKind.STREAM,
    RelationEntry: ObjectKind.RELATION,
    ChangingRelationEntry: ObjectKind.RELATION,
    QueryEntry: ObjectKind.QUERY,
    FunctionEntry: ObjectKind.FUNCTION,
}


def kind_of(entry: Entry) -> ObjectKind:
    """What the entry is called in DROP and SHOW."""
    if isinstance(entry, QueryEntry) and entry.is_table:
        return ObjectKind.TABLE
    return _KINDS[type(entry)]


def is_of(entry: Entry, kind: ObjectKind) -> bool:
    """Whether an entry is listed with those of a kind: a table is a query as well."""
    is_query = kind is ObjectKind.QUERY and isinstance(entry, QueryEntry)
    return is_query or kind_of(entry) is kind


def object_use(name: str) -> str:
    """How ``uses`` names a stream, relation or query."""
    return f"object {name.lower()}"


def function_use(name: str) -> str:
    """How ``uses`` names a function."""
    return f"function {name.lower()}"


def uses_of(entry: Entry) -> frozenset[str]:
    """What the entry's definition refers to."""
    match entry:
        case StreamEntry() | RelationEntry():
            return frozenset()
        case ChangingRelationEntry() | DerivedStreamEntry() | QueryEntry() | FunctionEntry():
            return entry.uses
        case _:
            assert_never(entry)


def connector_of(entry: Entry) -> ConnectorCall | None:
    """The source or sink of an entry, if it has one."""
    match entry:
        case StreamEntry() | RelationEntry():
            return entry.source
        case QueryEntry():
            return entry.sink
        case ChangingRelationEntry() | DerivedStreamEntry() | FunctionEntry():
            return None
        case _:
            assert_never(entry)


def entry_schema(entry: Entry) -> Schema:
    """The columns the entry has to offer; for a function, its parameters."""
    match entry:
        case StreamEntry() | RelationEntry():
            return entry.schema
        case ChangingRelationEntry() | DerivedStreamEntry() | QueryEntry():
            return entry.plan.schema
        case FunctionEntry():
            return Schema(entry.parameters)
        case _:
            assert_never(entry)
