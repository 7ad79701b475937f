"""Implement: from a logical plan to operators, in which form, and where rows must meet.

A technique decides on the form of each edge (``techniques.py``); converters stand where forms meet.
Each logical operator becomes one physical operator, except that joins other than inner ones are
made of several (``implement_joins.py``), and a window over elements longer than an instant gets a
split below it (KB04, KB05).

An exchange is put where rows must meet that are not known to be in one partition. In the end
scalar aggregates are split, exchanges are pushed down, and delays are limited, each by a pass over
the whole plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.expr import Column
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
from tidemill.optimizer.physical.label_parts import label_parts
from tidemill.optimizer.physical.limit_delay import DEFAULT_DELAY, limit_delay
from tidemill.optimizer.physical.merge_joins import merge_joins
from tidemill.optimizer.physical.order import carries_ids
from tidemill.optimizer.physical.placement import (
    ANYWHERE,
    Placed,
    colocated,
    gathered,
    renamed,
)
from tidemill.optimizer.physical.push_exchanges import push_exchanges
from tidemill.optimizer.physical.shared_intervals import shares_intervals
from tidemill.optimizer.physical.split_aggregates import split_aggregates
from tidemill.optimizer.physical.steps import (
    apply_to,
    by_row,
    columns_of,
    counted,
    distinct_rows,
    held_until_due,
    in_form,
    lies_behind,
    project_rows,
    union_rows,
)
from tidemill.optimizer.physical.techniques import Forms, Technique, choose_forms
from tidemill.physical import interval, signed
from tidemill.physical.interval import Change, Multiplicity
from tidemill.physical.plan import Apply, Exchange, Input, PhysicalPlan, walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


__all__ = ["Implemented", "implement", "implement_annotated"]

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
    """A physical plan; by fingerprint, how rows of parts expire, and why they have their form."""

    plan: PhysicalPlan
    patterns: Mapping[str, UpdatePattern]
    reasons: Mapping[str, str]


def implement(  # noqa: PLR0913 — every setting has a name and a default
    plan: Plan,
    *,
    max_delay: int | None = DEFAULT_DELAY,
    split: bool = True,
    technique: Technique = Technique.PATTERN,
    multiway: bool = False,
    lazy: int = 0,
    answer: Form | None = None,
) -> PhysicalPlan:
    """The physical plan of a logical one, with exchanges.

    Args:
        plan: The logical plan.
        max_delay: How far what does not change may lie behind the watermark; ``None`` for ever.
        split: Whether scalar aggregates are computed in two parts, which may cost a stage more
            and is of no use where there is one partition.
        technique: What decides on the form of each edge.
        multiway: Whether joins of joins become one operator.
        lazy: At multiples of how many microseconds that is evaluated; 0 for at once.
        answer: The form that the answer must have; ``None`` for either.
    """
    return implement_annotated(
        plan,
        max_delay=max_delay,
        split=split,
        technique=technique,
        multiway=multiway,
        lazy=lazy,
        answer=answer,
    ).plan


def implement_annotated(  # noqa: PLR0913 — every setting has a name and a default
    plan: Plan,
    *,
    max_delay: int | None = DEFAULT_DELAY,
    split: bool = True,
    technique: Technique = Technique.PATTERN,
    multiway: bool = False,
    lazy: int = 0,
    answer: Form | None = None,
    whole: bool = False,
) -> Implemented:
    """The physical plan of a logical one, with what is known about its parts.

    The arguments are those of ``implement``, and ``whole``: whether an answer of either form has
    all rows of an instant or none, whenever it is read.
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
            patterns[placed.plan.fingerprint] = update_pattern(node)
            reasons[placed.plan.fingerprint] = forms.why(node)
        return done[id(node)]

    made = visit(plan)
    late = lies_behind(made, lazy=multiway and lazy > 0)
    if answer is None and whole and late:
        # Some rows of an instant would be there before others, which have not ended yet.
        answer = Form.SIGNED
    if answer is not None:
        made = in_form(made, answer)
        made = held_until_due(made, late=late) if answer is Form.SIGNED else made
    top = made.plan
    patterns[top.fingerprint] = update_pattern(plan)
    reasons[top.fingerprint] = forms.why(plan)
    for part in walk_physical([top]):
        # What an exchange hands on is what came in; a window may take its place.
        if isinstance(part, Exchange) and part.input.fingerprint in patterns:
            patterns[part.fingerprint] = patterns[part.input.fingerprint]
            reasons[part.fingerprint] = reasons[part.input.fingerprint]
    label_parts(top, patterns, reasons)
    # Split first: exchanges do not go below what combines rows where they are.
    splitting = (split_aggregates,) if split else ()
    merging = (partial(merge_joins, lazy=lazy),) if multiway else ()
    limiting = partial(limit_delay, max_delay=max_delay)
    for change in (*splitting, *merging, push_exchanges, limiting):
        top, names = change(top)
        patterns = {names[old]: pattern for old, pattern in patterns.items() if old in names}
        reasons = {names[old]: reason for old, reason in reasons.items() if old in names}
    label_parts(top, patterns, reasons)
    return Implemented(top, patterns, reasons)


def _implement(
    plan: Plan, forms: Forms, visited: Callable[[Plan], Placed], instants: Instants
) -> Placed:
    form = forms.form(plan)

    def visit(child: Plan) -> Placed:
        below = visited(child)
        return in_form(below, form) if forms.signs_throughout and form is Form.SIGNED else below

    match plan:
        case Source(name, schema) | Relation(name, schema):
            return Placed(Input(name, schema), ANYWHERE)
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
        case RowWindow(rows, slide, partition_by):
            last_rows = signed.RowWindow if form is Form.SIGNED else interval.RowWindow
            by_rows = last_rows(
                plan.schema,
                min(rows, _MOST_ROWS),
                min(slide, _MOST_ROWS),
                partition_by,
                by_id=carries_ids(plan.input),
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
