"""Streams and relations as JSON, for the workers that read them.

Law: ``read(write(entry)) == entry``; where an entry stands in a statement is left out, and
what hints say, which workers need not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.codec.records import Record
from tidemill.algebra.codec.values import PLAIN, SCHEMA, Codec, enum, many, optional
from tidemill.algebra.plan import Validity
from tidemill.catalog.entries import Kept, RelationEntry, StreamEntry
from tidemill.lang.statements import ConnectorCall, Environment, LatePolicy, MalformedPolicy, Name

if TYPE_CHECKING:
    from tidemill.algebra.codec.values import Json
    from tidemill.lang.statements import Argument

__all__ = ["read_relation_entry", "read_stream_entry", "write_relation_entry", "write_stream_entry"]


def _write_call(call: ConnectorCall) -> Json:
    """The connector with its arguments: the one place where they are written unmasked.

    What is in the environment stays there.
    """
    positional = [_write_argument(value) for value in call.positional]
    named = [[name, _write_argument(value)] for name, value in call.named]
    return {"name": call.name.text, "positional": positional, "named": named}


def _read_call(written: Json) -> ConnectorCall:
    positional = tuple(_read_argument(value) for value in written["positional"])
    named = tuple((name, _read_argument(value)) for name, value in written["named"])
    return ConnectorCall(Name(written["name"]), positional, named)


def _write_argument(value: Argument) -> Json:
    return {"env": value.name} if isinstance(value, Environment) else value


def _read_argument(written: Json) -> Argument:
    return Environment(written["env"]) if isinstance(written, dict) else written


_CALL = Codec(_write_call, _read_call)
_PERIOD = Record("validity", Validity, {"start": PLAIN, "end": PLAIN})

_KEPT = Record("kept", Kept, {"length": PLAIN, "by_reference": PLAIN})

_STREAM = Record(
    "stream",
    StreamEntry,
    {
        "name": PLAIN,
        "schema": SCHEMA,
        "source": _CALL,
        "time_column": PLAIN,
        "within": PLAIN,
        "late": enum(LatePolicy),
        "idle_after": PLAIN,
        "malformed": enum(MalformedPolicy),
        "keep": optional(Codec(_KEPT.write, _KEPT.read)),
    },
)

_RELATION = Record(
    "relation",
    RelationEntry,
    {
        "name": PLAIN,
        "schema": SCHEMA,
        "source": _CALL,
        "validity": optional(Codec(_PERIOD.write, _PERIOD.read)),
        "key": many(PLAIN),
        "retroactive": PLAIN,
    },
)


def write_stream_entry(stream: StreamEntry) -> Json:
    """A stream, for ``json``."""
    return _STREAM.write(stream)


def read_stream_entry(written: Json) -> StreamEntry:
    """The stream that was written."""
    stream: StreamEntry = _STREAM.read(written)
    return stream


def write_relation_entry(relation: RelationEntry) -> Json:
    """A relation, for ``json``."""
    return _RELATION.write(relation)


def read_relation_entry(written: Json) -> RelationEntry:
    """The relation that was written."""
    relation: RelationEntry = _RELATION.read(written)
    return relation
