"""Operators as JSON: a table of how each is written, by a name of its own.

Law: ``read_operator(write_operator(o)) == o``, with the fields that do not tell it from others.
What an operator has made of its fields is not written, but made again.

The identity of an operator is what is written of the fields that are compared: an operator with
another identity has other state. How a join probes is no part of it, nor is a field that has its
default, so that state is found after an operator has gained one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidemill.algebra.codec.records import Record
from tidemill.algebra.codec.values import (
    AGGREGATE,
    AGGREGATES,
    EXPR,
    NAMED,
    PLAIN,
    SCHEMA,
    Codec,
    canonical,
    enum,
    many,
    optional,
)
from tidemill.model.batch import Form
from tidemill.model.spans import Leaves, Span
from tidemill.physical import interval, signed
from tidemill.physical.joining.tree import JoinTree, Stage

if TYPE_CHECKING:
    from tidemill.algebra.codec.values import Json
    from tidemill.physical.operator import Operator

__all__ = ["OPERATORS", "identity", "operator_name", "read_operator", "write_operator"]

_NAMES = many(PLAIN)
_SCHEMAS = many(SCHEMA)
_ORDERS = many(_NAMES)

_JOIN: dict[str, Codec[Any]] = {
    "left": SCHEMA,
    "right": SCHEMA,
    "names": _NAMES,
    "condition": EXPR,
}
_MULTI_JOIN: dict[str, Codec[Any]] = {
    "inputs": _SCHEMAS,
    "names": _NAMES,
    "condition": EXPR,
    "orders": _ORDERS,
}


def _write_tree(tree: JoinTree) -> Json:
    return tree if isinstance(tree, int) else [_write_tree(child) for child in tree.children]


def _read_tree(written: Json) -> JoinTree:
    return Stage(tuple(map(_read_tree, written))) if isinstance(written, list) else int(written)


_JOIN_TREE: dict[str, Codec[Any]] = {
    **_MULTI_JOIN,
    "orderly": _NAMES,
    "tree": Codec(_write_tree, _read_tree),
}
_AGGREGATE: dict[str, Codec[Any]] = {
    "keys": NAMED,
    "aggregates": AGGREGATES,
    "input_schema": SCHEMA,
    "schema": SCHEMA,
    "panes": PLAIN,
    "max_delay": PLAIN,
    "combined": PLAIN,
    "takes": enum(Form),
    "partial": PLAIN,
}
_COUNTING: dict[str, Codec[Any]] = {
    "multiplicity": enum(interval.Multiplicity),
    "inputs": _SCHEMAS,
    "schema": SCHEMA,
    "max_delay": PLAIN,
}
_ROW_WINDOW: dict[str, Codec[Any]] = {
    "schema": SCHEMA,
    "rows": PLAIN,
    "slide": PLAIN,
    "partition_by": _NAMES,
    "by_id": PLAIN,
    "max_delay": PLAIN,
    "unless": optional(EXPR),
}
_SESSION_WINDOW: dict[str, Codec[Any]] = {
    "schema": SCHEMA,
    "gap": PLAIN,
    "partition_by": _NAMES,
    "max_delay": PLAIN,
}

_SPAN = Record(
    "span",
    Span,
    {**dict.fromkeys(("since", "until", "joins", "hands_on"), PLAIN), "leaves": enum(Leaves)},
)
_STRETCH: dict[str, Codec[Any]] = {
    "schema": SCHEMA,
    "owner": PLAIN,
    "spans": many(Codec(_SPAN.write, _SPAN.read)),
}

OPERATORS = (
    # one row at a time, and converters
    Record("interval.Filter", interval.Filter, {"schema": SCHEMA, "predicate": EXPR}),
    Record("interval.Project", interval.Project, {"schema": SCHEMA, "columns": NAMED}),
    Record("interval.Union", interval.Union, {"schema": SCHEMA, "right_names": _NAMES}),
    Record("interval.Number", interval.Number, {"input": SCHEMA}),
    Record("interval.Identify", interval.Identify, {"input": SCHEMA, "has_time": PLAIN}),
    Record("interval.Since", interval.Since, {"schema": SCHEMA, "time": PLAIN}),
    Record(
        "interval.Shorten",
        interval.Shorten,
        {"schema": SCHEMA, "by": PLAIN, "longest": PLAIN},
    ),
    Record(
        "interval.Split",
        interval.Split,
        dict.fromkeys(("length", "must_cut"), PLAIN) | {"schema": SCHEMA},
    ),
    Record("interval.Coalesce", interval.Coalesce, {"schema": SCHEMA, "max_length": PLAIN}),
    Record("interval.Granularity", interval.Granularity, {"schema": SCHEMA, "granule": PLAIN}),
    Record(
        "interval.Changes", interval.Changes, {"change": enum(interval.Change), "schema": SCHEMA}
    ),
    Record("signed.ToSigned", signed.ToSigned, {"schema": SCHEMA}),
    Record("signed.ToIntervals", signed.ToIntervals, {"schema": SCHEMA, "max_delay": PLAIN}),
    Record("signed.Hold", signed.Hold, {"schema": SCHEMA}),
    Record("interval.Stretch", interval.Stretch, _STRETCH),
    Record("signed.Stretch", signed.Stretch, {**_STRETCH, "counts": PLAIN}),
    # windows
    Record(
        "interval.TimeWindow",
        interval.TimeWindow,
        {"schema": SCHEMA, "size": PLAIN, "slide": PLAIN, "wanted": PLAIN},
    ),
    Record("interval.RowWindow", interval.RowWindow, _ROW_WINDOW),
    Record("signed.RowWindow", signed.RowWindow, _ROW_WINDOW),
    Record("interval.SessionWindow", interval.SessionWindow, _SESSION_WINDOW),
    Record("signed.SessionWindow", signed.SessionWindow, _SESSION_WINDOW),
    # joins
    Record("interval.Join", interval.Join, {**_JOIN, "orderly": _NAMES}),
    Record("signed.Join", signed.Join, _JOIN),
    Record(
        "interval.MultiJoin",
        interval.MultiJoin,
        {
            **_MULTI_JOIN,
            "orderly": _NAMES,
            "evaluation": PLAIN,
            "expiration": PLAIN,
            "short_lived": enum(interval.ShortLived),
            "within": optional(_ORDERS),
        },
    ),
    Record("interval.JoinTree", interval.JoinTree, _JOIN_TREE),
    Record("signed.MultiJoin", signed.MultiJoin, _MULTI_JOIN),
    # aggregates
    Record("interval.Aggregate", interval.Aggregate, _AGGREGATE),
    Record("signed.Aggregate", signed.Aggregate, _AGGREGATE),
    Record("interval.Combine", interval.Combine, {"aggregates": many(AGGREGATE), "keys": NAMED}),
    # sets
    Record("interval.Counting", interval.Counting, _COUNTING),
    Record("signed.Counting", signed.Counting, _COUNTING),
    Record("interval.Distinct", interval.Distinct, {"schema": SCHEMA}),
)
"""Every operator that a plan can hold."""

_BY_KIND = {record.kind: record for record in OPERATORS}
_BY_NAME = {record.name: record for record in OPERATORS}


def operator_name(operator: Operator) -> str:
    """What an operator is called, with the form that gives it its place."""
    return _BY_KIND[type(operator)].name


def write_operator(operator: Operator) -> dict[str, Json]:
    """The operator, for ``json``."""
    record = _BY_KIND[type(operator)]
    return {"operator": record.name, **record.write(operator)}


def read_operator(written: dict[str, Json]) -> Operator:
    """The operator that was written.

    Raises:
        KeyError: There is no such operator, or a field of it is missing.
    """
    operator: Operator = _BY_NAME[written["operator"]].read(written)
    return operator


def identity(operator: Operator) -> str:
    """A text that tells an operator from those that have other state."""
    record = _BY_KIND[type(operator)]
    written = {"operator": record.name, **record.write(operator, identity=True)}
    return canonical(written)
