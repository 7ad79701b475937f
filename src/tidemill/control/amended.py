"""Amendments: what of a stream or query may change from one session on a checkpoint to the next.

How late rows may be, what becomes of those that are, how files settle and what hints say is no part
of what a stream is; whether files are replaced when a query begins, and who logs in, is no part of
where its answer goes. Everything else is another stream, or another query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.lang.statements import ConnectorCall
from tidemill.runtime.record import relation_digest, stream_digest
from tidemill.runtime.sinks import may_change

if TYPE_CHECKING:
    from tidemill.catalog.entries import Entry
    from tidemill.lang.statements import Argument

__all__ = ["amends"]


def amends(old: Entry, new: Entry) -> bool:
    """Whether an entry is the same thing as another one of its name, but for what may change."""
    if old.name != new.name:  # plans have it as it was written
        return False
    match old, new:
        case StreamEntry(), StreamEntry():
            return stream_digest(old) == stream_digest(new)
        case RelationEntry(), RelationEntry():
            return relation_digest(old) == relation_digest(new)  # but for hints
        case QueryEntry(sink=ConnectorCall() as there, record=None), QueryEntry(sink=sink):
            is_same = (old.plan, old.time) == (new.plan, new.time)
            # What is kept from its beginning on cannot begin later; for how long can change.
            is_same &= (old.provenance is None) == (new.provenance is None)
            return is_same and sink is not None and _fixed(there) == _fixed(sink)
        case _:
            return False


def _fixed(
    sink: ConnectorCall,
) -> tuple[str, tuple[Argument, ...], frozenset[tuple[str, Argument]]]:
    """What of a sink may not change."""
    options = frozenset((name, value) for name, value in sink.named if not may_change(name))
    return sink.name.text.lower(), sink.positional, options
