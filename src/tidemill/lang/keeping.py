"""KEEP and WITH PROVENANCE: what is kept, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.lang.durations import read_duration
from tidemill.lang.statements import Keep, Provenance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.lang.cursor import Cursor

__all__ = ["PROVENANCE_HINT", "accept_provenance", "read_keep"]

PROVENANCE_HINT: Final = "write WITH PROVENANCE, WITH PROVENANCE KEEP 1 HOUR or … KEEP ALL"


def read_keep(cursor: Cursor, stop: Sequence[str] = ()) -> Keep:
    """Read what stands behind KEEP.

    Args:
        cursor: Where it is read from.
        stop: The words that may follow a duration.
    """
    length = None if cursor.accept("ALL") else read_duration(cursor, stop=(*stop, "BY"))
    by_reference = cursor.accept("BY")
    if by_reference:
        cursor.expect("REFERENCE", hint="write KEEP 1 HOUR BY REFERENCE")
    return Keep(length, by_reference)


def accept_provenance(cursor: Cursor, stop: Sequence[str] = ()) -> Provenance | None:
    """Read WITH PROVENANCE, if it comes next.

    Args:
        cursor: Where it is read from.
        stop: The words that may follow it.
    """
    if not cursor.accept("WITH"):
        return None
    cursor.expect("PROVENANCE", hint=PROVENANCE_HINT)
    if not cursor.accept("KEEP"):
        return Provenance()
    start = cursor.index
    keep = read_keep(cursor, stop)
    if keep.by_reference:
        cursor.fail(
            "KEEP BY REFERENCE is for streams",
            span=cursor.span_from(start),
            hint="leave BY REFERENCE out: what rows were made of has files of its own",
        )
    return Provenance(keep)
