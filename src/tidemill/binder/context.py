"""What the binder knows while it binds one statement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tidemill.binder.limits import Sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
        again: How these names are bound where ``over_time`` is said and was not for them.
        over_time: Whether a window, ISTREAM or DSTREAM stands above, which look at other instants.
    """

    catalog: Catalog
    tables: Mapping[str, Plan] = field(default_factory=dict)
    outer: Scope | None = None
    unseen: Scope | None = None
    uses: set[str] = field(default_factory=set)
    sizes: Sizes = field(default_factory=Sizes)
    notes: list[Note] = field(default_factory=list)
    at_once: bool = False
    again: Mapping[str, Callable[[], Plan]] = field(default_factory=dict)
    over_time: bool = False

    def with_table(self, name: str, bound: Callable[[Context], Plan]) -> Context:
        """The context in which ``name`` stands for a query.

        Args:
            name: The name.
            bound: Binds the query in a context that has the names before this one.
        """
        key, again = name.lower(), dict(self.again)
        again.pop(key, None)
        if self.at_once and not self.over_time:  # what there is to be warned of is told once
            again[key] = partial(bound, replace(self.below_time(), notes=[], sizes=Sizes()))
        return replace(self, tables={**self.tables, key: bound(self)}, again=again)

    def table(self, name: str) -> Plan | None:
        """What a name of WITH stands for; ``None`` if it is none."""
        again = self.again.get(name.lower()) if self.over_time else None
        return self.tables.get(name.lower()) if again is None else again()

    def below_time(self) -> Context:
        """The context below a window, ISTREAM or DSTREAM."""
        return replace(self, over_time=True)

    def with_outer(self, scope: Scope | None) -> Context:
        """The context inside a subquery of a query with this scope."""
        return replace(self, outer=scope, unseen=None)

    def without_outer(self) -> Context:
        """The context of a place inside a subquery that cannot refer to the enclosing query."""
        return replace(self, outer=None, unseen=self.outer or self.unseen)
