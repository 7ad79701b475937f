"""Parameters: plans whose constants are not known yet, so that alike queries are one plan.

    SELECT k FROM a WHERE v > 5      SELECT k FROM a WHERE v > $0
    SELECT k FROM a WHERE v > 7        with 5, and with 7

Law: ``with_constants(parameterized(p).plan, parameterized(p).constants) == p``. Plans that differ
in constants only become the same plan, and have equal ``key``s, if the same constants of each are
equal to each other.

A parameter is a literal that says nothing of its value but that it is not NULL: whoever looks at it
gets ``ValueWantedError``. So what was found without looking is true of all values. Two parameters
are equal if their values are. What cannot be told without the value, as whether a parameter is a
certain constant, counts as looking. The length of a window is a constant too, if it moves at every
instant; all that is known of it is that it is more than one microsecond.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from tidemill.algebra.expr import Literal
from tidemill.algebra.plan import TimeWindow
from tidemill.algebra.tree import children, walk
from tidemill.model.schema import Schema
from tidemill.model.types import DataType, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.model.types import Value

__all__ = [
    "Constant",
    "Length",
    "Parameter",
    "Parameterized",
    "ValueWantedError",
    "constants_in",
    "key_of",
    "parameterized",
    "places_of",
    "with_constants",
]

T = TypeVar("T")

Constant: TypeAlias = Literal | int
"""A literal, or the length of a window in microseconds."""

_INPUTS = frozenset({"input", "left", "right"})

_KINDS: Final[Mapping[Kind, type]] = {
    Kind.INTEGER: int,
    Kind.BIGINT: int,
    Kind.DOUBLE: float,
    Kind.VARCHAR: str,
}
"""The types of parameters, and of their values."""


class ValueWantedError(Exception):
    """What is to be decided depends on the value of a parameter."""


class Parameter(Literal):
    """A constant whose value is not known.

    Attributes:
        number: Which one it is.
        type: Its type.
    """

    __slots__ = ("number",)

    number: int

    def __init__(self, number: int, type_: DataType) -> None:
        object.__setattr__(self, "number", number)
        object.__setattr__(self, "type", type_)

    @property
    def value(self) -> Value:
        """It is not known.

        Raises:
            ValueWantedError: Always.
        """
        raise ValueWantedError

    @property
    def is_null(self) -> bool:
        """It is not."""
        return False

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Parameter):
            return self.number == other.number
        if isinstance(other, Literal) and other.type == self.type and not other.is_null:
            raise ValueWantedError
        return False

    def __hash__(self) -> int:
        return hash((Parameter, self.number))

    def __repr__(self) -> str:
        """Its text, by which things may be ordered.

        Raises:
            ValueWantedError: Always.
        """
        raise ValueWantedError


@dataclass(frozen=True, slots=True)
class Length:
    """The length of a window, which is not known; what cannot be told is no operation of it.

    Attributes:
        number: Which one it is.
    """

    number: int

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Length):
            return self.number == other.number
        if isinstance(other, int) and other > 1:
            raise ValueWantedError
        return False

    def __hash__(self) -> int:
        return hash((Length, self.number))

    def __gt__(self, other: int) -> bool:
        if other > 1:
            raise ValueWantedError
        return True

    def __mod__(self, other: int) -> int:
        if other != 1:
            raise ValueWantedError
        return 0

    def __repr__(self) -> str:
        """Its text, by which things may be ordered.

        Raises:
            ValueWantedError: Always.
        """
        raise ValueWantedError


@dataclass(frozen=True, slots=True)
class Parameterized:
    """A plan without its constants.

    Attributes:
        plan: The plan, with parameters in their places.
        constants: Their values, by number.
    """

    plan: Plan
    constants: tuple[Constant, ...]


def parameterized(plan: Plan) -> Parameterized:
    """The plan with parameters for its constants.

    NULL, TRUE and FALSE stay: they are looked at everywhere. So do constants of types whose equal
    values can be told apart, as 0.0 and -0.0, or 1.0 and 1.00 of DECIMAL.
    """
    numbers: dict[Constant, Parameter | Length] = {}

    def parameter(part: object) -> object:
        match part:
            case Literal():
                if not _can_be_parameter(part):
                    return part
                return numbers.setdefault(part, Parameter(len(numbers), part.type))
            case TimeWindow(size, 1) if size > 1:
                length = numbers.setdefault(size, Length(len(numbers)))
                return TimeWindow(length)  # type: ignore[arg-type]  # it stands for a number
            case _:
                return None

    return Parameterized(_Replacing(parameter).of(plan), tuple(numbers))


def with_constants(part: T, constants: Sequence[Constant]) -> T:
    """A plan, or any part of one, with constants in the places of parameters."""

    def constant(part: object) -> object:
        if isinstance(part, Parameter | Length):
            return constants[part.number]
        return part if isinstance(part, Literal) else None

    return _Replacing(constant).of(part)


def places_of(operator: object) -> tuple[str, ...]:
    """The fields of an operator that have parameters."""

    def is_place(name: str) -> bool:
        found = _constants(getattr(operator, name), set())
        return any(isinstance(one, Parameter | Length) for one in found)

    return tuple(filter(is_place, _given(_kind(operator))))


def constants_in(part: object) -> Iterator[Literal]:
    """The literals of a part of a plan that a parameter could have been equal to."""
    found = (one for one in _constants(part, set()) if isinstance(one, Literal))
    plain = (one for one in found if not isinstance(one, Parameter))
    return (one for one in plain if one.type.kind in _KINDS and _is_one_value(one.value))


def key_of(plan: Plan) -> Hashable:
    """What equal plans have in common, in time linear in their different nodes.

    Args:
        plan: A plan in which equal parts are the same object (``tree.share``).
    """
    numbers: dict[int, int] = {}
    key: list[tuple[object, ...]] = []
    for node in walk(plan):
        numbers[id(node)] = len(numbers)
        own = (getattr(node, name) for name in _compared(_kind(node)))
        key.append((type(node), *own, *(numbers[id(child)] for child in children(node))))
    return tuple(key)


def _can_be_parameter(literal: Literal) -> bool:
    kind, value = _KINDS.get(literal.type.kind), literal.value
    return type(value) is kind and _is_one_value(value)


def _is_one_value(value: Value) -> bool:
    """Whether it is a value, and no other one is equal to it."""
    if isinstance(value, float):
        return value != 0 and isfinite(value)
    return value is not None


class _Replacing:
    """Replaces constants of plans; what is shared stays shared.

    Args:
        new: What stands in the place of a part; ``None`` if parts of it may be replaced.
    """

    def __init__(self, new: Callable[[object], object]) -> None:
        self._new = new
        self._done: dict[int, tuple[object, object]] = {}  # with what has the id, which stays so

    def of(self, part: T) -> T:
        """The part with other constants."""
        if not _is_looked_into(_kind(part)):
            return part
        known = self._done.get(id(part))
        if known is None:
            known = self._done[id(part)] = part, self._rebuilt(part)
        return known[1]  # type: ignore[return-value]  # it is of the same type

    def _rebuilt(self, part: object) -> object:
        found = self._new(part)
        if found is not None:
            return found
        if isinstance(part, tuple):
            new = tuple(self.of(one) for one in part)
            return part if all(a is b for a, b in zip(part, new, strict=True)) else new
        changed = {}
        for name in _given(_kind(part)):
            old = getattr(part, name)
            one = self.of(old)
            if one is not old:
                changed[name] = one
        return replace(part, **changed) if changed else part  # type: ignore[type-var]


def _constants(part: object, seen: set[int]) -> Iterator[Literal | Length]:
    if isinstance(part, Literal | Length):
        yield part
    elif _is_looked_into(_kind(part)) and id(part) not in seen:
        seen.add(id(part))
        inside = (
            part if isinstance(part, tuple) else (getattr(part, n) for n in _given(_kind(part)))
        )
        for one in inside:
            yield from _constants(one, seen)


def _kind(part: object) -> Hashable:
    """The type of a part, as what caches can be asked for."""
    kind: Hashable = type(part)  # type: ignore[assignment]  # types can be hashed
    return kind


@cache
def _is_looked_into(kind: Hashable) -> bool:
    """Whether constants can be in values of a type: plans, expressions, and tuples of them."""
    assert isinstance(kind, type), "it is the type of a value"
    return issubclass(kind, tuple) or (
        is_dataclass(kind) and not issubclass(kind, Schema | DataType)
    )


@cache
def _given(kind: Hashable) -> tuple[str, ...]:
    """The fields of a type that are not made from others."""
    assert isinstance(kind, type), "it is the type of a value"
    assert is_dataclass(kind), "constants are in dataclasses"
    return tuple(field.name for field in fields(kind) if field.init)


@cache
def _compared(kind: Hashable) -> tuple[str, ...]:
    """The fields that tell two operators over the same inputs apart."""
    assert isinstance(kind, type), "it is the type of a value"
    assert is_dataclass(kind), "operators are dataclasses"
    return tuple(f.name for f in fields(kind) if f.compare and f.name not in _INPUTS)
