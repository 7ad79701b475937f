"""The session: where people register streams and queries.

It wires the stages (parse, bind, catalog) and owns no logic of its own.

>>> import tidemill
>>> session = tidemill.connect()
>>> _ = session.sql('''
...     CREATE STREAM bid (auction BIGINT, price DOUBLE, at TIMESTAMP)
...       SOURCE parquet(path => 'data/bids') ORDERED BY at;
... ''')
>>> print(session.sql("EXPLAIN SELECT MAX(price) FROM bid [RANGE 10 MINUTES] WHERE auction = 7"))
Aggregate max(price)
  Filter auction = 7
    Window range=10m
      Source bid
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

import polars as pl

from tidemill.algebra.explain import explain
from tidemill.binder.definitions import define, plan_query
from tidemill.catalog.catalog import Catalog
from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.listing import describe_entry, show
from tidemill.errors import PlanError, TidemillError
from tidemill.lang.parse import parse_script
from tidemill.lang.statements import (
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    Describe,
    Drop,
    Explain,
    ExplainMode,
    Select,
    Show,
    Statement,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.listing import Listing
    from tidemill.errors import Span
    from tidemill.model.schema import Schema

__all__ = ["Query", "Session", "connect"]


@dataclass(frozen=True, slots=True, repr=False)
class Query:
    """A registered continuous query."""

    name: str
    plan: Plan

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        return f"Query({self.name}: {columns})"

    @property
    def schema(self) -> Schema:
        """The columns of the answer."""
        return self.plan.schema

    def explain(self) -> str:
        """The logical plan as text."""
        return explain(self.plan)


Result: TypeAlias = Query | pl.DataFrame | str | None
"""What a statement gives back: a query, a table (SHOW, DESCRIBE), a text (EXPLAIN) or nothing."""


def connect(*, unbounded_state: bool = False) -> Session:
    """A new session with an empty catalog.

    Args:
        unbounded_state: Accept queries whose state can grow without bound, such as a join of two
            streams for ever.
    """
    return Session(unbounded_state=unbounded_state)


class Session:
    """A catalog, and the statements that change it."""

    def __init__(self, *, unbounded_state: bool = False) -> None:
        self._unbounded_state = unbounded_state
        self._catalog = Catalog()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    @property
    def catalog(self) -> Catalog:
        """What is registered now."""
        return self._catalog

    def sql(self, text: str) -> Result:
        """Carry out one or more statements; the result is that of the last one.

        A statement that fails changes nothing. Those before it in the text keep their effect, and
        the error says which one it was.

        Raises:
            TidemillError: A statement could not be parsed, bound or planned.
        """
        try:
            script = parse_script(text)
        except TidemillError as error:
            raise error.located(text) from None
        result: Result = None
        for number, (statement, span) in enumerate(script, start=1):
            try:
                result = self._execute(statement, span)
            except TidemillError as error:
                raise error.located(text, statement=_which(number, len(script))) from None
            except RecursionError:
                deep = PlanError("the statement is nested too deeply", span=span, hint="split it")
                raise deep.located(text, statement=_which(number, len(script))) from None
        return result

    def _execute(self, statement: Statement, span: Span) -> Result:
        match statement:
            case CreateStream() | CreateRelation() | CreateDerivedStream() | CreateFunction():
                entry = define(statement, self._catalog, allow_unbounded=self._unbounded_state)
                self._catalog = self._catalog.added(entry, span=statement.name.span)
                return None
            case CreateQuery() | Select():
                entry = define(statement, self._catalog, allow_unbounded=self._unbounded_state)
                assert isinstance(entry, QueryEntry), "these define queries"
                named = statement.name.span if isinstance(statement, CreateQuery) else None
                self._catalog = self._catalog.added(entry, span=named)
                return Query(entry.name, entry.plan)
            case Drop(kind, name, if_exists):
                if not (if_exists and self._catalog.is_free(name.text, kind)):
                    self._catalog = self._catalog.dropped(name, kind)
                return None
            case Show(kind):
                return _frame(show(self._catalog, kind))
            case Describe(name):
                return _frame(describe_entry(self._catalog.get(name)))
            case Explain(mode, query):
                if mode is not ExplainMode.LOGICAL:
                    raise PlanError(
                        f"EXPLAIN {mode.value} needs an engine, and this version has none yet",
                        span=span,
                        hint="EXPLAIN LOGICAL shows what the query means",
                    )
                return explain(plan_query(query, self._catalog, allow_unbounded=True)[0])
            case _:
                assert_never(statement)


def _which(number: int, statements: int) -> str | None:
    """Which statement of a script failed, and what became of the others."""
    if statements == 1:
        return None
    done = "; the statements before it took effect" if number > 1 else ""
    return f"{number} of {statements}{done}"


def _frame(listing: Listing) -> pl.DataFrame:
    return pl.DataFrame(listing, schema=dict.fromkeys(listing, pl.String))
