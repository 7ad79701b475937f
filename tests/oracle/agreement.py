"""The law: the reference and the oracle give the same bag of typed rows at every instant."""

from __future__ import annotations

import math
from copy import copy
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from local import run_locally
from oracle.duckdb_oracle import Oracle
from oracle.translate import APPROXIMATE
from tidemill import connect
from tidemill.algebra.bounds import endless_input
from tidemill.algebra.snapshot import Element, Reference
from tidemill.algebra.values import conform
from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.session import Query, Session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oracle.contents import Inputs, Row, Value
    from tidemill.model.schema import Schema
    from tidemill.runtime.answers import Answer

__all__ = [
    "assert_agree",
    "assert_answers_agree",
    "assert_engine_agrees",
    "contents",
    "registered",
]

_LAST = 14
"""After it nothing changes any more in the queries that are drawn."""

_TYPES = {"HUGEINT": "BIGINT", '"NULL"': "INTEGER"}
"""What DuckDB calls the sum of BIGINTs, and the type of NULL alone."""


def assert_agree(sql: str, inputs: Inputs, instants: Iterable[int], definitions: str) -> None:
    """Fail unless reference and oracle agree on the answers of a query at all instants."""
    moments = sorted(instants)
    session = copy(_session(definitions))  # the catalog inside is never changed, but replaced
    query = session.sql(sql)
    assert isinstance(query, Query), "the text is a query"
    reference = _reference(session, inputs)
    oracle = Oracle(definitions, inputs, moments[-1])
    close = any(f"{name}(" in sql.lower() for name in APPROXIMATE)
    for time in moments:
        answer = oracle.snapshot(sql, time)
        ours = sorted(reference.snapshot(query.plan, time).elements(), key=_sortable)
        theirs = sorted(answer.rows, key=_sortable)
        our_types = [field.type.kind.name for field in query.schema]
        their_types = [_TYPES.get(name, name).partition("(")[0] for name in answer.types]
        same = our_types == their_types and len(ours) == len(theirs)
        same = same and all(map(_Same(close=close), ours, theirs))
        assert same, "\n".join(
            (
                f"\n{sql}\n\nat instant {time}:",
                f"reference {our_types} {ours}",
                f"duckdb    {their_types} {theirs}\n",
                f"{query.explain()}\n",
                f"{oracle.question(sql, time)}\n",
                _input_text(inputs),
            )
        )


def assert_engine_agrees(
    sql: str, inputs: Inputs, definitions: str, *, partitions: int, rows_per_step: int
) -> None:
    """Fail unless the local engine gives the reference's answer to a query at every instant."""
    session = copy(_session(definitions))
    query = session.sql(sql)
    assert isinstance(query, Query), "the text is a query"
    entries = session.catalog.objects.values()
    content = contents(session, inputs)
    answer = run_locally(
        optimize(query.plan),
        *content,
        {entry.name: entry for entry in entries if isinstance(entry, RelationEntry)},
        partitions=partitions,
        rows_per_step=rows_per_step,
    )
    assert_answers_agree(sql, query, answer, inputs, Reference(*content))


def registered(definitions: str, texts: Iterable[str]) -> tuple[Session, dict[str, Query]]:
    """A session with the queries, by text, but for those whose answer has no finite form."""
    session = copy(_session(definitions))
    queries: dict[str, Query] = {}
    for sql in texts:
        query = session.sql(sql)
        assert isinstance(query, Query), "the text is a query"
        if endless_input(query.plan) is None:
            queries[sql] = query
        else:
            session.sql(f"DROP QUERY {query.name}")
    return session, queries


def assert_answers_agree(
    sql: str, query: Query, answer: Answer, inputs: Inputs, reference: Reference
) -> None:
    """Fail unless an answer is the reference's at every instant."""
    close = any(f"{name}(" in sql.lower() for name in APPROXIMATE)
    for time in range(_LAST):
        ours = sorted(answer.snapshot(time).rows(), key=_sortable)
        theirs = sorted(reference.snapshot(query.plan, time).elements(), key=_sortable)
        same = len(ours) == len(theirs) and all(map(_Same(close=close), ours, theirs))
        assert same, "\n".join(
            (
                f"\n{sql}\n\nat instant {time}:",
                f"engine    {ours}",
                f"reference {theirs}\n",
                f"{query.explain()}\n",
                _input_text(inputs),
            )
        )


@cache
def _session(definitions: str) -> Session:
    session = connect(unbounded_state=True)
    session.sql(definitions)
    return session


def _reference(session: Session, inputs: Inputs) -> Reference:
    return Reference(*contents(session, inputs))


def contents(
    session: Session, inputs: Inputs
) -> tuple[dict[str, list[Element]], dict[str, list[Row]]]:
    """The elements of the streams and the rows of the relations, with values of their types."""
    schemas: dict[str, Schema] = {
        entry.name: entry.schema
        for entry in session.catalog.objects.values()
        if isinstance(entry, StreamEntry | RelationEntry)
    }

    def conformed(name: str, row: Row) -> Row:
        types = schemas[name].types
        return tuple(conform(value, type_) for value, type_ in zip(row, types, strict=True))

    streams = {name: inputs.streams.get(name.lower(), ()) for name in schemas}
    relations = {name: inputs.relations.get(name.lower(), ()) for name in schemas}
    return (
        {n: [Element(e.time, e.id, conformed(n, e.row)) for e in es] for n, es in streams.items()},
        {n: [conformed(n, row) for row in rows] for n, rows in relations.items()},
    )


class _Same:
    """Whether two rows are equal, types included; if ``close``, DOUBLEs up to the last digits."""

    def __init__(self, *, close: bool) -> None:
        self._close = close

    def __call__(self, ours: Row, theirs: Row) -> bool:
        return len(ours) == len(theirs) and all(map(self._value, ours, theirs))

    def _value(self, ours: Value, theirs: Value) -> bool:
        if type(ours) is not type(theirs):
            return False
        if isinstance(ours, float) and isinstance(theirs, float):
            if math.isnan(ours) or math.isnan(theirs):
                return math.isnan(ours) and math.isnan(theirs)
            near = self._close and math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
            return ours == theirs or near
        if isinstance(ours, Decimal) and isinstance(theirs, Decimal):
            return ours == theirs and ours.as_tuple().exponent == theirs.as_tuple().exponent
        return ours == theirs


def _sortable(row: Row) -> list[tuple[str, float, str]]:
    """A key for rows of any types; DOUBLEs, which may differ a little, decide last."""
    keys = [
        (type(value).__name__, value + 0.0 if value == value else math.inf, "")  # noqa: PLR0124
        if isinstance(value, float)
        else (type(value).__name__, 0.0, str(value))
        for value in row
    ]
    return [*(("", 0.0, key[2]) if key[0] == "float" else key for key in keys), *keys]


def _input_text(inputs: Inputs) -> str:
    lines = [
        f"{name} {element.time}: {element.row}"
        for name, elements in inputs.streams.items()
        for element in sorted(elements, key=lambda e: (e.time, e.id))
    ]
    lines += [f"{name}: {row}" for name, rows in inputs.relations.items() for row in rows]
    return "\n".join(lines)
