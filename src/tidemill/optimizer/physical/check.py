"""The check of a plan: whether what operators are promised holds for what stands below them.

- Forms meet: each port gets the form that it takes, and the answer has the one that is wanted.
- Partitions meet: rows that must be in one partition are. This is found out from the exchanges and
  the columns that operators pass, not from what the planner believes (``placement.py``).
- Numbers that tell equal rows apart in one partition do not leave it.
- The plan has no more stages than there are.
- Rewriting has not made state unbounded.

A plan that fails is a mistake of the planner. It is found before a row is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.bounds import unbounded_state
from tidemill.algebra.expr import Column, replace_columns, used_columns
from tidemill.errors import PlanError
from tidemill.optimizer.physical.fold import stages_needed
from tidemill.physical.codec.operators import operator_name
from tidemill.physical.forms import form_of
from tidemill.physical.interval import NUMBER
from tidemill.physical.plan import Apply, Exchange, Input, walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Form
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.physical.traits import Passes

__all__ = ["check_plan"]

_Placement: TypeAlias = "tuple[frozenset[Expr], ...] | None"
"""What rows were hashed by, each key as all the expressions that have its value; ``None``: by
nothing. No key means that all rows are in one partition."""


def check_plan(
    bound: Plan,
    logical: Plan,
    physical: PhysicalPlan,
    answer: Form | None,
    stages: int | None,
) -> None:
    """Find out whether a plan keeps its promises.

    Args:
        bound: What the query means.
        logical: The plan after all rewrites.
        physical: The plan that is to run.
        answer: The form that its answer must have; ``None`` for either.
        stages: How many stages there are; ``None`` for any number.

    Raises:
        PlanError: It does not.
    """
    placements: dict[str, _Placement] = {}
    for part in walk_physical([physical]):
        if isinstance(part, Apply):
            _check_forms(part)
            _check_meeting(part, [placements[below.fingerprint] for below in part.inputs])
        placements[part.fingerprint] = _placement(part, placements)
    if answer is not None and form_of(physical) is not answer:
        raise _mistake(f"an answer in {answer.value} form is wanted")
    if stages is not None and stages_needed(physical) > stages:
        raise _mistake(f"a plan of {stages_needed(physical)} stages does not fit into {stages}")
    if unbounded_state(bound) is None and unbounded_state(logical) is not None:
        raise _mistake("rewriting has made the state of the query unbounded")


def _check_forms(part: Apply) -> None:
    traits = part.traits
    given = [form_of(below) for below in part.inputs]
    if len(given) != len(traits.takes):
        raise _mistake(f"{_name(part)} has {len(traits.takes)} ports, not {len(given)}")
    if any(takes not in (None, form) for takes, form in zip(traits.takes, given, strict=True)):
        raise _mistake(f"{_name(part)} does not take {[form.value for form in given]}")
    if traits.gives is None and len(set(given)) > 1:
        raise _mistake(f"{_name(part)} gets rows in two forms")


def _check_meeting(part: Apply, below: Sequence[_Placement]) -> None:
    """Refuse an operator whose rows may be apart."""
    wanted = [
        (keys, placement)
        for keys, placement in zip(part.traits.meets, below, strict=True)
        if keys is not None
    ]
    if not wanted or all(placement == () for _, placement in wanted):
        return
    lengths = {None if placement is None else len(placement) for _, placement in wanted}
    if None in lengths or len(lengths) > 1:
        raise _mistake(f"the rows that {_name(part)} needs may be in several partitions")
    for classes in zip(*(placement or () for _, placement in wanted), strict=True):
        both = zip(wanted, classes, strict=True)
        if not frozenset.intersection(*(_in_keys(keys, c) for (keys, _), c in both)):
            raise _mistake(f"the rows that {_name(part)} needs are in partitions by other keys")


def _in_keys(keys: Sequence[Expr], class_: frozenset[Expr]) -> frozenset[Expr]:
    """What a class has in terms of the keys, by their numbers: rows that agree on these agree."""
    numbers = {key.name: f"@{n}" for n, key in enumerate(keys) if isinstance(key, Column)}
    found: set[Expr] = {Column(f"@{n}", key.type) for n, key in enumerate(keys) if key in class_}
    found |= {
        replace_columns(expr, lambda c: Column(numbers[c.name], c.type))
        for expr in class_
        if used_columns(expr) <= numbers.keys()
    }
    return frozenset(found)


def _placement(part: PhysicalPlan, known: dict[str, _Placement]) -> _Placement:
    match part:
        case Input():
            return None
        case Exchange(below, keys):
            if NUMBER in below.schema.names:
                raise _mistake("numbers of rows are unique in one partition, and cannot leave it")
            return tuple(frozenset({key}) for key in keys)
        case Apply(_, below):
            placements = [
                _passed(known[b.fingerprint], passes)
                for b, passes in zip(below, part.traits.passes, strict=True)
            ]
            # Rows that meet agree on their keys, so each key has all the names that it had.
            do_meet = all(keys is not None for keys in part.traits.meets)
            return _merged(placements, frozenset.union if do_meet else frozenset.intersection)
        case _:
            assert_never(part)


def _passed(placement: _Placement, passes: Passes) -> _Placement:
    """A placement in the names of the output; unknown, if a key does not leave."""
    if placement is None:
        return None
    classes = tuple(
        frozenset(new for expr in class_ for new in _renamings(expr, passes))
        for class_ in placement
    )
    return classes if all(classes) else None


def _renamings(expr: Expr, passes: Passes) -> list[Expr]:
    """What has the value of an expression, in the names of the output."""
    found: list[Expr] = [Column(name, expr.type) for name in passes.get(expr, ())]
    if isinstance(expr, Column):
        return found
    names = {old.name: min(new) for old, new in passes.items() if isinstance(old, Column) and new}
    if used_columns(expr) <= names.keys():
        found.append(replace_columns(expr, lambda c: Column(names[c.name], c.type)))
    return found


def _merged(placements: Sequence[_Placement], merge: Callable[..., frozenset[Expr]]) -> _Placement:
    """Where the rows of several inputs are together; unknown, if they were hashed otherwise."""
    known = [placement for placement in placements if placement is not None]
    if len(known) < len(placements) or len({len(placement) for placement in known}) > 1:
        return None
    classes = tuple(merge(*parts) for parts in zip(*known, strict=True))
    return classes if all(classes) else None


def _name(part: Apply) -> str:
    return operator_name(part.operator)


def _mistake(what: str) -> PlanError:
    return PlanError(
        f"the planner made a plan that cannot run: {what}",
        hint="this is a mistake in Tidemill, not in the query; please report it",
    )
