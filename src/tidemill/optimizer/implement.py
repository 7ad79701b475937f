"""Implement: from a logical plan to operators in interval form, and where rows must meet.

Each logical operator becomes one physical operator, except

    left, right, full join   the inner join, and the lonely rows of a side padded with NULLs
    semi-join                a join with the distinct keys of the right side; if the condition is
                             more than equality, the left rows are numbered to count each once
    anti-join                the numbered left rows less those that found a partner
    window over a stream     a split into instants stands below if elements are longer (KB04, KB05)
    that is not chronon

An exchange is put where rows must meet that are not known to be in one partition.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.annotations import is_chronon
from tidemill.algebra.expr import (
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    Named,
    conjunction,
    replace_columns,
)
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
    Source,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.placement import (
    ANYWHERE,
    ONE_PARTITION,
    Placed,
    Placement,
    colocated,
    gathered,
    renamed,
)
from tidemill.physical import interval
from tidemill.physical.conditions import split_condition
from tidemill.physical.interval import NUMBER, Change, Multiplicity
from tidemill.physical.plan import Apply, Input, PhysicalPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.physical.operator import Operator

__all__ = ["implement"]

_SET_OPERATIONS = {
    Difference: Multiplicity.DIFFERENCE,
    StrictDifference: Multiplicity.STRICT_DIFFERENCE,
    Intersect: Multiplicity.INTERSECT,
    MaxUnion: Multiplicity.MAX_UNION,
}


def implement(plan: Plan) -> PhysicalPlan:
    """The physical plan of a logical one, with exchanges."""
    done: dict[int, Placed] = {}

    def visit(node: Plan) -> Placed:
        if id(node) not in done:
            done[id(node)] = _implement(node, visit)
        return done[id(node)]

    return visit(plan).plan


def _implement(plan: Plan, visit: Callable[[Plan], Placed]) -> Placed:
    match plan:
        case Source(name, schema) | Relation(name, schema):
            return Placed(Input(name, schema), ANYWHERE)
        case Filter(input_, predicate):
            below = visit(input_)
            return _apply(interval.Filter(plan.schema, predicate), below)
        case Project(input_, columns):
            return _project(plan.schema, columns, visit(input_))
        case Window(input_):
            return _window(plan, visit(input_))
        case Distinct(input_):
            return _distinct(visit(input_))
        case Aggregate(input_):
            return _aggregate(plan, visit(input_))
        case Istream(input_) | Dstream(input_):
            below = _by_row(visit(input_))
            change = Change.INSERTED if isinstance(plan, Istream) else Change.DELETED
            return _apply(interval.Changes(change, plan.schema), below)
        case Rstream(input_):
            return _apply(interval.Rstream(plan.schema, must_cut=True), visit(input_))
        case Union(left, right):
            return _union(plan.schema, visit(left), visit(right))
        case Difference() | StrictDifference() | Intersect() | MaxUnion():
            return _set_operation(plan, visit(plan.left), visit(plan.right))
        case Join():
            return _join(plan, visit(plan.left), visit(plan.right))
        case SemiJoin():
            return _semi_join(plan, visit(plan.left), visit(plan.right))
        case AntiJoin():
            return _anti_join(plan, visit(plan.left), visit(plan.right))
        case _:
            assert_never(plan)


# One input


def _apply(operator: Operator, *below: Placed) -> Placed:
    """An operator that leaves rows where they are and keeps the names of their columns."""
    return Placed(Apply(operator, tuple(b.plan for b in below)), below[0].placement)


def _project(schema: Schema, columns: tuple[Named, ...], below: Placed) -> Placed:
    names: dict[str, frozenset[str]] = {}
    for column in columns:
        if isinstance(column.expr, Column):
            old = column.expr.name
            names[old] = names.get(old, frozenset()) | {column.name}
    operator = interval.Project(schema, columns)
    return Placed(Apply(operator, (below.plan,)), renamed(below.placement, names))


def _window(plan: Window, below: Placed) -> Placed:
    if not is_chronon(plan.input):
        below = _apply(interval.Split(plan.schema, 1, must_cut=True), below)
    match plan.spec:
        case TimeWindow(size, slide):
            return _apply(interval.TimeWindow(plan.schema, size, slide), below)
        case Unbounded():
            return _apply(interval.TimeWindow(plan.schema, None), below)
        case RowWindow(rows, slide, partition_by):
            keys = [Column(name, plan.schema[name].type) for name in partition_by]
            window = interval.RowWindow(
                plan.schema, rows, slide, partition_by, by_id=_keeps_ids(plan.input)
            )
            return _apply(window, gathered(below, keys))
        case _:
            assert_never(plan.spec)


def _keeps_ids(plan: Plan) -> bool:
    """Whether the elements are those of one stream, filtered and projected."""
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, Source)


def _columns(schema: Schema) -> list[Column]:
    return [Column(field.name, field.type) for field in schema]


def _by_row(below: Placed) -> Placed:
    return gathered(below, _columns(below.plan.schema))


def _distinct(below: Placed) -> Placed:
    schema = below.plan.schema
    return _apply(interval.Counting(Multiplicity.DISTINCT, (schema,), schema), _by_row(below))


def _aggregate(plan: Aggregate, below: Placed) -> Placed:
    placed = gathered(below, [key.expr for key in plan.keys])
    panes = isinstance(plan.input, Window) and _slides(plan.input)
    operator = interval.Aggregate(
        plan.keys, plan.aggregates, plan.input.schema, plan.schema, panes=panes
    )
    names: dict[str, frozenset[str]] = {}
    for key in plan.keys:
        if isinstance(key.expr, Column):
            old = key.expr.name
            names[old] = names.get(old, frozenset()) | {key.name}
    placement = renamed(placed.placement, names)
    if placed is not below:  # moved by the keys themselves, whatever expressions they are
        placement = tuple(frozenset({key.name}) for key in plan.keys)
    return Placed(Apply(operator, (placed.plan,)), placement)


def _slides(window: Window) -> bool:
    return isinstance(window.spec, TimeWindow) and window.spec.slide > 1


# Two inputs


def _union(schema: Schema, left: Placed, right: Placed) -> Placed:
    operator = interval.Union(schema, right.plan.schema.names)
    by_position = dict(
        zip(right.plan.schema.names, map(_only, left.plan.schema.names), strict=True)
    )
    same = renamed(right.placement, by_position) == left.placement
    placement = left.placement if same else ANYWHERE
    return Placed(Apply(operator, (left.plan, right.plan)), placement)


def _set_operation(
    plan: Difference | StrictDifference | Intersect | MaxUnion, left: Placed, right: Placed
) -> Placed:
    pairs = list(zip(_columns(left.plan.schema), _columns(right.plan.schema), strict=True))
    left, right = colocated(left, right, pairs)
    operator = interval.Counting(
        _SET_OPERATIONS[type(plan)], (left.plan.schema, right.plan.schema), plan.schema
    )
    return _apply(operator, left, right)


def _join(plan: Join, left: Placed, right: Placed) -> Placed:
    sides = _Sides(plan, left, right)
    joined = Apply(
        interval.Join(sides.left.plan.schema, sides.right.plan.schema, plan.names, plan.condition),
        (sides.left.plan, sides.right.plan),
    )
    whole = Placed(joined, ANYWHERE)
    if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
        lonely = _without_partner(sides)
        whole = _union(plan.schema, whole, _padded(plan, sides.left_names, lonely))
    if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
        swapped = sides.swapped()
        lonely = _without_partner(swapped)
        whole = _union(plan.schema, whole, _padded(plan, swapped.left_names, lonely))
    return replace(whole, placement=sides.placement(plan.kind))


def _semi_join(plan: SemiJoin, left: Placed, right: Placed) -> Placed:
    sides = _Sides(plan, left, right)
    if sides.residual != TRUE or not sides.equalities:
        return _plain(sides, _distinct(_partners(sides)))
    keys = tuple(
        Named(f"@key{i}", sides.own(equality.right)) for i, equality in enumerate(sides.equalities)
    )
    schema = Schema(tuple(Field(key.name, key.expr.type) for key in keys))
    found = _distinct(_project(schema, keys, sides.right))
    condition = conjunction(
        *(
            Call(
                "is_not_distinct" if equality.null_safe else "=",
                (equality.left, Column(key.name, key.expr.type)),
                BOOLEAN,
            )
            for equality, key in zip(sides.equalities, keys, strict=True)
        )
    )
    names = (*sides.left_names.values(), *schema.names)
    operator = interval.Join(sides.left.plan.schema, schema, names, condition)
    joined = Apply(operator, (sides.left.plan, found.plan))
    return replace(_renamed_back(sides, joined), placement=sides.left.placement)


def _anti_join(plan: AntiJoin, left: Placed, right: Placed) -> Placed:
    return _without_partner(_Sides(plan, left, right))


class _Sides:
    """The inputs of a join, with rows that can match in one partition."""

    def __init__(self, plan: Join | SemiJoin | AntiJoin, left: Placed, right: Placed) -> None:
        width = len(left.plan.schema)
        names = plan.names[:width], plan.names[width:]
        self.left_names = dict(zip(left.plan.schema.names, names[0], strict=True))
        self.right_names = dict(zip(right.plan.schema.names, names[1], strict=True))
        self.condition = plan.condition
        self.equalities, self.residual = split_condition(plan.condition, *names)
        pairs = [(self.own(e.left), self.own(e.right)) for e in self.equalities]
        self.left, self.right = colocated(left, right, pairs)

    def own(self, expr: Expr) -> Expr:
        """An expression over one side, in the names that side has for itself."""
        own = {
            new: old for names in (self.left_names, self.right_names) for old, new in names.items()
        }
        return replace_columns(expr, lambda column: Column(own[column.name], column.type))

    def swapped(self) -> _Sides:
        """The same join seen from the other side."""
        other = copy(self)
        other.left, other.right = self.right, self.left
        other.left_names, other.right_names = self.right_names, self.left_names
        return other

    def placement(self, kind: JoinKind) -> Placement:
        """Where the rows of the join are, in the names of its output."""
        left = renamed(self.left.placement, {o: _only(n) for o, n in self.left_names.items()})
        right = renamed(self.right.placement, {o: _only(n) for o, n in self.right_names.items()})
        match kind:
            case JoinKind.LEFT:
                return left
            case JoinKind.RIGHT:
                return right
            case JoinKind.FULL:
                return ONE_PARTITION if left == ONE_PARTITION else ANYWHERE
            case JoinKind.INNER if left is None or right is None:
                return right if left is None else left
            case JoinKind.INNER:
                return tuple(a | b for a, b in zip(left, right, strict=True))


def _numbered(sides: _Sides) -> Placed:
    return _apply(interval.Number(sides.left.plan.schema), sides.left)


def _partners(sides: _Sides) -> Placed:
    """The numbered left rows, each as often as it finds a partner on the right."""
    numbered = _numbered(sides)
    schema = numbered.plan.schema
    names = (*sides.left_names.values(), NUMBER, *sides.right_names.values())
    operator = interval.Join(schema, sides.right.plan.schema, names, sides.condition)
    joined = Apply(operator, (numbered.plan, sides.right.plan))
    joined_names = {**sides.left_names, NUMBER: NUMBER}
    columns = tuple(Named(f.name, Column(joined_names[f.name], f.type)) for f in schema)
    return Placed(Apply(interval.Project(schema, columns), (joined,)), numbered.placement)


def _without_partner(sides: _Sides) -> Placed:
    """The left rows, while they find no partner on the right."""
    numbered, partners = _numbered(sides), _partners(sides)
    schema = numbered.plan.schema
    operator = interval.Counting(Multiplicity.STRICT_DIFFERENCE, (schema, schema), schema)
    return _plain(sides, _apply(operator, numbered, partners))


def _plain(sides: _Sides, numbered: Placed) -> Placed:
    """The rows without their numbers."""
    schema = sides.left.plan.schema
    return _project(schema, tuple(Named(c.name, c) for c in _columns(schema)), numbered)


def _renamed_back(sides: _Sides, joined: PhysicalPlan) -> Placed:
    """The left columns of a join in their own names."""
    schema = sides.left.plan.schema
    columns = tuple(Named(f.name, Column(sides.left_names[f.name], f.type)) for f in schema)
    return Placed(Apply(interval.Project(schema, columns), (joined,)), ANYWHERE)


def _padded(plan: Join, kept: dict[str, str], lonely: Placed) -> Placed:
    """Rows of one side as rows of the join, the other side NULL."""
    own = {new: old for old, new in kept.items()}
    columns = tuple(
        Named(f.name, Column(own[f.name], f.type) if f.name in own else Literal(None, f.type))
        for f in plan.schema
    )
    return _project(plan.schema, columns, lonely)


def _only(name: str) -> frozenset[str]:
    return frozenset({name})
