"""Which columns and rows of the files of a stream are read: what is pushed into sources.

A column is read if an operator of some query reads it, or if it is the time of the stream, whose
watermark, late rows and rows without a time follow from it. All columns are read

    if rows are kept aside as they are: those of LATE QUARANTINE, and those of KEEP, but for KEEP
    … BY REFERENCE, which says where rows stand;
    if plans are not optimized.

Rows are wanted that meet the filters where they come in, of some query. Of a row group without such
rows only the time is read (``reading/parquet_groups.py``); where all columns must be read, as said
above, or some query has no filter there, all rows are.

Which rows there are, their ids, and which of them are malformed does not follow from this: a file
gives the same rows, whatever is needed of it (``reading/parquet_columns.py``). When queries come
and go, what is read from then on has other columns, in the same pieces. Relations are read with all
columns, since they are kept and compared as a whole.

The sample that statistics are made of has all columns where the first rows of a file are in it, and
elsewhere those that are read (``measuring/sample.py``). Rows that are not read are in none.

Laws:
- Answers, ids, counts, watermarks, rows aside and figures of operators are those that there are
  when everything is read.
- So are statistics of columns that are read of all rows, and all that is known of times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.lang.statements import LatePolicy
from tidemill.physical.columns_read import columns_read
from tidemill.physical.rows_read import Conditions, rows_read
from tidemill.runtime.reading.parquet_groups import Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.entries import StreamEntry
    from tidemill.physical.fragments import Graph

__all__ = ["columns_of", "columns_to_read", "rows_of", "rows_to_read"]


def columns_to_read(streams: Mapping[str, StreamEntry], graph: Graph) -> dict[str, frozenset[str]]:
    """The columns that are read of each stream of which not all are.

    Args:
        streams: The streams that are read.
        graph: The operators of all queries.
    """
    found = {name: columns_of(stream, graph) for name, stream in streams.items()}
    return {name: some for name, some in found.items() if some is not None}


def columns_of(stream: StreamEntry, graph: Graph) -> frozenset[str] | None:
    """The columns that are read of a stream; ``None`` for all."""
    if _is_kept_aside(stream):
        return None
    inputs = (input_.rows for input_ in graph.inputs if input_.name == stream.name)
    read = frozenset[str]().union(*(columns_read(graph.intake(rows)) for rows in inputs))
    if stream.time_column is not None:
        read |= {stream.time_column}
    if read.issuperset(stream.schema.names):
        return None
    return read or frozenset(stream.schema.names[:1])  # there must be something to count


def rows_to_read(streams: Mapping[str, StreamEntry], graph: Graph) -> dict[str, Wanted]:
    """The rows that are wanted of each stream of which not all are.

    Args:
        streams: The streams that are read.
        graph: The operators of all queries.
    """
    found = {name: rows_of(stream, graph) for name, stream in streams.items()}
    return {name: some for name, some in found.items() if some is not None}


def rows_of(stream: StreamEntry, graph: Graph) -> Wanted | None:
    """The rows that are wanted of a stream; ``None`` for all."""
    if _is_kept_aside(stream):
        return None
    conditions = frozenset[Conditions]()
    for input_ in graph.inputs:
        if input_.name == stream.name:
            some = rows_read(graph.intake(input_.rows))
            if some is None:
                return None
            conditions |= some
    timed = () if stream.time_column is None else (stream.time_column,)
    return Wanted(conditions, frozenset(timed))


def _is_kept_aside(stream: StreamEntry) -> bool:
    """Whether rows are kept aside as they are."""
    is_copied = stream.keep is not None and not stream.keep.by_reference
    return is_copied or stream.late is LatePolicy.QUARANTINE
