"""Ranges: whether a condition can be true of a row, given where the values of columns lie.

The values of a column are in three places: between two known ones, or NaN, or NULL. All comparisons
of a conjunction with one column must be true in one of these. Parts that are no comparisons of a
column with constants can be true.

Law: if a condition is true of a row whose values are in the ranges, it can be true.

Values are ordered as ``order_key`` says: -0.0 equals 0.0, NaN is the greatest, texts are ordered by
code points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Column, Literal, conjuncts
from tidemill.algebra.values import NAN, conform, order_key
from tidemill.physical.comparisons import NOT_NULL, NULL, comparison_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.values import OrderKey
    from tidemill.model.types import Value
    from tidemill.physical.comparisons import Comparison

__all__ = ["Compared", "Parts", "Range", "can_hold", "parts_of"]


@dataclass(frozen=True, slots=True)
class Range:
    """Where the values of a column may lie.

    Attributes:
        least: None is less than this one; ``None`` if that is not known.
        greatest: None but NaN is greater than this one; ``None`` if that is not known.
        may_be_value: Whether some are between these.
        may_be_nan: Whether some are NaN.
        may_be_null: Whether some are NULL.
    """

    least: Value = None
    greatest: Value = None
    may_be_value: bool = True
    may_be_nan: bool = False
    may_be_null: bool = True


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of a column: how, and with what values are compared by."""

    sign: str
    keys: tuple[OrderKey, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a conjunction says, as far as it is looked at.

    Attributes:
        columns: The comparisons with each column.
        choices: Of each of these one must be true.
        is_never: Whether it is never true.
    """

    columns: tuple[tuple[str, tuple[Compared, ...]], ...]
    choices: tuple[tuple[Parts, ...], ...] = ()
    is_never: bool = False

    def can_hold(self, ranges: Mapping[str, Range]) -> bool:
        """Whether all of it can be true of one row.

        Args:
            ranges: Where values of columns lie, of those of which something is known.
        """
        if self.is_never:
            return False
        if not all(_has_place(some, ranges[name]) for name, some in self.columns if name in ranges):
            return False
        return all(any(side.can_hold(ranges) for side in sides) for sides in self.choices)


def parts_of(conditions: Iterable[Expr]) -> Parts:
    """Conditions that must all be true, as they are looked at."""
    columns: dict[str, list[Compared]] = {}
    choices: list[tuple[Parts, ...]] = []
    is_never = False
    for part in (part for condition in conditions for part in conjuncts(condition)):
        match part:
            case Call("or", sides):
                choices.append(tuple(parts_of((side,)) for side in sides))
            case Literal(value=value):
                is_never |= value is not True
            case _:
                found = comparison_of(part)
                if found is None or not isinstance(found.term, Column):
                    continue
                keys = _keys(found)
                if len(keys) == len(found.constants):  # all are values of their type
                    columns.setdefault(found.term.name, []).append(Compared(found.sign, keys))
    return Parts(tuple((n, tuple(some)) for n, some in columns.items()), tuple(choices), is_never)


def can_hold(conditions: Iterable[Expr], ranges: Mapping[str, Range]) -> bool:
    """Whether conditions can all be true of one row.

    Args:
        conditions: The conditions.
        ranges: Where values of columns lie, of those of which something is known.
    """
    return parts_of(conditions).can_hold(ranges)


def _has_place(comparisons: Sequence[Compared], range_: Range) -> bool:
    """Whether a value of a column can meet comparisons with it."""
    if range_.may_be_null and all(one.sign == NULL for one in comparisons):
        return True
    some = [one for one in comparisons if one.sign != NOT_NULL]
    if any(one.sign == NULL for one in some):
        return False
    if range_.may_be_nan and all(_is_met(one, order_key(NAN)) for one in some):
        return True
    return range_.may_be_value and _has_value(some, range_)


def _has_value(comparisons: Sequence[Compared], range_: Range) -> bool:
    """Whether a value that is neither NULL nor NaN can meet comparisons."""
    least = None if range_.least is None else order_key(range_.least)
    greatest = None if range_.greatest is None else order_key(range_.greatest)
    for one in comparisons:
        if one.sign == "=":
            return any(
                (least is None or least <= key)
                and (greatest is None or key <= greatest)
                and all(_is_met(other, key) for other in comparisons)
                for key in one.keys
            )
    lows, highs = [] if least is None else [least], [] if greatest is None else [greatest]
    for one in comparisons:
        if one.sign in (">", ">="):
            lows += one.keys
        elif one.sign in ("<", "<="):
            highs += one.keys
    if not lows or not highs or max(lows) < min(highs):
        return True  # if only because there are values that are known of neither side
    return max(lows) == min(highs) and all(_is_met(one, max(lows)) for one in comparisons)


def _is_met(comparison: Compared, key: OrderKey) -> bool:
    """Whether a value that is not NULL meets a comparison."""
    constants = comparison.keys
    match comparison.sign:
        case "=":
            return key in constants
        case "<>":
            return key != constants[0]
        case "<":
            return key < constants[0]
        case "<=":
            return key <= constants[0]
        case ">":
            return key > constants[0]
        case ">=":
            return key >= constants[0]
        case _:
            raise AssertionError(f"{comparison.sign} compares with nothing")


def _keys(comparison: Comparison) -> tuple[OrderKey, ...]:
    """What the constants are compared by, of those that are values of their type."""
    values = (conform(one.value, one.type) for one in comparison.constants)
    return tuple(order_key(value) for value in values if value is not None)
