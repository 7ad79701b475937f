"""What operators mean, for who compares plans: rows that are chosen, computed, combined or timed.

Of any other operator it is known that it means what it is: two of them mean the same if they are
the same over inputs that mean the same.

Law: an operator gives, at every instant, the rows that its meaning says; a lazy join gives them
later, which is no part of the meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from tidemill.physical.operators.join.join import Join
from tidemill.physical.operators.join.multi_join import MultiJoin, ShortLived
from tidemill.physical.operators.join.signed_join import Join as SignedJoin
from tidemill.physical.operators.join.signed_multi_join import MultiJoin as SignedMultiJoin
from tidemill.physical.operators.rows.filter import Filter
from tidemill.physical.operators.rows.project import Project
from tidemill.physical.operators.rows.since import Since
from tidemill.physical.operators.windows.time_window import TimeWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.expr import Expr, Named
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator

__all__ = ["Chosen", "Combined", "Computed", "Means", "Timed", "means_of"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows for which a condition is true."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Computed:
    """One row of each row."""

    columns: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Combined:
    """All combinations of one row of each input for which a condition is true.

    Attributes:
        names: For each input, what its columns are called in the output.
        condition: The condition, in these names.
    """

    names: tuple[tuple[str, ...], ...]
    condition: Expr


@dataclass(frozen=True, slots=True)
class Timed:
    """The same rows at other instants, or fewer of them, as a text; columns do not matter to it."""

    text: str


Means: TypeAlias = Chosen | Computed | Combined | Timed


def means_of(operator: Operator) -> Means | None:
    """What an operator means; ``None`` if it means what it is."""
    match operator:
        case Filter(predicate=condition):
            return Chosen(condition)
        case Project(columns=columns):
            return Computed(columns)
        case TimeWindow(size=size, slide=slide, wanted=wanted):
            return Timed(f"window {size} {slide} {wanted}")
        case Since(time=time):
            return Timed(f"since {time}")
        case Join() | SignedJoin():
            return _combined((operator.left, operator.right), operator.names, operator.condition)
        case MultiJoin() if operator.within or operator.short_lived is not ShortLived.RESTORE:
            return None
        case MultiJoin() | SignedMultiJoin():
            return _combined(operator.inputs, operator.names, operator.condition)
        case _:
            return None


def _combined(inputs: Sequence[Schema], names: Sequence[str], condition: Expr) -> Combined:
    left = iter(names)
    return Combined(tuple(tuple(islice(left, len(schema))) for schema in inputs), condition)
