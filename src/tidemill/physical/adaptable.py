"""What an operator can do whose traits say that it adapts: change its tree between two steps.

Law: a change emits nothing, and what is emitted after it has the same snapshots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.model.time import Time
    from tidemill.physical.joining.tree import Stage
    from tidemill.physical.joining.tree_plan import StageOrders
    from tidemill.physical.operator import Operator, State

__all__ = ["Adaptable", "adaptable"]


class Adaptable(Protocol):
    """A join of many inputs whose tree can change."""

    def adapt(
        self, state: State, tree: Stage, time: Time, orders: StageOrders | None = None
    ) -> None:
        """Go on in another tree.

        Args:
            state: The state, which becomes that of the new tree.
            tree: The new tree.
            time: What all inputs have passed.
            orders: For stages of the new tree, the order in which each child probes the others.
        """
        ...

    def agreeing(self, state: State) -> Mapping[int, float]:
        """How many combinations agree on common keys, by the inputs in them as a bit mask."""
        ...

    def probed(self, state: State) -> StageOrders:
        """The orders in which the children of each stage probe the others now."""
        ...


def adaptable(operator: Operator) -> Adaptable | None:
    """The operator as one that adapts, if it does."""
    return cast("Adaptable", operator) if operator.traits.adapts else None
