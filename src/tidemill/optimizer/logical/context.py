"""What rules may know beside the plan."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CONTEXT", "Context"]


@dataclass(frozen=True, slots=True)
class Context:
    """The settings of the optimizer.

    Attributes:
        largest_expression: How many parts an expression may have that a rule makes by putting one
            expression into another. Without a limit, a condition on a column that is doubled by
            each of twenty views would grow a million times.
    """

    largest_expression: int = 200


CONTEXT = Context()
"""The defaults."""
