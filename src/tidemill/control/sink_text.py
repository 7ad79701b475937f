"""What the verdict says of a sink: what it gets in its form, until and from which instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.connectors.forms import Delivered
from tidemill.model.time import END_OF_TIME, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.catalog.records import Part, Record
    from tidemill.model.time import Time

__all__ = ["sink_text"]

_ENDS = {
    Delivered.RESULTS: "rows of what ends are cut at {}",
    Delivered.CHANGES: "at {} each row that stands is withdrawn (sign -1)",
    Delivered.UPSERTS: "at {} each key that stands is deleted (sign -1)",
}
_BEGINS = {
    Delivered.RESULTS: "rows of what begins are cut at {}",
    Delivered.CHANGES: "at {} each row that is there is announced (sign 1)",
    Delivered.UPSERTS: "at {} each row that is there is put (sign 1)",
}


def sink_text(delivered: Delivered | None, before: Record, after: Record) -> str:
    """What the sink of a query gets.

    Args:
        delivered: Its form; ``None`` if the answer is in memory.
        before: What had become of the query.
        after: What becomes of it.
    """
    if delivered is None:
        return ""
    ended = {(part.instance, part.until) for part in before.parts}
    ends = _times(
        part.until
        for part in after.parts
        if part.until < END_OF_TIME
        and not part.hands_on
        and (part.instance, part.until) not in ended
    )
    new = [part for part in after.parts if _is_new(part, before)]
    told = [_ENDS[delivered].format(time) for time in ends]
    told += [
        _BEGINS[delivered].format(time) for time in _times(p.since for p in new if not p.joins)
    ]
    if any(part.held for part in new):
        told.append("what is new comes when all that is old has come")
    if after.paused is not None:
        told.append(f"rows from {time_text(after.paused.at)} on wait for RESUME")
    joins = _times(part.since for part in new if part.joins)
    told += [f"at {time} another instance goes on with what stands" for time in joins]
    return f"{delivered.value}: {'; '.join(told) or 'as before'}"


def _is_new(part: Part, before: Record) -> bool:
    """Whether a part begins that did not before."""
    return all((part.instance, part.since) != (one.instance, one.since) for one in before.parts)


def _times(times: Iterable[Time]) -> list[str]:
    return [time_text(time) for time in sorted(set(times))]
