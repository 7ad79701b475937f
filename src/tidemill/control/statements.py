"""Statements: each is carried out on the queries of a session, or fails and changes nothing.

A text is a list of statements, one after another. Those before one that fails keep their effect,
and the error says which one it was. What a statement is to be warned of is told before it takes
effect.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

import polars as pl

from tidemill.binder.definitions import define
from tidemill.binder.one_time import bind_question
from tidemill.binder.why import bind_why
from tidemill.catalog.entries import QueryEntry
from tidemill.control.admission import NO_LIMITS, SessionLimits, admitted
from tidemill.control.asking import Asking, asked_text, explained, why_text
from tidemill.control.costing import known_of
from tidemill.control.deciding import decisions_listing
from tidemill.control.explaining import Explaining
from tidemill.control.instances import record_of
from tidemill.control.living import asking, new_version
from tidemill.control.recording import require_recordable
from tidemill.control.refusals import quarantined
from tidemill.control.showing import listed
from tidemill.control.statistics import statistics_listing
from tidemill.errors import ParseError, PlanError, RunError, TidemillError, TidemillWarning
from tidemill.lang.parse import parse_script
from tidemill.lang.statements import (
    AlterProvenance,
    AlterQuery,
    CreateChangingRelation,
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    CreateTable,
    Describe,
    DescribeConnector,
    Drop,
    Explain,
    ExplainMode,
    Lifecycle,
    Name,
    OneTimeQuery,
    PauseQuery,
    ReplanQuery,
    ResumeQuery,
    Select,
    SetAdapt,
    Show,
    ShowConnectors,
    ShowDecisions,
    ShowSettings,
    ShowStatistics,
    StartQuery,
    Statement,
    StopQuery,
)
from tidemill.lang.statements import Why as WhyStatement
from tidemill.lang.unparse import unparse
from tidemill.optimizer.explain.cost import UNKNOWN
from tidemill.optimizer.explain.planned import explain_json, explain_planned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.binder.definitions import Definition
    from tidemill.binder.one_time import Question
    from tidemill.binder.why import BoundWhy
    from tidemill.catalog.entries import Entry
    from tidemill.connectors.connector import Engine
    from tidemill.control.queries import LivingQueries
    from tidemill.control.verdict import Verdict
    from tidemill.errors import Note
    from tidemill.lang.parse import Script
    from tidemill.optimizer.planned import Planned
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.one_time import OneTimeAnswer
    from tidemill.runtime.why import Why

__all__ = ["Carried", "Statements", "script_of"]


Carried: TypeAlias = QueryEntry | pl.DataFrame | str | None
"""What a statement gives: a query that is registered, a table, a text or nothing."""


_CALLER = 6
"""How far above ``warnings.warn`` the call of a method of the session stands, here always."""


def script_of(text: str) -> Script:
    """The statements of a text.

    Raises:
        ParseError: It could not be parsed.
    """
    try:
        return parse_script(text)
    except TidemillError as error:
        raise error.located(text) from None


class Statements:
    """The statements of a session.

    Args:
        queries: What they change and look at.
        engine: Where the queries run.
        unbounded_state: Whether queries are accepted whose state can grow without bound.
        memory: The frames that ``memory`` sources name, as they are at any moment.
        limits: How much the queries may be expected to take.

    Attributes:
        told: What they were warned of so far.
    """

    def __init__(
        self,
        queries: LivingQueries,
        *,
        engine: Engine | None,
        unbounded_state: bool,
        memory: Mapping[str, pl.DataFrame],
        limits: SessionLimits = NO_LIMITS,
    ) -> None:
        self.told: list[str] = []
        self._queries = queries
        self._engine = engine
        self._unbounded_state = unbounded_state
        self._memory = memory
        self._limits = limits

    def carry_out(self, script: Script, text: str, *, asks: bool = True) -> Carried:
        """Carry out statements; the result is that of the last one.

        Args:
            script: The statements.
            text: What they were parsed from.
            asks: Whether what is asked once is answered, and not only bound.

        Raises:
            TidemillError: One could not be bound, planned or carried out.
        """
        result: Carried = None
        for number, (statement, span) in enumerate(script, start=1):
            try:
                if isinstance(statement, OneTimeQuery) and not asks:
                    self._question(statement, text)
                elif isinstance(statement, WhyStatement) and not asks:
                    self._bound_why(statement, text)
                else:
                    result = self._execute(statement, text)
            except TidemillError as error:
                raise error.located(text, statement=_which(number, len(script))) from None
            except RecursionError:
                deep = PlanError("the statement is nested too deeply", span=span, hint="split it")
                raise deep.located(text, statement=_which(number, len(script))) from None
        return result

    def _execute(self, statement: Statement, source: str) -> Carried:
        queries = self._queries
        queries.refresh()
        match statement:
            case (
                CreateStream()
                | CreateRelation()
                | CreateChangingRelation()
                | CreateDerivedStream()
                | CreateFunction()
            ):
                with queries.changing():
                    if queries.find(statement) is None:
                        queries.add(statement, self._define(statement, source))
                return None
            case CreateQuery() | CreateTable() | Select():
                with queries.changing():
                    entry = queries.find(statement)
                    if entry is None:
                        entry = self._define(statement, source)
                        queries.add(statement, self._admitted(entry))
                return queries.look.query_entry(Name(entry.name))
            case OneTimeQuery():
                return self._asked(statement, source).frame
            case WhyStatement():
                found = self._why(statement, source)
                return found.sets() if statement.sets else found.frame
            case Drop():
                with queries.changing():
                    queries.drop(statement)
                return None
            case Explain():
                return self._explain(statement, source)
            case ShowDecisions(name):
                return decisions_listing(queries.look, name, queries.adaptations())
            case ShowSettings():
                return queries.adapting.frame()
            case SetAdapt(adapt):
                with queries.changing():
                    queries.adapt(adapt)
                return None
            case ShowStatistics(name):
                return statistics_listing(queries.catalog, queries.measured(), name)
            case Show() | ShowConnectors() | Describe() | DescribeConnector():
                return listed(statement, queries, lambda: self._asking().kept_from())
            case (
                AlterQuery()
                | ReplanQuery()
                | AlterProvenance()
                | StartQuery()
                | StopQuery()
                | PauseQuery()
                | ResumeQuery()
            ):
                with queries.changing():
                    return self._lives(statement, source, is_done=True).text()
            case _:
                assert_never(statement)

    # Definitions and changes

    def _define(self, statement: Definition, source: str) -> Entry:
        notes: list[Note] = []
        allowed = self._unbounded_state
        catalog, engine = self._queries.catalog, self._engine
        entry = define(statement, catalog, allow_unbounded=allowed, notes=notes, engine=engine)
        if isinstance(entry, QueryEntry) and entry.provenance is not None:
            require_recordable(entry.plan)
        self._warn(notes, source)
        return entry

    def _admitted(self, entry: Entry) -> Entry:
        """A query with the room that it gets; refuse one for which there is none, or tell of it.

        Raises:
            PlanError: It would exceed a limit of the session.
        """
        if not isinstance(entry, QueryEntry):
            return entry
        found, error = self._in_its_room(entry)
        if error is None:
            return found
        if self._limits.refuses:
            raise error
        self.told.append(str(error))
        warnings.warn(str(error), TidemillWarning, stacklevel=_CALLER)
        return found

    def _in_its_room(self, entry: QueryEntry) -> tuple[QueryEntry, PlanError | None]:
        """A query with the room that it gets, and what is said if it is too little."""
        if not self._limits.are_there:
            return entry, None
        queries = self._queries
        return admitted(entry, queries.plan, queries.standing(but=entry.name), self._limits)

    def _warn(self, notes: list[Note], source: str) -> None:
        """Tell what the statement is to be warned of, before it takes effect."""
        for note in notes:
            told = note.text(source)
            self.told.append(told)
            warnings.warn(told, TidemillWarning, stacklevel=_CALLER)

    def _lives(self, statement: Lifecycle, source: str, *, is_done: bool) -> Verdict:
        """Carry out what is asked of a query that lives, or say what it would do.

        Raises:
            TidemillError: There is no such query, or it cannot be done.
        """
        entry = self._queries.look.query_entry(statement.name)
        version = None
        if isinstance(statement, AlterQuery):
            asked = asking(entry, statement)
            bound = self._define(asked, source)
            assert isinstance(bound, QueryEntry), "it defines a query"
            if record_of(entry).provenance is not None:
                require_recordable(bound.plan)
            if is_done:
                bound = self._admitted(bound)
                assert isinstance(bound, QueryEntry), "it defines a query"
                entry = replace(entry, room=bound.room)
            version = new_version(entry, unparse(asked), bound)
        return self._queries.carry_out(statement, entry, version, is_done=is_done)

    def verdict(self, text: str) -> Verdict:
        """What a statement that concerns a query that lives would do; nothing is done.

        Raises:
            TidemillError: It is not exactly one such statement, or cannot be done.
        """
        script = script_of(text)
        statement = script[0][0] if len(script) == 1 else None
        try:
            if not isinstance(statement, Lifecycle):
                raise ParseError(
                    "there is a verdict on one statement that concerns a query that lives",
                    hint="write ALTER, START, STOP, PAUSE or RESUME QUERY",
                )
            return self._lives(statement, text, is_done=False)
        except TidemillError as error:
            raise error.located(text) from None

    # Questions that are asked once

    def ask(self, text: str, at: object, wait: float | None) -> OneTimeAnswer:
        """The answer to a text that is one SELECT.

        Args:
            text: What is asked.
            at: Of which instant; ``None`` for the last one that is known, or for that of AS OF.
            wait: For how many seconds to wait until it is known.

        Raises:
            TidemillError: It is something else, cannot be bound, or cannot be answered.
        """
        script = script_of(text)
        try:
            self._queries.refresh()
            return self._asked(asked_text(script, at), text, wait)
        except TidemillError as error:
            raise error.located(text) from None

    def _asked(
        self, statement: OneTimeQuery, source: str, wait: float | None = None
    ) -> OneTimeAnswer:
        question = self._question(statement, source)
        return self._asking().answer(question, statement.at, wait)

    def _question(self, statement: OneTimeQuery, source: str) -> Question:
        notes: list[Note] = []
        question = bind_question(statement.query, self._queries.catalog, notes)
        self._warn(notes, source)
        return question

    def _asking(self) -> Asking:
        """What there is to answer questions with."""
        queries = self._queries
        return Asking(
            queries.look.shown(),
            queries.past,
            self._current_answer,
            dict(self._memory),
            queries.kept_tables,
        )

    def _current_answer(self, query: str) -> Answer | None:
        """What a query has given when it is asked for it, which may be later."""
        return self._queries.look.current_answer(query)

    # Why

    def why(
        self, text: str, row: Mapping[str, object] | None, wait: float | None, at: object
    ) -> Why:
        """The answer to a text that is one WHY.

        Args:
            text: What is asked.
            row: Values that columns of the rows have that are asked about.
            wait: For how many seconds to wait until the instant is known.
            at: The instant, if the text does not say it.

        Raises:
            TidemillError: It is something else, cannot be bound, or cannot be answered.
        """
        script = script_of(text)
        try:
            statement = why_text(script, at)
            self._queries.refresh()
            return self._why(statement, text, row, wait)
        except TidemillError as error:
            raise error.located(text) from None

    def _why(
        self,
        statement: WhyStatement,
        source: str,
        row: Mapping[str, object] | None = None,
        wait: float | None = None,
    ) -> Why:
        bound = self._bound_why(statement, source)
        return self._explaining().answer(statement, bound, row, wait)

    def _bound_why(self, statement: WhyStatement, source: str) -> BoundWhy:
        notes: list[Note] = []
        bound = bind_why(statement, self._queries.catalog, notes)
        self._warn(notes, source)
        return bound

    def _explaining(self) -> Explaining:
        queries = self._queries
        return Explaining(
            self._asking(), self._quarantine, lambda tables: queries.kept_tables(tables).views
        )

    def _quarantine(self, stream: str) -> pl.DataFrame | None:
        """The rows of a stream that were not taken and are kept, if they are at hand."""
        try:
            return quarantined(self._queries.look.finished(), stream)
        except RunError:
            return None

    # EXPLAIN

    def _explain(self, statement: Explain, source: str) -> str:
        """What runs, or would run, in one of its forms."""
        mode, target = statement.mode, statement.target
        if isinstance(target, Lifecycle):
            verdict = self._lives(target, source, is_done=False)
            return verdict.json() if statement.as_json else verdict.text()
        if isinstance(target, OneTimeQuery):
            return explained(statement, self._question(target, source), self._asking())
        if isinstance(target, WhyStatement):
            lines, told = self._explaining().reads(target, self._bound_why(target, source))
            return json.dumps(told, indent=2) if statement.as_json else "\n".join(lines)
        if isinstance(target, Name):
            planned = self._queries.look.planned(target.text, span=target.span)
        else:
            notes: list[Note] = []
            catalog, engine = self._queries.catalog, self._engine
            # A plan can be looked at, whatever it costs.
            entry = define(target, catalog, allow_unbounded=True, notes=notes, engine=engine)
            self._warn(notes, source)
            assert isinstance(entry, QueryEntry), "these define queries"
            planned = self._queries.plan(self._in_its_room(entry)[0])
        return self.plan_text(planned, mode, as_json=statement.as_json)

    def plan_text(self, planned: Planned, mode: ExplainMode, *, as_json: bool) -> str:
        """A plan as EXPLAIN shows it.

        Raises:
            RunError: It is to be analyzed, and has not been run.
        """
        show = explain_json if as_json else explain_planned
        look = self._queries.look
        figures = look.figures(planned) if mode is ExplainMode.ANALYZE else {}
        known = known_of(self._queries, planned) if mode is ExplainMode.COST else UNKNOWN
        return show(mode, planned, figures, known)


def _which(number: int, statements: int) -> str | None:
    """Which statement of a script failed, and what became of the others."""
    if statements == 1:
        return None
    done = "; the statements before it took effect" if number > 1 else ""
    return f"{number} of {statements}{done}"
