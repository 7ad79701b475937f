"""The type of the times of an answer: what ``start``, ``end`` and ``time`` are for its readers.

Inside, time is a number of microseconds. At the edge it has the type in which the query's inputs
declare theirs: TIMESTAMP if all of them do, BIGINT if one of them does not, since then small
numbers may be meant that no calendar has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import walk
from tidemill.catalog.entries import StreamEntry
from tidemill.model.types import BIGINT, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.catalog import Catalog
    from tidemill.model.types import DataType

__all__ = ["time_type"]


def time_type(plan: Plan, catalog: Catalog) -> DataType:
    """TIMESTAMP if every time column that the plan reads is one, else BIGINT.

    Time columns are those of ORDERED BY, VALID FROM and TO. The time of a stream without ORDERED BY
    is that of the clock, a TIMESTAMP. A plan that reads no time at all has BIGINT.
    """
    declared = set(_declared(plan, catalog))
    return TIMESTAMP if declared == {TIMESTAMP} else BIGINT


def _declared(plan: Plan, catalog: Catalog) -> Iterator[DataType]:
    for node in walk(plan):
        match node:
            case Source(name, schema):
                entry = catalog.find(name)
                assert isinstance(entry, StreamEntry), "a source is a registered stream"
                column = entry.time_column
                yield TIMESTAMP if column is None else schema[column].type
            case Relation(_, schema, validity) if validity is not None:
                yield schema[validity.start].type
                if validity.end is not None:
                    yield schema[validity.end].type
            case _:
                pass
