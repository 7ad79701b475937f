"""The meaning of a plan, by definition: the bag of rows that is its answer at one instant.

This is the reference everything else is tested against: as plain as possible, never optimized,
never used in production. ``Reference(streams, relations).snapshot(plan, time)`` is a bag of rows.

- A stream's element is valid at its own instant only, a constant relation's row always. Elements
  from before a source's ``since`` are not there.
- A standard operator is its relational counterpart on the snapshots of its inputs, with SQL's rules
  for NULL.
- A window adds up the snapshots of its input at all instants it covers (K37). What is valid for
  several instants is counted several times.
- The elements of a stream are in the order (time, id), and stay in it through Filter and Project.
  In every other derived stream, rows of one instant are ordered by their values, column by column,
  NULLs first, so that the order is a function of the snapshots alone. ROWS windows count in it.
- A SESSION window keeps an element for as long as a time window of its group is never empty.
- Istream at t is the snapshot at t minus the one at t - 1, as bags; Dstream at t the reverse.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.aggregates import aggregate
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
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
    Union,
    Window,
)
from tidemill.algebra.values import conform
from tidemill.model.time import from_datetime
from tidemill.model.types import DOUBLE, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidemill.algebra.expr import Expr

__all__ = ["Bag", "Element", "Reference", "Row", "value_order"]

Row: TypeAlias = tuple[Value, ...]
Bag: TypeAlias = Counter[Row]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a stream: its instant, its id, and its values in the order of the schema."""

    time: int
    id: int
    row: Row


class Reference:
    """The evaluator for given finite inputs.

    >>> from tidemill.model.schema import Field, Schema
    >>> from tidemill.model.types import BIGINT
    >>> bid = Source("bid", Schema((Field("price", BIGINT),)))
    >>> last_two = Window(bid, TimeWindow(2))
    >>> reference = Reference({"bid": [Element(1, 0, (10,)), Element(2, 1, (20,))]})
    >>> sorted(reference.snapshot(last_two, 2))
    [(10,), (20,)]
    """

    def __init__(
        self,
        streams: Mapping[str, Sequence[Element]],
        relations: Mapping[str, Sequence[Row]] | None = None,
    ) -> None:
        # Values that are equal have one representation, so that bags can count them.
        self._streams = {
            name: sorted(
                (Element(e.time, e.id, _conformed(e.row)) for e in elements),
                key=lambda e: (e.time, e.id),
            )
            for name, elements in streams.items()
        }
        self._relations = {
            name: [_conformed(row) for row in rows] for name, rows in (relations or {}).items()
        }
        for elements in self._streams.values():
            assert all(e.time >= 0 for e in elements), "time begins at 0"
        # Plans are kept beside their answers so that an id is never used again.
        self._known: dict[tuple[int, int], tuple[Plan, Bag]] = {}

    def snapshot(self, plan: Plan, time: int) -> Bag:
        """The rows of the plan's answer at ``time`` with their multiplicities."""
        if time < 0:
            return Counter()
        key = (id(plan), time)
        if key not in self._known:
            self._known[key] = (plan, self._compute(plan, time))
        return self._known[key][1]

    def _compute(self, plan: Plan, time: int) -> Bag:
        match plan:
            case Source():
                return Counter(e.row for e in self._elements(plan) if e.time == time)
            case Relation():
                return self._relation(plan, time)
            case Window():
                return self._window(plan, time)
            case Istream(input_):
                return self.snapshot(input_, time) - self.snapshot(input_, time - 1)
            case Dstream(input_):
                return self.snapshot(input_, time - 1) - self.snapshot(input_, time)
            case Rstream(input_):
                return self.snapshot(input_, time)
            case Filter() | Project() | Distinct() | Aggregate():
                return _apply(plan, self.snapshot(plan.input, time))
            case _:
                return _combine(
                    plan, self.snapshot(plan.left, time), self.snapshot(plan.right, time)
                )

    def _elements(self, source: Source) -> list[Element]:
        return [e for e in self._streams[source.name] if e.time >= source.since]

    def _relation(self, plan: Relation, time: int) -> Bag:
        rows = self._relations[plan.name]
        validity = plan.validity
        if validity is None:
            return Counter(rows)
        first = plan.schema.names.index(validity.start)
        past = None if validity.end is None else plan.schema.names.index(validity.end)
        return Counter(
            row
            for row in rows
            if _instant(row[first], 0) <= time
            and (past is None or time < _instant(row[past], time + 1))
        )

    def _window(self, plan: Window, time: int) -> Bag:
        match plan.spec:
            case TimeWindow(size, slide):
                last = (time + 1) // slide * slide - 1
                return self._sum(plan.input, last - size + 1, last)
            case RowWindow():
                return Counter(self._last_rows(plan.input, plan.spec, time))
            case SessionWindow():
                return Counter(self._session_rows(plan.input, plan.spec, time))
            case Unbounded():
                return self._sum(plan.input, 0, time)
            case _:
                assert_never(plan.spec)

    def _sum(self, plan: Plan, first: int, last: int) -> Bag:
        total: Bag = Counter()
        for instant in self._instants(plan, first, last):
            total.update(self.snapshot(plan, instant))
        return total

    def _instants(self, plan: Plan, first: int, last: int) -> Iterable[int]:
        occupied = self._occupied(plan)
        if occupied is None:
            return range(max(first, 0), last + 1)
        return sorted(instant for instant in occupied if max(first, 0) <= instant <= last)

    def _occupied(self, plan: Plan) -> frozenset[int] | None:
        """The instants at which the plan can have rows; ``None`` if it can at any."""
        match plan:
            case Source():
                return frozenset(e.time for e in self._elements(plan))
            case Filter() | Project() | Distinct() | Aggregate() | Rstream():
                return self._occupied(plan.input)
            case Difference() | StrictDifference() | AntiJoin() | SemiJoin():
                return self._occupied(plan.left)
            case Union() | MaxUnion():
                left, right = self._occupied(plan.left), self._occupied(plan.right)
                return None if left is None or right is None else left | right
            case Intersect() | Join(kind=JoinKind.INNER):
                left, right = self._occupied(plan.left), self._occupied(plan.right)
                return right if left is None else left if right is None else left & right
            case Join(kind=JoinKind.LEFT):
                return self._occupied(plan.left)
            case Join(kind=JoinKind.RIGHT):
                return self._occupied(plan.right)
            case _:
                return None

    def _last_rows(self, plan: Plan, window: RowWindow, time: int) -> Iterable[Row]:
        for group in self._groups(plan, window.partition_by, time):
            last = len(group) // window.slide * window.slide
            rows = (element.row for element in group[max(last - window.rows, 0) : last])
            yield from (row for row in rows if not _is_hidden(window, plan.schema.names, row))

    def _session_rows(self, plan: Plan, window: SessionWindow, time: int) -> Iterable[Row]:
        for group in self._groups(plan, window.partition_by, time):
            first = time - window.gap + 1
            for element in reversed(group):
                if element.time < first:
                    break
                yield element.row
                first = element.time - window.gap

    def _groups(self, plan: Plan, by: tuple[str, ...], time: int) -> Iterable[list[Element]]:
        """The elements of the plan up to ``time``, in their order, of each group."""
        columns = [plan.schema.names.index(name) for name in by]
        groups: dict[Row, list[Element]] = {}
        for element in self._sequence(plan, time):
            groups.setdefault(tuple(element.row[i] for i in columns), []).append(element)
        return groups.values()

    def _sequence(self, plan: Plan, time: int) -> list[Element]:
        """The elements of the plan up to ``time``, in the order in which ROWS counts them."""
        match plan:
            case Source():
                return [e for e in self._elements(plan) if e.time <= time]
            case Filter() | Project() if _reads_one_stream(plan):
                return [
                    Element(element.time, element.id, row)
                    for element in self._sequence(plan.input, time)
                    for row in _apply(plan, Counter([element.row]))
                ]
            case _:
                return [
                    Element(instant, 0, row)
                    for instant in self._instants(plan, 0, time)
                    for row in sorted(self.snapshot(plan, instant).elements(), key=value_order)
                ]


def _conformed(row: Row) -> Row:
    return tuple(conform(v, DOUBLE) if isinstance(v, float) else v for v in row)


def _reads_one_stream(plan: Plan) -> bool:
    """Whether the plan only filters and projects a stream, so that its elements keep their ids."""
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, Source)


def value_order(row: Row) -> tuple[tuple[bool, bool, Value], ...]:
    """The key that orders rows by their values: NULLs first, NaN last."""
    return tuple(
        (False, False, False)
        if value is None
        else (True, True, False)
        if isinstance(value, float) and math.isnan(value)
        else (True, False, value)
        for value in row
    )


def _instant(value: Value, missing: int) -> int:
    """The instant in a period column: TIMESTAMP, or BIGINT microseconds."""
    if value is None:
        return missing
    if isinstance(value, datetime):
        return from_datetime(value)
    assert isinstance(value, int), "periods are TIMESTAMP or BIGINT"
    return value


def _apply(plan: Filter | Project | Distinct | Aggregate, rows: Bag) -> Bag:
    names = plan.input.schema.names
    match plan:
        case Filter(_, predicate):
            return Counter({row: n for row, n in rows.items() if _is_true(predicate, names, row)})
        case Project(_, columns):
            projected: Bag = Counter()
            for row, n in rows.items():
                values = dict(zip(names, row, strict=True))
                projected[tuple(evaluate(column.expr, values) for column in columns)] += n
            return projected
        case Distinct():
            return Counter(dict.fromkeys(rows, 1))
        case Aggregate():
            return _aggregate(plan, rows)
        case _:
            assert_never(plan)


def _aggregate(plan: Aggregate, rows: Bag) -> Bag:
    groups: dict[Row, list[tuple[dict[str, Value], int]]] = {}
    for row, n in rows.items():
        values = dict(zip(plan.input.schema.names, row, strict=True))
        key = tuple(evaluate(k.expr, values) for k in plan.keys)
        groups.setdefault(key, []).append((values, n))
    return Counter(
        (*key, *(aggregate(a.call, members) for a in plan.aggregates))
        for key, members in groups.items()
    )


def _combine(
    plan: Join | SemiJoin | AntiJoin | Union | MaxUnion | Difference | StrictDifference | Intersect,
    left: Bag,
    right: Bag,
) -> Bag:
    match plan:
        case Union():
            return left + right
        case MaxUnion():
            return left | right
        case Intersect():
            return left & right
        case Difference():
            return left - right
        case StrictDifference():
            return Counter({row: n for row, n in left.items() if row not in right})
        case SemiJoin(_, _, condition, names):
            return Counter({a: n for a, n in left.items() if _partners(condition, names, a, right)})
        case AntiJoin(_, _, condition, names):
            return Counter(
                {a: n for a, n in left.items() if not _partners(condition, names, a, right)}
            )
        case Join():
            return _join(plan, left, right)
        case _:
            assert_never(plan)


def _join(plan: Join, left: Bag, right: Bag) -> Bag:
    pairs: Bag = Counter()
    lonely_left, lonely_right = Counter(left), Counter(right)
    for a, n in left.items():
        for b in _partners(plan.condition, plan.names, a, right):
            pairs[a + b] = n * right[b]
            del lonely_left[a], lonely_right[b]
    if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
        nothing = (None,) * len(plan.right.schema)
        pairs.update({a + nothing: n for a, n in lonely_left.items()})
    if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
        nothing = (None,) * len(plan.left.schema)
        pairs.update({nothing + b: n for b, n in lonely_right.items()})
    return pairs


def _partners(condition: Expr, names: tuple[str, ...], row: Row, others: Bag) -> list[Row]:
    return [other for other in others if _is_true(condition, names, row + other)]


def _is_hidden(window: RowWindow, names: tuple[str, ...], row: Row) -> bool:
    return window.unless is not None and _is_true(window.unless, names, row)


def _is_true(predicate: Expr, names: tuple[str, ...], row: Row) -> bool:
    return evaluate(predicate, dict(zip(names, row, strict=True))) is True
