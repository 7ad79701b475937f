"""Limits: how much one operator may make in one step.

Memory that cannot be had ends the process without a word. So what can grow beyond all measure is
counted before it is made: the results of joins, and texts that functions make longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.errors import TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidemill.model.batch import Batch

__all__ = ["LARGEST_RESULT", "LARGEST_TEXTS", "bounded", "check_texts"]

LARGEST_RESULT: Final = 1 << 28
"""How many values, rows times columns, an operator may make in a step: 2 GiB and more."""

LARGEST_TEXTS: Final = 1 << 31
"""How many bytes the texts may have that one call makes of a batch: 2 GiB."""

_GROWTH: Final = 4
"""What an operator is given, it may give back so often without being asked."""


def bounded(batches: Iterable[Batch], given: int) -> Iterator[Batch]:
    """The batches, as long as they are not too large together.

    Args:
        batches: What an operator makes, a bounded part at a time.
        given: How many values it was given.

    Raises:
        TooLargeError: They are.
    """
    most = LARGEST_RESULT + _GROWTH * given
    rows = values = 0
    for batch in batches:
        rows += batch.height
        values += batch.height * batch.width
        if values > most:
            raise TooLargeError(
                f"the result of one step has more than {rows - batch.height:,} rows, and does not "
                "fit into memory"
            )
        yield batch


def check_texts(function: str, size: int) -> None:
    """Refuse to make texts that are too large together.

    Raises:
        TooLargeError: They are.
    """
    if size > LARGEST_TEXTS:
        raise TooLargeError(
            f"{function.upper()} would make texts of {size / 2**30:,.1f} GiB in one step, more "
            f"than {LARGEST_TEXTS / 2**30:.0f} GiB"
        )
