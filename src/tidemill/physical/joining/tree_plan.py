"""The plan of a tree of joins: what is remembered of each part, and how its rows meet the others.

Law: for every tree and every order of probing, the conditions that are met on entry and at the
steps of a row's way to the top are together the condition.

A row of a part meets the other parts of its stage, one after another; what it finds is a row of the
part above. What is remembered of a part has all columns of its inputs, and what they are found by,
so it is the same in every tree that has this part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from tidemill.model.batch import END, START
from tidemill.physical.joining.probe_plan import Probing
from tidemill.physical.joining.tree import Stage, bits, mask_of, stages
from tidemill.physical.joining.tree_shape import table_name, tree_of
from tidemill.physical.state.damaged import DamagedError
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Field, Schema
    from tidemill.physical.joining.probe import Step
    from tidemill.physical.operator import State

__all__ = ["StageOrders", "TreePlan", "TreeProbe", "is_order", "order_numbers"]

StageOrders: TypeAlias = "Mapping[Stage, tuple[tuple[int, ...], ...]]"
"""For the children of stages, the numbers of the others in the order in which they probe them."""

_ORDER = "order "
_DIGIT = 6
"""An order is a number with so many bits for each step."""

_PLANS = 1024
"""So many plans of trees are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeProbe:
    """How the rows of one part of a tree meet the others of its stage.

    Attributes:
        mask: The inputs joined in the part.
        table: Where its rows are remembered.
        above: The inputs joined in what is found.
        others: The inputs joined in the other parts, in the order in which they are met.
        tables: Where these are remembered.
        steps: What is asked for.
    """

    mask: int
    table: str
    above: int
    others: tuple[int, ...]
    tables: tuple[str, ...]
    steps: tuple[Step, ...]


class TreePlan:
    """What a join of many inputs does in any tree.

    Args:
        inputs: The columns of each input.
        fields: The columns of all, as they are called inside.
        condition: What must be true, in these names.
        orders: For each input, the others in the order in which it would like to meet them; or
            nothing.
        orderly: Whether each input is in the order of ends; or nothing, if all are.
    """

    __slots__ = ("_orderly", "_orders", "everything", "probing")

    def __init__(
        self,
        inputs: Sequence[Schema],
        fields: Sequence[Field],
        condition: Expr,
        orders: Sequence[Sequence[int]],
        orderly: Sequence[bool],
    ) -> None:
        self.probing = Probing(inputs, fields, condition)
        self.everything = (1 << len(inputs)) - 1
        self._orders = orders or [range(len(inputs))] * len(inputs)
        self._orderly = orderly

    def table(self, mask: int, first_name: int = 0) -> Table:
        """An empty table for the combinations of some inputs.

        Args:
            mask: The inputs.
            first_name: The name of its first segment.
        """
        columns: dict[str, pl.DataType] = {}
        keys: list[str] = []
        for port in bits(mask):
            columns |= self.probing.sides[port].columns
            keys += self.probing.sides[port].keys
        # Combinations come when their last row comes, and end when the first of them does.
        is_orderly = mask.bit_count() == 1 and (
            not self._orderly or self._orderly[mask.bit_length() - 1]
        )
        return Table(
            columns, (START, END), key=keys, by_expiry=not is_orderly, first_name=first_name
        )

    def probes(self, state: State) -> Mapping[int, TreeProbe]:
        """How the rows of each part meet others in the tree of a state."""
        told = tuple(item for item in state.numbers.items() if item[0].startswith(_ORDER))
        return _probes(self, tuple(state.tables), told)

    def probe_of(self, mask: int, others: Sequence[int]) -> TreeProbe:
        """How combinations of some inputs meet those of others, in an order."""
        return TreeProbe(
            mask,
            table_name(mask),
            mask + sum(others),
            tuple(others),
            tuple(map(table_name, others)),
            self.probing.steps([tuple(bits(one)) for one in (mask, *others)]),
        )

    def stage_probes(self, stage: Stage, told: Mapping[str, int]) -> Mapping[int, TreeProbe]:
        """How the children of a stage meet the others of it.

        Args:
            stage: The stage.
            told: The orders that were chosen, as numbers.

        Raises:
            DamagedError: A number says no order.
        """
        found: dict[int, TreeProbe] = {}
        for mask, usual in zip(stage.masks, self.orders_of(stage), strict=True):
            chosen = told.get(_ORDER + table_name(mask))
            order = usual if chosen is None else _decoded(chosen, len(stage.masks))
            others = [stage.masks[number] for number in order if number < len(stage.masks)]
            if sorted([mask, *others]) != sorted(stage.masks):
                raise DamagedError(f'{order} is no order of probing of "{table_name(mask)}"')
            found[mask] = self.probe_of(mask, others)
        return found

    def orders_of(self, stage: Stage) -> tuple[tuple[int, ...], ...]:
        """For each child of a stage, the numbers of the others in the order it would like."""
        masks = stage.masks
        orders: list[tuple[int, ...]] = []
        for own, mask in enumerate(masks):
            liked = list(self._orders[next(bits(mask))])
            others = [number for number in range(len(masks)) if number != own]
            others.sort(key=lambda number: min(map(liked.index, bits(masks[number]))))
            orders.append(tuple(others))
        return tuple(orders)


@lru_cache(maxsize=_PLANS)
def _probes(
    plan: TreePlan, names: tuple[str, ...], told: tuple[tuple[str, int], ...]
) -> Mapping[int, TreeProbe]:
    found: dict[int, TreeProbe] = {}
    for stage in stages(tree_of(names)):
        found |= plan.stage_probes(stage, dict(told))
    return found


def order_numbers(tree: Stage, orders: StageOrders) -> dict[str, int]:
    """Orders of probing as numbers of a state; where there are two there is nothing to choose."""
    assert all(len(stage.children) <= 1 << _DIGIT for stage in orders), "a step has a few bits"
    return {
        _ORDER + table_name(mask_of(child)): sum(n << (_DIGIT * i) for i, n in enumerate(order))
        for stage in stages(tree)
        if len(stage.children) > 2  # noqa: PLR2004
        for child, order in zip(stage.children, orders.get(stage, ()), strict=False)
    }


def is_order(name: str) -> bool:
    """Whether a number of a state is an order of probing."""
    return name.startswith(_ORDER)


def _decoded(order: int, count: int) -> tuple[int, ...]:
    """The order of probing that a number says, for a stage of so many parts."""
    return tuple(order >> (_DIGIT * i) & (1 << _DIGIT) - 1 for i in range(count - 1))
