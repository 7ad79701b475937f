"""Statements: what a text says, before any name is looked up.

A statement is a frozen value. Expressions and queries inside it are sqlglot trees of the Tidemill
dialect; two statements are equal when they say the same, wherever they stand in the text.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from tidemill.lang.lifecycle_statements import (
    AlterProvenance,
    AlterQuery,
    Change,
    Instant,
    Lifecycle,
    Migration,
    PauseQuery,
    ReplanQuery,
    ResumeQuery,
    StartMode,
    StartQuery,
    StopMode,
    StopQuery,
)
from tidemill.lang.one_time_statements import OneTimeQuery
from tidemill.lang.settings_statements import Adapt, SetAdapt, ShowSettings
from tidemill.lang.statistics_statements import Hint, HintKind, ShowStatistics
from tidemill.lang.why_statements import Why, WhyKind
from tidemill.masking import masked_value, secrets_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from tidemill.errors import Span

__all__ = [
    "Adapt",
    "AlterProvenance",
    "AlterQuery",
    "Argument",
    "ArgumentSpans",
    "Change",
    "ColumnDefinition",
    "ConnectorCall",
    "CreateChangingRelation",
    "CreateDerivedStream",
    "CreateFunction",
    "CreateQuery",
    "CreateRelation",
    "CreateStream",
    "CreateTable",
    "Describe",
    "DescribeConnector",
    "Drop",
    "Duration",
    "Environment",
    "Explain",
    "ExplainMode",
    "Explained",
    "Hint",
    "HintKind",
    "Instant",
    "Keep",
    "LatePolicy",
    "Lifecycle",
    "MalformedPolicy",
    "Migration",
    "Name",
    "ObjectKind",
    "OneTimeQuery",
    "PauseQuery",
    "Provenance",
    "ReplanQuery",
    "ResumeQuery",
    "Select",
    "SetAdapt",
    "Show",
    "ShowConnectors",
    "ShowDecisions",
    "ShowSettings",
    "ShowStatistics",
    "StartMode",
    "StartQuery",
    "Statement",
    "StopMode",
    "StopQuery",
    "Validity",
    "Why",
    "WhyKind",
    "shown_argument",
]


@dataclass(frozen=True, slots=True)
class Name:
    """A name as it was written, and where."""

    text: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time as it was written, in microseconds."""

    microseconds: int
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Keep:
    """KEEP duration | KEEP ALL [BY REFERENCE]: how much of its past a stream keeps.

    Attributes:
        length: For how long rows are kept; ``None`` for ever.
        by_reference: Whether the files of the source are named, since they stay, and not copied.
    """

    length: Duration | None = None
    by_reference: bool = False


@dataclass(frozen=True, slots=True)
class Provenance:
    """WITH PROVENANCE [KEEP duration | KEEP ALL]: what rows were made of is kept with them.

    Attributes:
        keep: For how long; ``None`` for the last instant that is known only.
    """

    keep: Keep | None = None


class LatePolicy(Enum):
    """What becomes of a row that comes after its stream's watermark has passed it."""

    DROP = "DROP"
    QUARANTINE = "QUARANTINE"


class MalformedPolicy(Enum):
    """What becomes of a row with a value that its column's type does not hold."""

    FAIL = "FAIL"
    QUARANTINE = "QUARANTINE"
    DROP = "DROP"


class ObjectKind(Enum):
    """What can be created, dropped and shown."""

    STREAM = "STREAM"
    RELATION = "RELATION"
    QUERY = "QUERY"
    TABLE = "TABLE"
    FUNCTION = "FUNCTION"


class ExplainMode(Enum):
    """Which of a query's forms EXPLAIN shows."""

    LOGICAL = "LOGICAL"
    PHYSICAL = "PHYSICAL"
    STAGES = "STAGES"
    TRACE = "TRACE"
    ANALYZE = "ANALYZE"
    COST = "COST"


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column of CREATE STREAM, CREATE RELATION or CREATE FUNCTION."""

    name: Name
    type: exp.DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Environment:
    """env('NAME'): a value that is in the environment, and in no statement.

    It is looked up where the connector is used, and shown and kept as it was written.
    """

    name: str

    def __repr__(self) -> str:
        return f"env({self.name!r})"

    def value(self) -> str | None:
        """What the variable is now, if it is set and not empty."""
        return os.environ.get(self.name) or None


Argument: TypeAlias = str | int | float | bool | Environment
"""What can be written as the value of an option."""


@dataclass(frozen=True, slots=True)
class ArgumentSpans:
    """Where the arguments of a connector stand.

    Attributes:
        positional: The values without a name.
        names: The names of the others, by name.
        values: The values of the others, by name.
    """

    positional: tuple[Span, ...] = ()
    names: Mapping[str, Span] = field(default_factory=dict)
    values: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False)
class ConnectorCall:
    """A source or sink with its arguments, as ``parquet(path => 'data')``.

    Its ``repr`` has no secrets, as it may be shown.
    """

    name: Name
    positional: tuple[Argument, ...] = ()
    named: tuple[tuple[str, Argument], ...] = ()
    spans: ArgumentSpans = field(default=ArgumentSpans(), compare=False)

    def __repr__(self) -> str:
        positional = tuple(shown_argument("", value) for value in self.positional)
        named = tuple((name, shown_argument(name, value)) for name, value in self.named)
        return f"ConnectorCall(name={self.name!r}, positional={positional!r}, named={named!r})"

    def secrets(self) -> frozenset[str]:
        """What must not be shown of the arguments: also all that is in the environment."""
        values = [value for _, value in self._said() if isinstance(value, Environment)]
        found = (environment.value() for environment in values)
        return self.literal_secrets() | {value for value in found if value is not None}

    def literal_secrets(self) -> frozenset[str]:
        """The secrets that stand in the statement itself."""
        said = self._said()
        return secrets_of((n, v) for n, v in said if not isinstance(v, Environment))

    def _said(self) -> tuple[tuple[str, Argument], ...]:
        return (*(("", value) for value in self.positional), *self.named)


def shown_argument(name: str, value: Argument) -> Argument:
    """The value of an option as it may be shown."""
    return value if isinstance(value, Environment) else masked_value(name, value)


@dataclass(frozen=True, slots=True)
class CreateStream:
    """CREATE STREAM name (columns) SOURCE … ORDERED BY … LATE … IDLE AFTER … KEEP … HINT …."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    source: ConnectorCall
    ordered_by: Name | None = None
    within: Duration | None = None
    late: LatePolicy = LatePolicy.DROP
    idle_after: Duration | None = None
    malformed: MalformedPolicy = MalformedPolicy.FAIL
    keep: Keep | None = None
    hints: tuple[Hint, ...] = ()


@dataclass(frozen=True, slots=True)
class Validity:
    """VALID FROM start [TO end]: the columns that hold a temporal relation's periods."""

    start: Name
    end: Name | None = None


@dataclass(frozen=True, slots=True)
class CreateRelation:
    """CREATE RELATION name (columns) SOURCE … [VALID …] [KEY (…)] [NON RETROACTIVE] [HINT (…)]."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    source: ConnectorCall
    validity: Validity | None = None
    key: tuple[Name, ...] = ()
    retroactive: bool = True
    hints: tuple[Hint, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateChangingRelation:
    """CREATE RELATION name [(columns)] FROM STREAM … KEY (…) [NON RETROACTIVE] [DELETE WHEN …].

    Attributes:
        name: What it is called.
        columns: Those of the stream that it has; none for all of them.
        stream: The stream whose rows change it.
        key: The columns by which a row replaces another.
        deleted: Of which rows it is true that they only take away the one of their key.
        retroactive: Whether a change reaches results made before it.
    """

    name: Name
    columns: tuple[ColumnDefinition, ...]
    stream: Name
    key: tuple[Name, ...]
    deleted: exp.Expr | None = None
    retroactive: bool = True


@dataclass(frozen=True, slots=True)
class CreateDerivedStream:
    """CREATE STREAM name AS query: a named view."""

    name: Name
    query: exp.Expr


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE FUNCTION name(parameters) AS expression: an abbreviation, replaced where used."""

    name: Name
    parameters: tuple[ColumnDefinition, ...]
    body: exp.Expr


@dataclass(frozen=True, slots=True)
class CreateQuery:
    """CREATE QUERY name [INTO sink] [START …] [WITH PROVENANCE [KEEP …]] AS query.

    Attributes:
        start: Which windows it answers from if it is created while others run; ``None`` for those
            that are full at once, if the streams keep what they need, and else for empty ones.
        provenance: Whether what its rows are made of is kept, and for how long; ``None`` if not.
    """

    name: Name
    query: exp.Expr
    sink: ConnectorCall | None = None
    start: StartMode | None = None
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE name [KEEP duration | KEEP ALL] [START …] AS query: an answer that is kept.

    Attributes:
        keep: For how long rows stay when they have gone; ``None`` if not at all.
        start: As of ``CreateQuery``.
    """

    name: Name
    query: exp.Expr
    keep: Keep | None = None
    start: StartMode | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """A query without a name; it gets one when it is registered."""

    query: exp.Expr


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP STREAM | RELATION | QUERY | TABLE | FUNCTION [IF EXISTS] name."""

    kind: ObjectKind
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW STREAMS | RELATIONS | QUERIES | TABLES | FUNCTIONS."""

    kind: ObjectKind


@dataclass(frozen=True, slots=True)
class ShowConnectors:
    """SHOW CONNECTORS: what rows can be read from and written to."""


@dataclass(frozen=True, slots=True)
class ShowDecisions:
    """SHOW DECISIONS [FOR] [name]: what was chosen when queries were planned, and why.

    Attributes:
        name: The query; ``None`` for all.
    """

    name: Name | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE name."""

    name: Name


@dataclass(frozen=True, slots=True)
class DescribeConnector:
    """DESCRIBE CONNECTOR name: its options."""

    name: Name


Explained: TypeAlias = Select | OneTimeQuery | CreateQuery | CreateTable | Name | Lifecycle | Why
"""What can be explained."""


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN [LOGICAL | PHYSICAL | STAGES | TRACE | COST | ANALYZE] [FORMAT JSON] query or name.

    Of a statement of the lifecycle it gives the verdict, and does nothing; of WHY it says what
    would be read.

    Attributes:
        mode: Which form of it is shown; LOGICAL, and without meaning, for a verdict and for WHY.
        target: A query, with its sink if it has one, the name of one that is registered, what
            would be done to one, or what is asked of its answer.
        as_json: Whether it is shown as JSON.
    """

    mode: ExplainMode
    target: Explained
    as_json: bool = False


Statement: TypeAlias = (
    CreateStream
    | CreateRelation
    | CreateChangingRelation
    | CreateDerivedStream
    | CreateFunction
    | CreateQuery
    | CreateTable
    | Select
    | OneTimeQuery
    | Why
    | Drop
    | Show
    | ShowConnectors
    | ShowDecisions
    | ShowSettings
    | ShowStatistics
    | SetAdapt
    | Describe
    | DescribeConnector
    | Explain
    | AlterQuery
    | ReplanQuery
    | AlterProvenance
    | StartQuery
    | StopQuery
    | PauseQuery
    | ResumeQuery
)
