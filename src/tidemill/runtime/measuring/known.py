"""What is known when a query is planned: what was measured, what hints say, and assumptions.

What was measured counts once there is enough of it; before that, what a hint says, and if there is
none, what is assumed of anything. Each is a fact, which SHOW STATISTICS shows as it is taken.

Law: ``statistics_of`` and ``facts_of`` say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Final

from tidemill.algebra.expr import Call, Column
from tidemill.algebra.text import expr_text
from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.estimates.flow import width
from tidemill.optimizer.estimates.plan import RELATION_ROWS, STREAM_DISTANCE
from tidemill.optimizer.selectivity import NULLS, VALUES
from tidemill.optimizer.statistics import Edge, Statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.model.schema import Field
    from tidemill.runtime.measuring.measured import Measured
    from tidemill.runtime.measuring.observed import Observed

__all__ = ["ENOUGH", "Fact", "Origin", "facts_of", "statistics_of"]

ENOUGH: Final = 1_000
"""What was measured of a stream counts from so many rows on; of a relation, always."""

_MICROSECONDS: Final = 1_000_000.0


class Origin(Enum):
    """How something is known."""

    MEASURED = "measured"
    HINT = "hint"
    ASSUMED = "assumed"
    DEFINED = "defined"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is known.

    Attributes:
        input: Of which stream or relation; those of a condition on several, between commas.
        what: What it is, as ``rate``.
        of: The column or condition that it is about; empty if it is about rows.
        value: What it is.
        origin: How it is known.
        rows: How many rows have been seen so far, or pairs, of a condition.
        as_of: Up to which time of the stream; ``None`` of relations, and if no row has come.
    """

    input: str
    what: str
    of: str
    value: float
    origin: Origin
    rows: int = 0
    as_of: int | None = None


def statistics_of(catalog: Catalog, measured: Measured) -> Statistics:
    """What queries are planned with."""
    inputs: dict[str, Edge] = {}
    conditions: dict[str, float] = {}
    for entry, observed in _inputs(catalog, measured):
        facts = list(_of_input(entry, observed))
        if any(fact.origin in (Origin.MEASURED, Origin.HINT) for fact in facts):
            inputs[entry.name] = _edge(entry, facts, observed)
        shares = zip(entry.schema, (f for f in facts if f.what == "null share"), strict=True)
        for field, fact in shares:
            if fact.origin is Origin.MEASURED:
                conditions[_is_null(entry.name, field)] = fact.value
    known = (f for f in _of_conditions(catalog, measured) if f.origin is Origin.MEASURED)
    return Statistics(inputs, {**conditions, **{fact.of: fact.value for fact in known}})


def facts_of(
    catalog: Catalog, measured: Measured, names: Iterable[str] | None = None
) -> list[Fact]:
    """What is known, input by input, and of conditions.

    Args:
        catalog: What is registered.
        measured: What was measured.
        names: Of which streams and relations; ``None`` for all.
    """
    wanted = None if names is None else set(names)
    found: list[Fact] = []
    for entry, observed in _inputs(catalog, measured):
        if wanted is None or entry.name in wanted:
            found += _of_input(entry, observed)
    for fact in _of_conditions(catalog, measured):
        if wanted is None or wanted.issuperset(fact.input.split(", ")):
            found.append(fact)
    return found


def _inputs(
    catalog: Catalog, measured: Measured
) -> Iterator[tuple[StreamEntry | RelationEntry, Observed]]:
    for entry in sorted(catalog.objects.values(), key=lambda entry: entry.name.lower()):
        if isinstance(entry, StreamEntry | RelationEntry):
            yield entry, measured.observed(entry.name)


def _of_input(entry: StreamEntry | RelationEntry, observed: Observed) -> Iterator[Fact]:
    """What is known of a stream or relation."""
    is_stream = isinstance(entry, StreamEntry)
    is_enough = observed.rows >= ENOUGH if is_stream else bool(observed.identity)
    rows, as_of = observed.rows, observed.latest

    def fact(what: str, of: str, found: float | None, hint: float | None, assumed: float) -> Fact:
        if found is not None and is_enough:
            return Fact(entry.name, what, of, found, Origin.MEASURED, rows, as_of)
        if hint is not None:
            return Fact(entry.name, what, of, hint, Origin.HINT, rows, as_of)
        return Fact(entry.name, what, of, assumed, Origin.ASSUMED, rows, as_of)

    hints = entry.hints
    if is_stream:
        distance = observed.distance
        rate = None if distance is None else _MICROSECONDS / distance
        yield fact("rate", "", rate, hints.rate, _MICROSECONDS / STREAM_DISTANCE)
        hinted = None if hints.rate is None else _MICROSECONDS / hints.rate
        yield fact("distance", "", distance, hinted, STREAM_DISTANCE)
        yield Fact(entry.name, "length", "", 1.0, Origin.DEFINED, rows, as_of)
        granule = float(observed.granule) or None
        yield fact("granule", "", granule, None, 1.0)
    else:
        yield fact("rows", "", float(rows), hints.rows, RELATION_ROWS)
    yield fact("bytes", "", observed.row_bytes, hints.row_bytes, width(entry.schema))
    for field in entry.schema:
        values = observed.distinct(field.name)
        yield fact("distinct", field.name, values, hints.distinct.get(field.name), VALUES)
    for field in entry.schema:
        share = observed.null_share(field.name)
        yield fact("null share", field.name, share, None, NULLS if field.nullable else 0.0)


def _of_conditions(catalog: Catalog, measured: Measured) -> Iterator[Fact]:
    """What is known of conditions on what is registered."""
    for text, counted in sorted(measured.counted().items()):
        share = counted.share
        is_there = all(catalog.find(name) is not None for name in counted.inputs)
        if share is not None and is_there and counted.judged >= ENOUGH:
            yield Fact(
                ", ".join(counted.inputs),
                "selectivity",
                text,
                share,
                Origin.MEASURED,
                round(counted.judged),
                counted.latest or None,
            )


def _edge(entry: StreamEntry | RelationEntry, facts: Iterable[Fact], observed: Observed) -> Edge:
    """What facts say of elements as they come in."""
    known = {(fact.what, fact.of): fact for fact in facts}
    columns: Mapping[str, float] = {
        of: max(1.0, fact.value) for (what, of), fact in known.items() if what == "distinct"
    }
    bytes_ = known["bytes", ""]
    if isinstance(entry, RelationEntry):
        rows = known["rows", ""]
        return Edge(
            inf,
            standing=rows.value,
            row_bytes=bytes_.value,
            distinct=columns,
            is_measured=rows.origin is not Origin.ASSUMED,
            counted=inf if rows.origin is Origin.ASSUMED else max(1.0, rows.value),
            widths=_widths(observed, rows, bytes_),
        )
    distance = known["distance", ""]
    return Edge(
        distance.value,
        known["length", ""].value,
        known["granule", ""].value,
        row_bytes=bytes_.value,
        distinct=columns,
        is_measured=distance.origin is not Origin.ASSUMED,
        counted=observed.recently if distance.origin is Origin.MEASURED else inf,
        widths=_widths(observed, distance, bytes_),
    )


def _widths(observed: Observed, rows: Fact, bytes_: Fact) -> Mapping[str, float]:
    """How many bytes values take, by column, where enough rows have come and no hint counts."""
    is_known = rows.origin is Origin.MEASURED and bytes_.origin is not Origin.HINT
    return observed.widths if is_known else {}


def _is_null(name: str, field: Field) -> str:
    """The canonical text of the condition that a column is NULL."""
    column = Column(f"{name}.{field.name}", field.type)
    return expr_text(Call("is_null", (column,), BOOLEAN))
