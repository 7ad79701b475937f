"""Merging: what joins of two inputs do, for a planner that makes joins of many of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.model.batch import Form
from tidemill.physical.operators.join.join import Join
from tidemill.physical.operators.join.multi_join import EAGER, MultiJoin
from tidemill.physical.operators.join.signed_join import Join as SignedJoin
from tidemill.physical.operators.join.signed_multi_join import MultiJoin as SignedMultiJoin

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator

__all__ = ["Joining", "joining_of", "merged_join", "stage_of"]


@dataclass(frozen=True, slots=True)
class Joining:
    """What a join does.

    Attributes:
        form: The form of its rows.
        names: Names for the columns of all inputs, in their order.
        condition: What must be true, in these names.
        orderly: Whether each input is in the order of ends.
        orders: For each input, the others in the order in which it probes them, if it was chosen.
    """

    form: Form
    names: tuple[str, ...]
    condition: Expr
    orderly: tuple[bool, ...]
    orders: tuple[tuple[int, ...], ...] = ()


def joining_of(operator: Operator) -> Joining | None:
    """What an operator joins, if it is a join of two inputs."""
    match operator:
        case Join():
            return Joining(Form.INTERVAL, operator.names, operator.condition, operator.orderly)
        case SignedJoin():
            return Joining(Form.SIGNED, operator.names, operator.condition, (True, True))
        case _:
            return None


def stage_of(operator: Operator) -> Joining | None:
    """What an operator joins, if it can be a stage of a tree of joins (``JoinTree``)."""
    match operator:
        case Join():
            return joining_of(operator)
        case MultiJoin() if operator.evaluation == EAGER and operator.within is None:
            orderly = operator.orderly or tuple(True for _ in operator.inputs)
            return Joining(
                Form.INTERVAL, operator.names, operator.condition, orderly, operator.orders
            )
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
