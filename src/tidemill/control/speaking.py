"""Which parts of a query answer an instant, so far as it can be said.

Law: the answer of a query at an instant is the bag of what these parts have there. A query that was
stopped says nothing; where it is not known what it says, that is an error, and no empty answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.model.time import Time, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.catalog.records import Part, Record

__all__ = ["speaking"]


def speaking(query: str, record: Record, time: Time) -> Iterator[Part]:
    """The parts of a query that answer an instant; none if it says nothing then.

    Raises:
        RunError: It is not known what it says: it had not begun, is paused, or had other columns.
    """
    if record.paused is not None and time >= record.paused.at:
        raise RunError(
            f'query "{query}" is paused, and what it answers from {time_text(record.paused.at)} on'
            " is kept back",
            hint=f"write RESUME QUERY {query}, or ask for an earlier instant",
        )
    first = min((part.since for part in record.parts), default=Time(0))
    if time < first:
        raise RunError(
            f'query "{query}" answers from {time_text(first)} on, and has no answer at'
            f" {time_text(time)}",
            hint="ask for a later instant, or ask what the query asks, in the place of its name",
        )
    for part in record.parts:
        if not part.since <= time < part.until:
            continue
        if record.version_of(part).columns != record.current.columns:
            raise RunError(
                f'version {record.version_of(part).number} of query "{query}" answers at'
                f" {time_text(time)}, and had other columns than it has now",
                hint=f"ask for an instant from {time_text(part.until)} on",
            )
        yield part
