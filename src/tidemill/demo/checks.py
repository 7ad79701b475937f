"""Checks: whether independent computations find the same answers.

Another engine must give the same rows, valid from and until the same instants. DuckDB, or the
reference evaluator if DuckDB is not there, must give the same rows at one instant of each answer,
chosen from its middle.
"""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.snapshot import Element, Reference
from tidemill.catalog.entries import QueryEntry
from tidemill.connecting import connect
from tidemill.demo.nexmark import demo_site
from tidemill.demo.questions import QUESTIONS, script
from tidemill.demo.site import declarations, write_site
from tidemill.model.time import from_datetime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidemill.algebra.plan import Plan
    from tidemill.demo.nexmark import Site
    from tidemill.demo.questions import Question
    from tidemill.session import Session

__all__ = ["Check", "at_one_instant", "by_definition", "same_answers"]

Rows: TypeAlias = Counter[tuple[object, ...]]

_SLIDE = 10_000_000
_PREFIX = 600
"""The reference evaluator computes by definition, so it is asked about few events."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was compared, and the questions whose answers differ."""

    what: str
    differing: tuple[str, ...]


def same_answers(session: Session, other: Session, *, what: str) -> Check:
    """Compare every answer of two sessions that have run, at all instants."""
    differing = (
        question.name
        for question in QUESTIONS
        if not session.answer(question.name)
        .results()
        .equals(other.answer(question.name).results(), null_equal=True)
    )
    return Check(what, tuple(differing))


def at_one_instant(session: Session, site: Site, directory: Path) -> Check:
    """Compare each answer at one instant with DuckDB, or else with the reference evaluator."""
    if find_spec("duckdb") is None:
        return by_definition(directory)
    what = "at one instant of each, DuckDB finds the same rows in the tables of all events"
    return _at_one_instant(session, site, _duckdb(site), what=what)


def by_definition(directory: Path) -> Check:
    """Compare answers about the first events with the reference evaluator."""
    site = demo_site(_PREFIX, seed=0)
    write_site(site, directory / "prefix", files=2)
    session = connect(engine="local")
    session.sql(declarations(site, directory / "prefix"))
    session.sql(script())
    session.run()
    what = (
        f"at one instant of each over {_PREFIX} events, the reference evaluator finds the same rows"
        " (DuckDB is not installed)"
    )
    return _at_one_instant(session, site, _reference(session, site), what=what)


def _at_one_instant(
    session: Session, site: Site, ask: Callable[[Question, int], Rows], *, what: str
) -> Check:
    differing: list[str] = []
    for question in QUESTIONS:
        at = _middle(session, question.name)
        at = site.begins() if at is None else at
        rows: Rows = Counter(session.answer(question.name).snapshot(at).rows())
        if rows != ask(question, at):
            differing.append(question.name)
    return Check(what, tuple(differing))


def _middle(session: Session, name: str) -> int | None:
    """An instant at which something in the middle of an answer begins, if it has rows."""
    start = session.answer(name).results()["start"]
    return int(start[len(start) // 2]) if len(start) else None


def _duckdb(site: Site) -> Callable[[Question, int], Rows]:
    database = importlib.import_module("duckdb").connect()
    for name, rows in site.streams().items():
        database.register(name, rows.to_arrow())

    def ask(question: Question, at: int) -> Rows:
        instants = {"at": at, "step": (at + 1) // _SLIDE * _SLIDE - 1}
        sql = question.at_an_instant
        used = {name: time for name, time in instants.items() if f"${name}" in sql}
        return Counter(database.execute(sql, used).fetchall())

    return ask


def _reference(session: Session, site: Site) -> Callable[[Question, int], Rows]:
    streams = {
        name: [
            Element(from_datetime(row[rows.get_column_index("date_time")]), number, row)
            for number, row in enumerate(rows.rows())
        ]
        for name, rows in site.streams().items()
    }
    reference = Reference(streams)
    plans = {question.name: _plan(session, question.name) for question in QUESTIONS}
    return lambda question, at: Counter(reference.snapshot(plans[question.name], at))


def _plan(session: Session, name: str) -> Plan:
    entry = session.catalog.find(name)
    assert isinstance(entry, QueryEntry), "the script defines a query for every question"
    return entry.plan
