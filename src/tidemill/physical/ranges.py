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

__all__ = ["Range", "can_hold"]


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


def can_hold(conditions: Iterable[Expr], ranges: Mapping[str, Range]) -> bool:
    """Whether conditions can all be true of one row.

    Args:
        conditions: The conditions.
        ranges: Where values of columns lie, of those of which something is known.
    """
    by_column: dict[str, list[Comparison]] = {}
    for part in (part for condition in conditions for part in conjuncts(condition)):
        match part:
            case Call("or", sides):
                if not any(can_hold((side,), ranges) for side in sides):
                    return False
            case Literal(value=value):
                if value is not True:
                    return False
            case _:
                found = comparison_of(part)
                if found is not None and isinstance(found.term, Column) and _has_keys(found):
                    by_column.setdefault(found.term.name, []).append(found)
    return all(_has_place(some, ranges[name]) for name, some in by_column.items() if name in ranges)


def _has_place(comparisons: Sequence[Comparison], range_: Range) -> bool:
    """Whether a value of a column can meet comparisons with it."""
    if range_.may_be_null and all(one.sign == NULL for one in comparisons):
        return True
    some = [one for one in comparisons if one.sign != NOT_NULL]
    if any(one.sign == NULL for one in some):
        return False
    if range_.may_be_nan and all(_is_met(one, order_key(NAN)) for one in some):
        return True
    return range_.may_be_value and _has_value(some, range_)


def _has_value(comparisons: Sequence[Comparison], range_: Range) -> bool:
    """Whether a value that is neither NULL nor NaN can meet comparisons."""
    least = None if range_.least is None else order_key(range_.least)
    greatest = None if range_.greatest is None else order_key(range_.greatest)
    for one in comparisons:
        if one.sign == "=":
            return any(
                (least is None or least <= key)
                and (greatest is None or key <= greatest)
                and all(_is_met(other, key) for other in comparisons)
                for key in _keys(one)
            )
    lows, highs = [] if least is None else [least], [] if greatest is None else [greatest]
    for one in comparisons:
        if one.sign in (">", ">="):
            lows += _keys(one)
        elif one.sign in ("<", "<="):
            highs += _keys(one)
    if not lows or not highs or max(lows) < min(highs):
        return True  # if only because there are values that are known of neither side
    return max(lows) == min(highs) and all(_is_met(one, max(lows)) for one in comparisons)


def _is_met(comparison: Comparison, key: OrderKey) -> bool:
    """Whether a value that is not NULL meets a comparison."""
    constants = _keys(comparison)
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


def _keys(comparison: Comparison) -> list[OrderKey]:
    """What the constants are compared by."""
    values = (conform(one.value, one.type) for one in comparison.constants)
    return [order_key(value) for value in values if value is not None]


def _has_keys(comparison: Comparison) -> bool:
    """Whether all constants are values of their type."""
    return len(_keys(comparison)) == len(comparison.constants)
