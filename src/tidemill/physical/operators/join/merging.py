"""Merging: what joins of two inputs do, for a planner that makes joins of many of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.model.batch import Form
from tidemill.physical.operators.join.join import Join
from tidemill.physical.operators.join.multi_join import MultiJoin
from tidemill.physical.operators.join.signed_join import Join as SignedJoin
from tidemill.physical.operators.join.signed_multi_join import MultiJoin as SignedMultiJoin

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator

__all__ = ["Joining", "joining_of", "merged_join"]


@dataclass(frozen=True, slots=True)
class Joining:
    """What a join of two inputs does.

    Attributes:
        form: The form of its rows.
        names: Names for the columns of both, left first.
        condition: What must be true, in these names.
        orderly: Whether each input is in the order of ends.
    """

    form: Form
    names: tuple[str, ...]
    condition: Expr
    orderly: tuple[bool, bool]


def joining_of(operator: Operator) -> Joining | None:
    """What an operator joins, if it is a join of two inputs."""
    match operator:
        case Join():
            return Joining(Form.INTERVAL, operator.names, operator.condition, operator.orderly)
        case SignedJoin():
            return Joining(Form.SIGNED, operator.names, operator.condition, (True, True))
        case _:
            return None


def merged_join(  # noqa: PLR0913, PLR0917 — what a join of many is made of
    form: Form,
    inputs: tuple[Schema, ...],
    names: tuple[str, ...],
    condition: Expr,
    orders: tuple[tuple[int, ...], ...],
    orderly: tuple[bool, ...],
    lazy: int,
) -> Operator:
    """A join of many inputs.

    Args:
        form: The form of its rows.
        inputs: The columns of the inputs.
        names: Names for all of them.
        condition: What must be true, in these names.
        orders: For each input, in which order it probes the others.
        orderly: Whether each input is in the order of ends.
        lazy: Where ends are known, at multiples of how many microseconds it is evaluated.
    """
    if form is Form.SIGNED:
        return SignedMultiJoin(inputs, names, condition, orders)
    return MultiJoin(inputs, names, condition, orders, orderly, evaluation=lazy, expiration=lazy)
