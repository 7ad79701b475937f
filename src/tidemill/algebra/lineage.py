"""Where the rows of an answer come from, by definition: which input rows each of them is made of.

This is the judge of provenance: as plain as ``snapshot.py`` and apart from it, instant by instant,
never optimized, never used in production. ``Lineage(streams, relations).rows(plan, time)`` is a
list with an entry for each copy of each row: the row, and the set of its origins.

An origin is a leaf and an element of it. The leaves are the sources and relations of the plan seen
as a tree, counted from the left: a node that is shared is as many leaves as it has places. An
element of a stream is known by its id, which must be unique there, a row of a relation by its
position. A copy has as its origins

- Source, Relation: itself.
- Filter, Project, Rstream: those of the row it is made from.
- Time window, Unbounded: its own; the copies of all instants covered are there.
- ROWS and SESSION: its own, of the elements held. Where equal rows of a derived stream come at the
  same instant, the definition does not say which of them are held: see ``is_certain``.
- Union: its own. Join: those of both rows, or of the one without a partner.
- SemiJoin: those of the left row and of all its partners. AntiJoin: those of the left row.
- Distinct: of all equal rows. StrictDifference: of all equal rows of the left side.
- Difference, Intersect, MaxUnion: of all equal rows of both sides, for each copy that is left.
- Aggregate: of all rows of its group.
- Istream, Dstream at t: of all equal rows of the input at t and at t - 1.

Law: the rows without their origins are the snapshot.
Law: a row is there as often if only some of the input is, as long as its origins are, for plans in
which at most the last step takes away or sums up. Which these are, and for which plans nothing else
is there or no origin can be spared, is said in ``tests/laws/test_lineage.py``.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.origins import Made, Origin, apply, combine, is_true, new_rows
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Istream,
    Plan,
    Project,
    Relation,
    RowWindow,
    Rstream,
    SemiJoin,
    SessionWindow,
    Source,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Window,
)
from tidemill.algebra.snapshot import Element, Row, value_order
from tidemill.algebra.tree import children, walk
from tidemill.algebra.values import conform
from tidemill.model.time import from_datetime
from tidemill.model.types import DOUBLE, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Lineage", "Made", "Origin", "is_certain", "leaves"]

_Timed: TypeAlias = tuple[int, Made]


class Lineage:
    """The evaluator for given finite inputs.

    >>> from tidemill.model.schema import Field, Schema
    >>> from tidemill.model.types import BIGINT
    >>> bid = Source("bid", Schema((Field("price", BIGINT),)))
    >>> prices = Distinct(Window(bid, TimeWindow(2)))
    >>> lineage = Lineage({"bid": [Element(1, 0, (10,)), Element(2, 1, (10,))]})
    >>> [(row, sorted(origins)) for row, origins in lineage.rows(prices, 2)]
    [((10,), [(0, 0), (0, 1)])]
    """

    def __init__(
        self,
        streams: Mapping[str, Sequence[Element]],
        relations: Mapping[str, Sequence[Row]] | None = None,
    ) -> None:
        self._streams = {
            name: sorted(elements, key=lambda e: (e.time, e.id))
            for name, elements in streams.items()
        }
        self._relations = relations or {}
        for elements in self._streams.values():
            assert len({e.id for e in elements}) == len(elements), "an id names one element"
        # Plans are kept beside their answers so that an id is never used again.
        self._known: dict[tuple[int, int, int], tuple[Plan, list[Made]]] = {}

    def rows(self, plan: Plan, time: int) -> list[Made]:
        """Every copy of every row of the plan's answer at ``time``, with its origins."""
        return list(self._rows(plan, 0, time))

    def _rows(self, plan: Plan, leaf: int, time: int) -> list[Made]:
        """The same for a part of a plan whose first leaf has this number in the whole."""
        if time < 0:
            return []
        key = (id(plan), leaf, time)
        if key not in self._known:
            self._known[key] = (plan, self._compute(plan, leaf, time))
        return self._known[key][1]

    def _compute(self, plan: Plan, leaf: int, time: int) -> list[Made]:
        match plan:
            case Source():
                return [made for instant, made in self._elements(plan, leaf) if instant == time]
            case Relation():
                return [
                    _itself(row, leaf, position)
                    for position, row in enumerate(self._relations[plan.name])
                    if _is_valid(plan, row, time)
                ]
            case Window():
                return self._window(plan, leaf, time)
            case Istream(input_):
                return new_rows(self._rows(input_, leaf, time), self._rows(input_, leaf, time - 1))
            case Dstream(input_):
                return new_rows(self._rows(input_, leaf, time - 1), self._rows(input_, leaf, time))
            case Filter() | Project() | Distinct() | Aggregate() | Rstream():
                return apply(plan, self._rows(plan.input, leaf, time))
            case _:
                right = leaf + len(leaves(plan.left))
                return combine(
                    plan, self._rows(plan.left, leaf, time), self._rows(plan.right, right, time)
                )

    def _elements(self, source: Source, leaf: int) -> list[_Timed]:
        elements = [e for e in self._streams[source.name] if e.time >= source.since]
        return [(e.time, _itself(e.row, leaf, e.id)) for e in elements]

    def _window(self, plan: Window, leaf: int, time: int) -> list[Made]:
        match plan.spec:
            case TimeWindow(size, slide):
                last = (time + 1) // slide * slide - 1
                return [m for _, m in self._between(plan.input, leaf, last - size + 1, last)]
            case Unbounded():
                return [made for _, made in self._between(plan.input, leaf, 0, time)]
            case RowWindow(partition_by=by) | SessionWindow(partition_by=by):
                groups: dict[Row, list[_Timed]] = {}
                columns = [plan.schema.names.index(name) for name in by]
                for instant, (row, origins) in self._sequence(plan.input, leaf, time):
                    key = tuple(row[column] for column in columns)
                    groups.setdefault(key, []).append((instant, (row, origins)))
                return [m for group in groups.values() for m in _held(plan, group, time)]
            case _:
                assert_never(plan.spec)

    def _between(self, plan: Plan, leaf: int, first: int, last: int) -> list[_Timed]:
        """The rows of all instants of a stretch, one after another."""
        busy, begin = self._busy(plan), max(first, 0)
        instants = range(begin, last + 1) if busy is None else sorted(busy)
        return [
            (instant, made)
            for instant in instants
            if begin <= instant <= last
            for made in self._rows(plan, leaf, instant)
        ]

    def _busy(self, plan: Plan) -> set[int] | None:
        """Instants outside which the plan has no rows; ``None`` if it can have some at any."""
        match plan:
            case Source():
                return {e.time for e in self._streams[plan.name]}
            case Relation() | Window() | Istream() | Dstream():
                return None
            case Difference() | StrictDifference() | AntiJoin() | SemiJoin():
                return self._busy(plan.left)
            case _:
                below = [self._busy(child) for child in children(plan)]
                known = [instants for instants in below if instants is not None]
                return set[int]().union(*known) if len(known) == len(below) else None

    def _sequence(self, plan: Plan, leaf: int, time: int) -> list[_Timed]:
        """The elements up to an instant, in the order in which ROWS counts them."""
        match plan:
            case Source():
                return [timed for timed in self._elements(plan, leaf) if timed[0] <= time]
            case Filter() | Project() if _is_of_one_stream(plan):
                below = self._sequence(plan.input, leaf, time)
                return [(instant, m) for instant, made in below for m in apply(plan, [made])]
            case _:
                return sorted(self._between(plan, leaf, 0, time), key=_order)


def leaves(plan: Plan) -> tuple[Source | Relation, ...]:
    """The sources and relations of a plan, seen as a tree, from left to right."""
    if isinstance(plan, Source | Relation):
        return (plan,)
    return tuple(leaf for child in children(plan) for leaf in leaves(child))


def is_certain(plan: Plan) -> bool:
    """Whether the origins of each row are a function of the inputs.

    They are not if a ROWS window counts the rows of a derived stream. Those of an instant are in
    the order of their values, so it is not said which of equal ones are held. Here it is those with
    the greatest origins.
    """
    counted = (n.input for n in walk(plan) if isinstance(n, Window) and _counts_rows(n))
    return all(_is_of_one_stream(input_) for input_ in counted)


def _counts_rows(window: Window) -> bool:
    return isinstance(window.spec, RowWindow)


def _is_of_one_stream(plan: Plan) -> bool:
    """Whether the plan only filters and projects a stream, so that its elements keep their ids."""
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, Source)


def _order(timed: _Timed) -> tuple[object, ...]:
    instant, (row, origins) = timed
    return instant, value_order(row), sorted(origins)


def _itself(row: Row, leaf: int, number: int) -> Made:
    # Values that are equal have one representation, so that rows can be compared.
    conformed = tuple(conform(v, DOUBLE) if isinstance(v, float) else v for v in row)
    return conformed, frozenset({(leaf, number)})


def _is_valid(relation: Relation, row: Row, time: int) -> bool:
    if relation.validity is None:
        return True
    values = dict(zip(relation.schema.names, row, strict=True))
    start = values[relation.validity.start]
    end = None if relation.validity.end is None else values[relation.validity.end]
    return (start is None or _instant(start) <= time) and (end is None or time < _instant(end))


def _instant(value: Value) -> int:
    """The instant in a period column: TIMESTAMP, or BIGINT microseconds."""
    if isinstance(value, datetime):
        return from_datetime(value)
    assert isinstance(value, int), "periods are TIMESTAMP or BIGINT"
    return value


def _held(window: Window, group: list[_Timed], time: int) -> list[Made]:
    """What a ROWS or SESSION window holds of the elements of a group."""
    if isinstance(window.spec, RowWindow):
        spec, names = window.spec, window.schema.names
        last = len(group) // spec.slide * spec.slide
        held = [made for _, made in group[max(last - spec.rows, 0) : last]]
        return [m for m in held if spec.unless is None or not is_true(spec.unless, names, m[0])]
    assert isinstance(window.spec, SessionWindow), "no other window has groups"
    session: list[Made] = []
    after = time + 1
    for instant, made in reversed(group):
        if after - instant > window.spec.gap:
            break
        session.append(made)
        after = instant
    return session
