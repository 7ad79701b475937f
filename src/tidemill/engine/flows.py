"""Flows: what goes from operator to operator, or from stage to stage, in a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.engine.views import View
    from tidemill.model.batch import Batch
    from tidemill.model.time import Time

__all__ = ["Flow"]


@dataclass(slots=True)
class Flow:
    """Elements, and the promise that none that starts before ``watermark`` will follow.

    Attributes:
        batches: The elements.
        watermark: How far time has come.
        view: Where more elements are that nobody has asked for yet.
    """

    batches: list[Batch]
    watermark: Time
    view: View | None = None

    def taken(self) -> list[Batch]:
        """All elements."""
        return self.batches if self.view is None else [*self.batches, *self.view.rows()]

    def count(self) -> int:
        """How many elements there are."""
        viewed = 0 if self.view is None else self.view.count
        return viewed + sum(batch.height for batch in self.batches)
