"""Ports: what an operator remembers of an input, and whether another operator can have it.

What has been chosen less strictly is chosen, columns that are there can be computed; a column that
is not there cannot be made up (Z46). What has been chosen more strictly is as good if all that
stands above chooses so, too: what is missing would have been left out there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.expr import (
    Call,
    Column,
    Expr,
    Named,
    conjunction,
    conjuncts,
    replace_columns,
    transform_expr,
    used_columns,
)
from tidemill.migration.conditions import Conditions
from tidemill.migration.meaning import meaning_in, numbered, renumbered
from tidemill.migration.moves import Handed
from tidemill.optimizer.explain.physical import describe
from tidemill.physical import interval
from tidemill.physical.forms import form_of
from tidemill.physical.means import Combined, means_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.migration.meaning import Meaning
    from tidemill.physical.operator import Operator
    from tidemill.physical.plan import Apply

_HERE = "@"
"""How names begin of columns that are at hand, and no names of leaves."""

__all__ = ["Above", "Port", "required_by", "taken_from"]


@dataclass(frozen=True, slots=True)
class Port:
    """An input of an operator that remembers something.

    Attributes:
        part: The operator.
        number: The number of the input.
        meaning: What comes there.
        stage: Where the operator is.
    """

    part: Apply
    number: int
    meaning: Meaning
    stage: int


@dataclass(frozen=True, slots=True)
class Above:
    """What is true of all that is made of an input in the end.

    Attributes:
        conditions: The conditions.
        offset: How many leaves stand before those of the input there.
    """

    conditions: Conditions
    offset: int


def required_by(port: Port) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """What an operator asks of the rows of an input by itself before it remembers them.

    Returns:
        Conditions on them, and what must have a value.
    """
    means = means_of(port.part.operator)
    if not isinstance(means, Combined):
        return (), ()
    names = means.names[port.number]
    own = dict(zip(names, port.part.inputs[port.number].schema.names, strict=True))
    chosen: list[Expr] = []
    valued: list[Expr] = []
    for part in conjuncts(means.condition):
        if used_columns(part) <= own.keys():
            chosen.append(_inside(part, own, port.meaning))
            continue
        match part:
            case Call("=", sides):
                valued += [
                    _inside(side, own, port.meaning)
                    for side in sides
                    if used_columns(side) and used_columns(side) <= own.keys()
                ]
            case _:
                pass
    return tuple(chosen), tuple(valued)


def taken_from(
    new: Port, old: Port, above: Sequence[Above], *, anywhere: bool
) -> Handed | str | None:
    """How an input is filled with what another operator remembers of one.

    Args:
        new: The input.
        old: The other one.
        above: What is asked for in the end, wherever the operator stands.
        anywhere: Whether it does not matter which partitions rows are in: there is one.

    Returns:
        How; or why not, if it is about the same rows; or ``None``.
    """
    reasons: list[str] = []
    found: list[Handed] = []
    for numbers in old.meaning.orders_of(new.meaning):
        taken = _taken(new, old, numbers, above, anywhere=anywhere)
        if isinstance(taken, Handed):
            found.append(taken)
        else:
            reasons.append(taken)
    if found:
        return min(found, key=lambda one: len(one.through))
    return reasons[0] if reasons else None


def _taken(
    new: Port, old: Port, numbers: Sequence[int], above: Sequence[Above], *, anywhere: bool
) -> Handed | str:
    def moved(expr: Expr) -> Expr:
        return renumbered(expr, numbers)

    what = _text(old)
    had = Conditions(map(moved, old.meaning.conditions))
    wanted = Conditions(new.meaning.conditions)
    chosen, valued = required_by(old)
    for condition in map(moved, (*old.meaning.conditions, *chosen)):
        if not _is_asked(condition, wanted, above):
            return f"{what} is of fewer rows than are needed"
    for value in map(moved, valued):
        if not _has_value(value, wanted, above):
            return f"{what} is of rows with a value only, and others are needed"
    if form_of(old.part.inputs[old.number]) is not form_of(new.part.inputs[new.number]):
        return f"{what} is in another form"
    if old.stage != new.stage:
        return f"{what} is in stage {old.stage}, and is needed in stage {new.stage}"
    if not anywhere:
        both = Conditions((*map(moved, old.meaning.conditions), *new.meaning.conditions))
        there = {tuple(both.rewritten(moved(e)) for e in p) for p in old.meaning.places}
        here = {tuple(map(both.rewritten, place)) for place in new.meaning.places}
        if there.isdisjoint(here):
            return f"{what} is in other partitions than it is needed in"
    through = _through(new, old, numbers, had)
    return through if isinstance(through, str) else Handed(old.part, old.number, through)


def _through(
    new: Port, old: Port, numbers: Sequence[int], had: Conditions
) -> tuple[Operator, ...] | str:
    """What is done with rows that are remembered, to have those that are needed."""
    schema, target = old.part.inputs[old.number].schema, new.part.inputs[new.number].schema
    at_hand = {
        had.rewritten(renumbered(old.meaning.columns[field.name], numbers)): field
        for field in schema
    }
    names = {expr: Column(f"{_HERE}{field.name}", field.type) for expr, field in at_hand.items()}
    columns: list[Named] = []
    for field in target:
        found = _computed(had.rewritten(new.meaning.columns[field.name]), names)
        if found is None:
            return f'{_text(old)} has no column for "{field.name}", and none can be made up'
        columns.append(Named(field.name, found))
    left: list[Expr] = []
    for condition in new.meaning.conditions:
        if had.imply(condition):
            continue
        if (found := _computed(had.rewritten(condition), names)) is None:
            return f"{_text(old)} has no columns for a condition on what is needed"
        left.append(found)
    through: list[Operator] = []
    if left:
        through.append(interval.Filter(schema, conjunction(*left)))
    if tuple(columns) != tuple(Named(f.name, Column(f.name, f.type)) for f in schema):
        through.append(interval.Project(target, tuple(columns)))
    return tuple(through)


def _computed(expr: Expr, names: Mapping[Expr, Column]) -> Expr | None:
    """An expression in columns that are at hand; ``None`` if one is not."""
    found = transform_expr(expr, names.get)
    if not all(name.startswith(_HERE) for name in used_columns(found)):
        return None
    return replace_columns(found, lambda c: Column(c.name.removeprefix(_HERE), c.type))


def _is_asked(condition: Expr, wanted: Conditions, above: Sequence[Above]) -> bool:
    """Whether a condition is true of all rows that matter."""
    if wanted.imply(condition):
        return True
    return all(one.conditions.imply(numbered(condition, one.offset)) for one in above)


def _has_value(expr: Expr, wanted: Conditions, above: Sequence[Above]) -> bool:
    """Whether an expression has a value in all rows that matter."""
    if wanted.require(expr):
        return True
    return all(one.conditions.require(numbered(expr, one.offset)) for one in above)


def _inside(expr: Expr, own: Mapping[str, str], meaning: Meaning) -> Expr:
    """A condition of an operator, in columns of the leaves of an input."""
    in_own = replace_columns(expr, lambda column: Column(own[column.name], column.type))
    return meaning_in(in_own, meaning)


def _text(port: Port) -> str:
    """What is remembered of an input."""
    return f"what {describe(port.part)} remembers of input {port.number + 1}"
