"""Options: what can be said in the parentheses of a connector, each with its type.

Law: ``fault(type, value)`` is ``None`` exactly for the values that ``type_text(type)`` describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

__all__ = [
    "Choice",
    "Flag",
    "Number",
    "Option",
    "OptionType",
    "Text",
    "Value",
    "Whole",
    "default_text",
    "fault",
    "option_text",
    "type_text",
    "value_text",
]

Value: TypeAlias = str | int | float | bool
"""What can be written as the value of an option."""

_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Text:
    """A string that is not empty."""


@dataclass(frozen=True, slots=True)
class Flag:
    """TRUE or FALSE."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within limits."""

    least: int = 1
    most: int = _MOST


@dataclass(frozen=True, slots=True)
class Number:
    """A number within limits, of some unit."""

    unit: str
    least: float = 0
    most: float = _MOST


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several strings."""

    values: tuple[str, ...]


OptionType: TypeAlias = Text | Flag | Whole | Number | Choice


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a connector.

    Attributes:
        name: What stands before ``=>``.
        type: Which values it takes.
        documentation: What it means, in one sentence without a full stop.
        default: Its value if it is not given; ``None`` if there is none.
        otherwise: What holds if it is not given, where that is no value.
        required: Whether it must be given.
        positional: Whether its value may stand without the name, at the place that the option has
            among all that may.
        secret: Whether its value is never shown; its name must say so (``masking.is_secret``) and
            stand before the value, as the text of a broken statement is masked, too.
    """

    name: str
    type: OptionType
    documentation: str
    default: Value | None = None
    otherwise: str = ""
    required: bool = False
    positional: bool = False
    secret: bool = False


def type_text(type_: OptionType) -> str:
    """A type as people read it.

    >>> [type_text(t) for t in (Text(), Whole(), Number("seconds"), Choice(("a", "b", "c")))]
    ['a string', 'a whole number, at least 1', 'a number of seconds, at least 0', "'a', 'b' or 'c'"]
    """
    match type_:
        case Text():
            return "a string"
        case Flag():
            return "TRUE or FALSE"
        case Whole(least, most):
            return f"a whole number, {_limits(least, most)}"
        case Number(unit, least, most):
            return f"a number of {unit}, {_limits(least, most)}"
        case Choice(values):
            *others, last = (value_text(value) for value in values)
            return f"{', '.join(others)} or {last}" if others else last
        case _:
            assert_never(type_)


def fault(type_: OptionType, value: Value) -> str | None:
    """What a value must be, if it is not of the type.

    >>> fault(Whole(), True), fault(Whole(), 5), fault(Text(), "")
    ('must be a whole number, at least 1', None, 'must not be empty')
    """
    match type_:
        case Text():
            if value == "":
                return "must not be empty"
            is_right = isinstance(value, str)
        case Flag():
            is_right = isinstance(value, bool)
        case Whole(least, most):
            is_right = type(value) is int and least <= value <= most
        case Number(_, least, most):
            is_right = type(value) in (int, float) and least <= float(value) <= most
        case Choice(values):
            is_right = isinstance(value, str) and value in values
        case _:
            assert_never(type_)
    is_number = isinstance(type_, Whole | Number) and type(value) in (int, float)
    if not is_right and is_number and float(value) > _MOST:
        return f"must not be more than {_MOST}"  # no text of a type says so
    return None if is_right else f"must be {type_text(type_)}"


def value_text(value: Value) -> str:
    """A value as it is written in a statement.

    >>> value_text(True), value_text("it's"), value_text(1.0)
    ('TRUE', "'it''s'", '1.0')
    """
    if isinstance(value, bool):
        return str(value).upper()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def option_text(value: Value) -> str:
    """A value as Spark takes it.

    >>> option_text(True), option_text(5), option_text("it's")
    ('true', '5', "it's")
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def default_text(option: Option) -> str:
    """What holds if an option is not given; nothing if that is not said."""
    return option.otherwise or ("" if option.default is None else value_text(option.default))


def _limits(least: float, most: float) -> str:
    return f"at least {least}" if most == _MOST else f"from {least} to {most}"
