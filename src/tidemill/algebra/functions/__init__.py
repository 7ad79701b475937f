"""What each scalar function and operator means, in plain Python; never optimised.

A strict function is NULL as soon as one argument is; it is not called then. The others are given
``None`` for NULL. Arguments have exactly the types that ``catalog`` gave them, and the result is
brought to the type of the call by ``algebra/evaluate.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.functions import dates, logic, numbers, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.model.types import Value

__all__ = ["NULL_AWARE", "STRICT"]

STRICT: dict[str, Callable[..., Value]] = {
    **logic.STRICT,
    **numbers.STRICT,
    **text.STRICT,
    **dates.STRICT,
}
"""By canonical name: the functions that are NULL when an argument is."""

NULL_AWARE: dict[str, Callable[..., Value]] = {**logic.NULL_AWARE, **text.NULL_AWARE}
"""By canonical name: the functions that look at NULL."""
