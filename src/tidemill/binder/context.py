"""What the binder knows while it binds one statement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidemill.binder.limits import Sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.binder.scope import Scope
    from tidemill.catalog.catalog import Catalog
    from tidemill.errors import Note

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class Context:
    """The names in force at one place of a statement.

    Attributes:
        catalog: What is registered.
        tables: The names defined by WITH, in lower case.
        outer: The scope of the enclosing query, inside a subquery that may refer to it.
        unseen: That scope, where the place may not refer to it.
        uses: Collects what the statement refers to in the catalog.
        sizes: How large the expressions of the statement have become.
        notes: Collects what people should be warned of.
        at_once: Whether it is asked once, of one instant.
    """

    catalog: Catalog
    tables: Mapping[str, Plan] = field(default_factory=dict)
    outer: Scope | None = None
    unseen: Scope | None = None
    uses: set[str] = field(default_factory=set)
    sizes: Sizes = field(default_factory=Sizes)
    notes: list[Note] = field(default_factory=list)
    at_once: bool = False

    def with_table(self, name: str, plan: Plan) -> Context:
        """The context in which ``name`` stands for a query."""
        return replace(self, tables={**self.tables, name.lower(): plan})

    def with_outer(self, scope: Scope | None) -> Context:
        """The context inside a subquery of a query with this scope."""
        return replace(self, outer=scope, unseen=None)

    def without_outer(self) -> Context:
        """The context of a place inside a subquery that cannot refer to the enclosing query."""
        return replace(self, outer=None, unseen=self.outer or self.unseen)
