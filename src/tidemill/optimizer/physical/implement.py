"""Implement: from a logical plan to operators, in which form, and where rows must meet.

A technique decides on the form of each edge (``techniques.py``); converters stand where forms meet.
Each logical operator becomes one physical operator, except that joins other than inner ones are
made of several (``implement_joins.py``), and a window over elements longer than an instant gets a
split below it (KB04, KB05).

An exchange is put where rows must meet that are not known to be in one partition. What follows are
passes over the whole plan (``optimizer/phases.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.expr import Column
from tidemill.algebra.marked import is_marked, plain_schema
from tidemill.algebra.patterns import UpdatePattern, update_pattern
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
from tidemill.algebra.tree import walk
from tidemill.model.batch import Form
from tidemill.optimizer.physical.implement_joins import (
    implement_anti_join,
    implement_join,
    implement_semi_join,
)
from tidemill.optimizer.physical.instants import Instants
from tidemill.optimizer.physical.labels import Labels
from tidemill.optimizer.physical.order import carries_ids
from tidemill.optimizer.physical.placement import (
    ANYWHERE,
    Placed,
    colocated,
    gathered,
    renamed,
)
from tidemill.optimizer.physical.shared_intervals import shares_intervals
from tidemill.optimizer.physical.steps import (
    apply_to,
    by_row,
    columns_of,
    counted,
    distinct_rows,
    in_form,
    project_rows,
    union_rows,
)
from tidemill.optimizer.physical.techniques import Forms, Technique, choose_forms
from tidemill.physical import interval, signed
from tidemill.physical.interval import Change, Multiplicity
from tidemill.physical.plan import Apply, Input, walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["Implemented", "implement"]

_MOST_ROWS = 2**61
"""More rows never come, and sums of two such numbers are still numbers."""

_SET_OPERATIONS = {
    Difference: Multiplicity.DIFFERENCE,
    StrictDifference: Multiplicity.STRICT_DIFFERENCE,
    Intersect: Multiplicity.INTERSECT,
    MaxUnion: Multiplicity.MAX_UNION,
}


@dataclass(frozen=True, slots=True)
class Implemented:
    """A physical plan and where its rows are; by fingerprint, how they expire, and why so."""

    placed: Placed
    labels: Labels


def implement(plan: Plan, technique: Technique, answer: Form | None = None) -> Implemented:
    """The operators of a logical plan, with exchanges where rows must meet.

    Args:
        plan: The logical plan.
        technique: What decides on the form of each edge.
        answer: The form that the answer is wanted in; ``None`` for either.
    """
    done: dict[int, Placed] = {}
    patterns: dict[str, UpdatePattern] = {}
    reasons: dict[str, str] = {}
    forms = choose_forms(plan, technique, answer=answer)
    instants = Instants(frozenset(n.name for n in walk(plan) if isinstance(n, Relation)))

    def visit(node: Plan) -> Placed:
        if id(node) not in done:
            placed = in_form(_implement(node, forms, visit, instants), forms.form(node))
            done[id(node)] = placed
            parts = [placed.plan]
            if isinstance(node, Source | Relation):
                parts = list(walk_physical([placed.plan]))  # what it reads, and what stands above
            for part in parts:
                patterns[part.fingerprint] = update_pattern(node)
                reasons[part.fingerprint] = forms.why(node)
        return done[id(node)]

    made = visit(plan)
    return Implemented(made, Labels(patterns, reasons).completed(made.plan))


def _implement(
    plan: Plan, forms: Forms, visited: Callable[[Plan], Placed], instants: Instants
) -> Placed:
    form = forms.form(plan)

    def visit(child: Plan) -> Placed:
        below = visited(child)
        return in_form(below, form) if forms.signs_throughout and form is Form.SIGNED else below

    match plan:
        case Source() | Relation():
            return _leaf(plan)
        case Filter(input_, predicate):
            below = visit(input_)
            return apply_to(interval.Filter(plan.schema, predicate), below)
        case Project(input_, columns):
            return project_rows(plan.schema, columns, visit(input_))
        case Window(input_):
            return _window(plan, visited(input_), form, instants)
        case Distinct(input_):
            return distinct_rows(visit(input_), form)
        case Aggregate(input_):
            return _aggregate(plan, visit(input_), form)
        case Istream(input_) | Dstream(input_):
            below = by_row(visit(input_))
            change = Change.INSERTED if isinstance(plan, Istream) else Change.DELETED
            return apply_to(interval.Changes(change, plan.schema), below, gives=Form.INTERVAL)
        case Rstream(input_):
            # Its snapshots are its input's; a window above splits it into instants.
            return visit(input_)
        case Union(left, right):
            return union_rows(plan.schema, visit(left), visit(right))
        case Difference() | StrictDifference() | Intersect() | MaxUnion():
            return _set_operation(plan, visit(plan.left), visit(plan.right), form)
        case Join():
            return implement_join(plan, visit(plan.left), visit(plan.right), form)
        case SemiJoin():
            return implement_semi_join(plan, visit(plan.left), visit(plan.right), form)
        case AntiJoin():
            return implement_anti_join(plan, visit(plan.left), visit(plan.right), form)
        case _:
            assert_never(plan)


# Leaves


def _leaf(leaf: Source | Relation) -> Placed:
    """What comes in, from an instant on, and with hidden columns if these are asked for."""
    has_marks = is_marked(leaf)
    schema = plain_schema(leaf.schema) if has_marks else leaf.schema
    made = Placed(Input(leaf.name, schema), ANYWHERE)
    if isinstance(leaf, Source) and leaf.since:
        made = apply_to(interval.Since(schema, leaf.since), made)
    if has_marks:
        made = apply_to(interval.Identify(schema, has_time=isinstance(leaf, Source)), made)
    return made


# One input


def _window(plan: Window, below: Placed, form: Form, instants: Instants) -> Placed:
    below = in_form(below, Form.INTERVAL)
    if not instants.come_from(below.plan):
        below = apply_to(interval.Split(plan.schema, 1, must_cut=True), below)
    match plan.spec:
        case TimeWindow(size, slide):
            return apply_to(interval.TimeWindow(plan.schema, size, slide), below)
        case Unbounded():
            return apply_to(interval.TimeWindow(plan.schema, None), below)
        case RowWindow(rows, slide, partition_by, unless):
            last_rows = signed.RowWindow if form is Form.SIGNED else interval.RowWindow
            by_rows = last_rows(
                plan.schema,
                min(rows, _MOST_ROWS),
                min(slide, _MOST_ROWS),
                partition_by,
                by_id=carries_ids(plan.input),
                unless=unless,
            )
            return apply_to(by_rows, _by_columns(below, partition_by), gives=form)
        case SessionWindow(gap, partition_by):
            sessions = signed.SessionWindow if form is Form.SIGNED else interval.SessionWindow
            by_gap = sessions(plan.schema, gap, partition_by)
            return apply_to(by_gap, _by_columns(below, partition_by), gives=form)
        case _:
            assert_never(plan.spec)


def _by_columns(below: Placed, names: tuple[str, ...]) -> Placed:
    """Rows that agree on some columns in one partition."""
    schema = below.plan.schema
    return gathered(below, [Column(name, schema[name].type) for name in names])


def _aggregate(plan: Aggregate, below: Placed, form: Form) -> Placed:
    placed = gathered(below, [key.expr for key in plan.keys])
    # Elements that share an interval need not share keys, unless there are none.
    panes = _slides(plan.input) if plan.keys else shares_intervals(plan.input)
    kind = signed.Aggregate if form is Form.SIGNED else interval.Aggregate
    operator = kind(
        plan.keys,
        plan.aggregates,
        plan.input.schema,
        plan.schema,
        panes=panes,
        takes=below.form,
    )
    names: dict[str, frozenset[str]] = {}
    for key in plan.keys:
        if isinstance(key.expr, Column):
            old = key.expr.name
            names[old] = names.get(old, frozenset()) | {key.name}
    placement = renamed(placed.placement, names)
    if placed is not below:  # moved by the keys themselves, whatever expressions they are
        placement = tuple(frozenset({key.name}) for key in plan.keys)
    return Placed(Apply(operator, (placed.plan,)), placement, form)


def _slides(plan: Plan) -> bool:
    return isinstance(plan, Window) and shares_intervals(plan)


# Two inputs


def _set_operation(
    plan: Difference | StrictDifference | Intersect | MaxUnion,
    left: Placed,
    right: Placed,
    form: Form,
) -> Placed:
    pairs = list(zip(columns_of(left.plan.schema), columns_of(right.plan.schema), strict=True))
    left, right = colocated(left, right, pairs)
    return counted(_SET_OPERATIONS[type(plan)], plan.schema, form, left, right)
