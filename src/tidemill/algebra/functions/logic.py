"""The meaning of comparisons, of three-valued logic, and of the functions that look at NULL.

``None`` is NULL, and in logic "unknown". ``in(x, a, b)`` is ``x = a or x = b``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.values import order_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.model.types import Value

__all__ = ["NULL_AWARE", "STRICT"]


def _equal(left: Value, right: Value) -> bool:
    return order_key(left) == order_key(right)


def _less(left: Value, right: Value) -> bool:
    return order_key(left) < order_key(right)


def _and(left: Value, right: Value) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: Value, right: Value) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _is_not_distinct(left: Value, right: Value) -> bool:
    if left is None or right is None:
        return left is right
    return _equal(left, right)


def _in(x: Value, *members: Value) -> bool | None:
    if x is None:
        return None
    if any(member is not None and _equal(x, member) for member in members):
        return True
    return None if None in members else False


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _greatest(*values: Value) -> Value:
    return max((value for value in values if value is not None), key=order_key, default=None)


def _least(*values: Value) -> Value:
    return min((value for value in values if value is not None), key=order_key, default=None)


STRICT: dict[str, Callable[..., Value]] = {
    "<": _less,
    "<=": lambda left, right: not _less(right, left),
    "<>": lambda left, right: not _equal(left, right),
    "=": _equal,
    ">": lambda left, right: _less(right, left),
    ">=": lambda left, right: not _less(left, right),
    "not": lambda x: not x,
}

NULL_AWARE: dict[str, Callable[..., Value]] = {
    "and": _and,
    "coalesce": _coalesce,
    "greatest": _greatest,
    "in": _in,
    "is_distinct": lambda left, right: not _is_not_distinct(left, right),
    "is_false": lambda x: x is False,
    "is_not_distinct": _is_not_distinct,
    "is_null": lambda x: x is None,
    "is_true": lambda x: x is True,
    "least": _least,
    "or": _or,
}
