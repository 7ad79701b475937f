"""The canonical form of a plan: queries that say the same with other words become one plan.

    Project x.price                        Project price
      Join on y.item = x.item                Join on bid.item = sale.item
        sale AS y [RANGE 9]         ->         bid [RANGE 9]
        bid AS x [RANGE 9]                     sale [RANGE 9]

State is shared by what is equal, so the same part of two queries has to be the same plan:

- expressions have one spelling (``spelling.py``);
- the inputs of a join of two, and those of UNION, INTERSECT and MAX-UNION, have one order, and
  RIGHT JOIN is LEFT JOIN;
- columns are called after what they are, not after what a query calls its tables and expressions;
  keys and aggregates of GROUP BY have one order;
- a project that only renames columns is left out.

Law: the plan has the rows and the columns of the one before, under the names and in the order that
the query wants; and the canonical form of a canonical form is itself.

Equal because joins and these set operations are commutative, and names mean nothing. Where the
order of columns has a meaning, it is brought back: for the answer, for set operations, which look
at columns by their place, and below ROWS windows, which count rows of one instant in the order of
their values. A plan has at most one project more, on top, and none if what stands there remembers
nothing.

The inputs of three and more joins keep their order: it is chosen by cost (``order_joins.py``), and
if nothing is known it is the one that was written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cmp_to_key
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.expr import Column, Named, replace_columns
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
    NamedAggregate,
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
from tidemill.algebra.tree import children, share, walk
from tidemill.optimizer.logical.canonical_names import (
    aggregate_shape,
    names_of_both,
    names_of_columns,
)
from tidemill.optimizer.logical.canonical_order import Places
from tidemill.optimizer.logical.join_block import join_block
from tidemill.optimizer.logical.spelling import shape, spelled, spelled_aggregate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.algebra.expr import Expr

__all__ = ["canonical"]

_Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Done:
    """A canonical plan, and what the columns of the one before are called in it, one by one."""

    plan: Plan
    names: _Names

    def renamed(self, expr: Expr, before: Plan) -> Expr:
        """An expression over the plan before as one over this one."""
        new = dict(zip(before.schema.names, self.names, strict=True))
        return spelled(_with_names(expr, new), exactly=False)

    def in_order(self, wanted: _Names | None = None) -> Plan:
        """The plan with its columns in the order of the one before, and under these names."""
        names = self.names if wanted is None else wanted
        if self.plan.schema.names == self.names == names:
            return self.plan
        types = {field.name: field.type for field in self.plan.schema}
        pairs = zip(names, self.names, strict=True)
        return Project(self.plan, tuple(Named(new, Column(old, types[old])) for new, old in pairs))


def canonical(plan: Plan) -> Plan:
    """The canonical form of a plan; the plan itself if that is it."""
    names, shared = plan.schema.names, share(plan)
    found = _Forms(shared).visit(shared, names).in_order(names)
    return plan if found is shared else share(found)


class _Forms:
    """The canonical forms of the parts of one plan."""

    def __init__(self, plan: Plan) -> None:
        uses = Counter(id(child) for node in walk(plan) for child in children(node))
        self._shared = {part for part, count in uses.items() if count > 1}
        self._kept = _joined_at_once(plan, self._shared)
        self._places = Places()
        self._known: dict[tuple[int, _Names | None], _Done] = {}

    def visit(self, node: Plan, wanted: _Names | None = None) -> _Done:
        """The form of a part.

        Args:
            node: The part.
            wanted: What its columns had best be called; ``None`` if that is all the same.
        """
        if id(node) in self._shared:
            wanted = None
        known = self._known.get((id(node), wanted))
        if known is None:
            known = _as_it_was(node, self._form(node, wanted))
            self._known[id(node), wanted] = known
        return known

    def _form(self, node: Plan, wanted: _Names | None) -> _Done:
        match node:
            case Source() | Relation():
                return _Done(node, node.schema.names)
            case Filter(input_, predicate):
                below = self.visit(input_, wanted)
                return replace(below, plan=Filter(below.plan, below.renamed(predicate, input_)))
            case Window():
                return self._window(node, wanted)
            case Project():
                return self._project(node, wanted)
            case Distinct() | Istream() | Dstream() | Rstream():
                below = self.visit(node.input)
                return replace(below, plan=type(node)(below.plan))
            case Aggregate():
                return self._aggregate(node)
            case Join():
                return self._join(node)
            case SemiJoin() | AntiJoin():
                left, right = self.visit(node.left), self.visit(node.right)
                names = names_of_both(left.plan, right.plan)
                condition = _condition(node, left, right, names)
                return _Done(type(node)(left.plan, right.plan, condition, names), left.names)
            case Union():
                return self._union(node, wanted)
            case MaxUnion() | Intersect():
                return self._either_first(node)
            case Difference() | StrictDifference():
                left, right = self.visit(node.left), self.visit(node.right)
                return _Done(type(node)(left.in_order(), right.in_order()), left.names)
            case _:
                assert_never(node)

    def _window(self, node: Window, wanted: _Names | None) -> _Done:
        match node.spec:
            case TimeWindow() | Unbounded():
                below = self.visit(node.input, wanted)
                return replace(below, plan=replace(node, input=below.plan))
            case RowWindow(_, _, keys, unless) as rows:
                below = self.visit(node.input)
                plan = below.in_order()
                seen = None if unless is None else below.renamed(unless, node.input)
                spec = replace(rows, partition_by=_keys(keys, below, node.input), unless=seen)
                return replace(below, plan=replace(node, input=plan, spec=spec))
            case SessionWindow(_, keys) as session:
                below = self.visit(node.input)
                by = _keys(keys, below, node.input)
                spec_now = replace(session, partition_by=by)
                return replace(below, plan=replace(node, input=below.plan, spec=spec_now))
            case _:
                assert_never(node.spec)

    def _project(self, node: Project, wanted: _Names | None) -> _Done:
        below = self.visit(node.input)
        exprs = [below.renamed(column.expr, node.input) for column in node.columns]
        chosen = tuple(expr.name for expr in exprs if isinstance(expr, Column))
        if len(chosen) == len(exprs) and chosen == below.plan.schema.names:
            return _Done(below.plan, chosen)
        names = names_of_columns(exprs) if wanted is None else wanted
        columns = (Named(name, expr) for name, expr in zip(names, exprs, strict=True))
        return _Done(Project(below.plan, tuple(columns)), names)

    def _aggregate(self, node: Aggregate) -> _Done:
        below = self.visit(node.input)
        new = dict(zip(node.input.schema.names, below.names, strict=True))
        keys = [below.renamed(key.expr, node.input) for key in node.keys]
        calls = []
        for call in (aggregate.call for aggregate in node.aggregates):
            parts = (call.argument, call.condition)
            argument, condition = (p if p is None else _with_names(p, new) for p in parts)
            renamed = replace(call, argument=argument, condition=condition)
            calls.append(spelled_aggregate(renamed, exactly=False))
        key_order = sorted(range(len(keys)), key=lambda i: shape(keys[i]))
        labels = [aggregate_shape(call) for call in calls]
        call_order = sorted(range(len(calls)), key=lambda i: labels[i])
        names = names_of_columns([*(keys[i] for i in key_order), *(calls[i] for i in call_order)])
        by = tuple(Named(names[n], keys[i]) for n, i in enumerate(key_order))
        values = tuple(
            NamedAggregate(names[n], calls[i]) for n, i in enumerate(call_order, start=len(keys))
        )
        places = [*key_order, *(len(keys) + i for i in call_order)]
        back = dict(zip(places, names, strict=True))
        return _Done(Aggregate(below.plan, by, values), tuple(back[i] for i in range(len(names))))

    def _join(self, node: Join) -> _Done:
        left, right = self.visit(node.left), self.visit(node.right)
        kind, is_turned = node.kind, False
        if kind is JoinKind.RIGHT:
            kind, is_turned = JoinKind.LEFT, True
        elif kind is not JoinKind.LEFT and id(node) not in self._kept:
            is_turned = self._is_turned(node, left, right)
        first, second = (right, left) if is_turned else (left, right)
        names = names_of_both(first.plan, second.plan)
        own = _own_names(left, right, names, is_turned=is_turned)
        condition = _condition(node, left, right, names, is_turned=is_turned)
        return _Done(Join(first.plan, second.plan, kind, condition, names), own)

    def _is_turned(self, node: Join, left: _Done, right: _Done) -> bool:
        """Whether the right input comes first."""
        place = self._places.compare(left.plan, right.plan)
        if place:
            return place > 0
        names = names_of_both(left.plan, right.plan)
        written, turned = (
            shape(_condition(node, left, right, names, is_turned=is_turned))
            for is_turned in (False, True)
        )
        return turned < written

    def _union(self, node: Union, wanted: _Names | None) -> _Done:
        """All inputs of unions of unions in their order."""
        inputs: list[Plan] = []
        todo: list[Plan] = [node.right, node.left]
        while todo:
            part = todo.pop()
            if isinstance(part, Union) and id(part) not in self._shared:
                todo += [part.right, part.left]
            else:
                inputs.append(part)
        forms = [self.visit(part, wanted) for part in inputs]

        def compare(one: _Done, other: _Done) -> int:
            return self._places.compare(one.in_order(), other.in_order())

        first, *others = sorted(forms, key=cmp_to_key(compare))
        made = first.in_order(wanted)
        for other in others:
            made = Union(made, other.in_order())
        return _Done(made, made.schema.names)

    def _either_first(self, node: MaxUnion | Intersect) -> _Done:
        left, right = (self.visit(part).in_order() for part in (node.left, node.right))
        # Of the answer is known what may be NULL on its first side.
        are_alike = all(
            one.nullable == other.nullable
            for one, other in zip(left.schema, right.schema, strict=True)
        )
        if are_alike and self._places.compare(left, right) > 0:
            left, right = right, left
        return _Done(type(node)(left, right), left.schema.names)


def _as_it_was(node: Plan, form: _Done) -> _Done:
    """The form, with the part before in its place if they are equal."""
    made = form.plan
    is_above_the_same = type(made) is type(node) and all(
        one is other for one, other in zip(children(made), children(node), strict=True)
    )
    return replace(form, plan=node) if is_above_the_same and made == node else form


def _joined_at_once(plan: Plan, shared: set[int]) -> set[int]:
    """The joins of three and more inputs."""
    kept: set[int] = set()
    inside: set[int] = set()
    for node in reversed(list(walk(plan))):
        if isinstance(node, Join) and id(node) not in inside:
            block = join_block(node, lambda part: id(part) in shared)
            if block is not None:
                inside |= block.inside
                if len(block.inputs) > 2:  # noqa: PLR2004 — two sides are alike
                    kept |= block.inside
    return kept


def _with_names(expr: Expr, new: Mapping[str, str]) -> Expr:
    return replace_columns(expr, lambda column: Column(new[column.name], column.type))


def _keys(keys: Iterable[str], below: _Done, before: Plan) -> _Names:
    """The columns that a window is partitioned by, in one order."""
    new = dict(zip(before.schema.names, below.names, strict=True))
    return tuple(sorted({new[key] for key in keys}))


def _own_names(left: _Done, right: _Done, names: _Names, *, is_turned: bool) -> _Names:
    """What the columns of both inputs of a join are called in it, left before right."""
    first, second = (right, left) if is_turned else (left, right)
    width = len(first.names)
    firsts = dict(zip(first.plan.schema.names, names[:width], strict=True))
    seconds = dict(zip(second.plan.schema.names, names[width:], strict=True))
    lefts, rights = (seconds, firsts) if is_turned else (firsts, seconds)
    return (*(lefts[name] for name in left.names), *(rights[name] for name in right.names))


def _condition(
    node: Join | SemiJoin | AntiJoin,
    left: _Done,
    right: _Done,
    names: _Names,
    *,
    is_turned: bool = False,
) -> Expr:
    """The condition of a join in the names of its form."""
    if is_turned:
        names = names_of_both(right.plan, left.plan)
    own = _own_names(left, right, names, is_turned=is_turned)
    new = dict(zip(node.names, own, strict=True))
    return spelled(_with_names(node.condition, new), exactly=False)
