"""Types, schemas and expressions as JSON.

Law: ``read(write(x)) == x``, to the last bit of a DOUBLE; NaN is read as NaN.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, assert_never

from tidemill.algebra.expr import AggregateCall, Call, Case, Cast, Column, Literal, Named
from tidemill.algebra.parameters import Length, Parameter
from tidemill.algebra.plan import NamedAggregate
from tidemill.model.schema import Field, Schema
from tidemill.model.types import DataType, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.expr import Expr
    from tidemill.model.types import Value

__all__ = [
    "AGGREGATE",
    "AGGREGATES",
    "EXPR",
    "NAMED",
    "PLAIN",
    "SCHEMA",
    "Codec",
    "Json",
    "canonical",
    "enum",
    "many",
    "optional",
]

Json: TypeAlias = Any
"""What ``json`` writes and reads."""

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How values of a kind are written, and read again."""

    write: Callable[[T], Json]
    read: Callable[[Json], T]


def many(part: Codec[T]) -> Codec[tuple[T, ...]]:
    """Values in order."""
    return Codec(
        lambda values: [part.write(value) for value in values],
        lambda written: tuple(part.read(value) for value in written),
    )


def optional(part: Codec[T]) -> Codec[T | None]:
    """A value, or none."""
    return Codec(
        lambda value: None if value is None else part.write(value),
        lambda written: None if written is None else part.read(written),
    )


def enum(kind: type[E]) -> Codec[E]:
    """One of some values, by its name."""
    return Codec(lambda value: value.name, lambda written: kind[written])


def _plain(value: Json) -> Json:
    return value


PLAIN: Codec[Any] = Codec(_plain, _plain)
"""What JSON has itself: texts, whole numbers, true, false and null."""


def _length(value: Json) -> Json:
    """What stands for the length of a window, in plans that are not kept.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, Length):
        return {"length": value.number}
    raise TypeError(f"{value!r} is not written")


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_length)


def canonical(written: Json) -> str:
    """The one text of what is written, to be hashed."""
    return _ENCODER.encode(written)


# Types and schemas

_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def _read_type(written: str) -> DataType:
    found = _DECIMAL.fullmatch(written)
    if found is not None:
        return DataType(Kind.DECIMAL, int(found[1]), int(found[2]))
    return DataType(Kind[written])


def _write_field(field: Field) -> Json:
    written = {"name": field.name, "type": str(field.type)}
    return written if field.nullable else {**written, "nullable": False}


def _read_field(written: Json) -> Field:
    return Field(written["name"], _read_type(written["type"]), written.get("nullable", True))


SCHEMA: Codec[Schema] = Codec(
    lambda schema: [_write_field(field) for field in schema],
    lambda written: Schema(tuple(_read_field(field) for field in written)),
)


# Values


def _write_value(value: Value, type_: DataType) -> Json:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case _:
            raise TypeError(f"a literal of {type_} holds {value!r}")


def _read_value(written: Json, type_: DataType) -> Value:
    if written is None:
        return None
    match type_.kind:
        case Kind.DOUBLE if isinstance(written, str):
            return float(written)
        case Kind.DECIMAL if isinstance(written, str):
            return Decimal(written)
        case Kind.DATE:
            return date.fromisoformat(written)
        case Kind.TIMESTAMP:
            return datetime.fromisoformat(written)
        case _:
            value: Value = written
            return value


# Expressions


def _write_expr(expr: Expr) -> Json:
    match expr:
        case Column(name, type_):
            return {"column": name, "type": str(type_)}
        case Parameter(type=type_):
            return {"parameter": expr.number, "type": str(type_)}  # of plans that are not kept
        case Literal(value, type_):
            return {"literal": _write_value(value, type_), "type": str(type_)}
        case Call(function, arguments, type_):
            written = [_write_expr(argument) for argument in arguments]
            return {"call": function, "arguments": written, "type": str(type_)}
        case Cast(input_, type_):
            return {"cast": _write_expr(input_), "type": str(type_)}
        case Case(branches, otherwise, type_):
            pairs = [[_write_expr(when), _write_expr(then)] for when, then in branches]
            return {"case": pairs, "otherwise": _write_expr(otherwise), "type": str(type_)}
        case _:
            assert_never(expr)


def _read_expr(written: Json) -> Expr:
    type_ = _read_type(written["type"])
    if "column" in written:
        return Column(written["column"], type_)
    if "literal" in written:
        return Literal(_read_value(written["literal"], type_), type_)
    if "call" in written:
        arguments = tuple(_read_expr(argument) for argument in written["arguments"])
        return Call(written["call"], arguments, type_)
    if "cast" in written:
        return Cast(_read_expr(written["cast"]), type_)
    branches = tuple((_read_expr(when), _read_expr(then)) for when, then in written["case"])
    return Case(branches, _read_expr(written["otherwise"]), type_)


EXPR: Codec[Expr] = Codec(_write_expr, _read_expr)

NAMED: Codec[tuple[Named, ...]] = many(
    Codec(
        lambda named: {"name": named.name, "expr": _write_expr(named.expr)},
        lambda written: Named(written["name"], _read_expr(written["expr"])),
    )
)


# Aggregates


def _write_aggregate(call: AggregateCall) -> Json:
    written: dict[str, Json] = {"function": call.function, "type": str(call.type)}
    if call.argument is not None:
        written["argument"] = _write_expr(call.argument)
    if call.distinct:
        written["distinct"] = True
    if call.condition is not None:
        written["condition"] = _write_expr(call.condition)
    return written


def _read_aggregate(written: Json) -> AggregateCall:
    argument, condition = written.get("argument"), written.get("condition")
    return AggregateCall(
        written["function"],
        None if argument is None else _read_expr(argument),
        _read_type(written["type"]),
        written.get("distinct", False),
        None if condition is None else _read_expr(condition),
    )


AGGREGATE: Codec[AggregateCall] = Codec(_write_aggregate, _read_aggregate)

AGGREGATES: Codec[tuple[NamedAggregate, ...]] = many(
    Codec(
        lambda named: {"name": named.name, **_write_aggregate(named.call)},
        lambda written: NamedAggregate(written["name"], _read_aggregate(written)),
    )
)
