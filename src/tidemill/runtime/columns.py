"""Which columns of the files of a stream are read: the projection that is pushed into sources.

A column is read if an operator of some query reads it, or if it is the time of the stream, whose
watermark, late rows and rows without a time follow from it. All columns are read

    if rows are kept aside as they are: those of LATE QUARANTINE, and those of KEEP, but for KEEP
    … BY REFERENCE, which says where rows stand;
    if plans are not optimized.

Which rows there are, their ids, and which of them are malformed does not follow from this: a file
gives the same rows, whatever columns are needed (``reading/parquet_columns.py``). When queries come
and go, what is read from then on has other columns, in the same pieces. Relations are read with all
columns, since they are kept and compared as a whole.

The sample that statistics are made of has all columns where the first rows of a file are in it, and
elsewhere those that are read (``measuring/sample.py``).

Laws:
- Answers, ids, counts, watermarks and rows aside are those that there are with all columns.
- So are statistics of columns that are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.lang.statements import LatePolicy
from tidemill.physical.columns_read import columns_read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.entries import StreamEntry
    from tidemill.physical.fragments import Graph

__all__ = ["columns_of", "columns_to_read"]


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
    is_copied = stream.keep is not None and not stream.keep.by_reference
    if is_copied or stream.late is LatePolicy.QUARANTINE:
        return None
    inputs = (input_.rows for input_ in graph.inputs if input_.name == stream.name)
    read = frozenset[str]().union(*(columns_read(graph.intake(rows)) for rows in inputs))
    if stream.time_column is not None:
        read |= {stream.time_column}
    if read.issuperset(stream.schema.names):
        return None
    return read or frozenset(stream.schema.names[:1])  # there must be something to count
