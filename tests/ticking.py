"""Runs a query by the clock: rows come in at their time, and the watermark is the time.

At the tick t the rows of t come in, and all before t is certain. What a query gives is kept with
the tick at which it left, so that a test can say how late it was.

A stream has the columns ``k`` and ``n``, a word and a number; a relation has the column ``k``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from plans import implement
from tidemill.algebra.plan import Aggregate, AntiJoin, Difference, Intersect, Join, JoinKind, Plan
from tidemill.algebra.tree import walk
from tidemill.catalog.entries import RelationEntry
from tidemill.engine.engine import Flow
from tidemill.engine.ingest import relation_flow
from tidemill.model.batch import END, ID, SIGN, START, TIME, polars_schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.optimizer.physical.techniques import Technique
from tidemill.physical.fragments import build_graph
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from tidemill.algebra.snapshot import Bag, Row

__all__ = ["Arrivals", "Leaving", "Run", "plan_of", "run_by_the_clock", "word"]

Arrivals: TypeAlias = "Mapping[str, Sequence[tuple[int, tuple[str, int]]]]"
"""The rows of each stream, with their times."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """Something that left a query: an element, or a change.

    Attributes:
        tick: When it left.
        row: The row.
        time: From when on it is there, or there no more.
        end: Up to when an element is there; ``None`` for a change.
        sign: How many times more, or less, it is there.
    """

    tick: int
    row: Row
    time: int
    end: int | None
    sign: int


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a query.

    Attributes:
        plan: What was asked.
        technique: How it was run.
        leaving: What left it, in that order.
    """

    plan: Plan
    technique: Technique
    leaving: list[Leaving] = field(default_factory=list)

    @property
    def sweeps(self) -> int:
        """How many operators, one above the other, let elements leave when they have ended.

        One waits for the end of each of its elements, another above it for what that one holds
        back.
        """
        if self.technique is not Technique.DIRECT:
            return 0
        return sum(map(_is_swept, walk(self.plan)))

    @property
    def changes(self) -> list[Leaving]:
        """What left in signed form."""
        return [one for one in self.leaving if one.end is None]

    def answer(self, time: int, *, known: int = END_OF_TIME) -> Bag:
        """The rows of an instant, by what had left up to a tick; none less often than never."""
        bag: Bag = Counter()
        for one in self.leaving:
            if one.tick <= known and one.time <= time and (one.end is None or time < one.end):
                bag[one.row] += one.sign
        assert min(bag.values(), default=0) >= 0, f"at {time} only what is there is withdrawn"
        return Counter({row: count for row, count in bag.items() if count})


def _is_swept(part: Plan) -> bool:
    """Whether what a part of a plan gives is swept, if it is in interval form."""
    is_outer = isinstance(part, Join) and part.kind is not JoinKind.INNER
    return is_outer or isinstance(part, Aggregate | AntiJoin | Difference | Intersect)


def word(rows: str) -> list[tuple[int, tuple[str, int]]]:
    """Rows in the notation of the paper: ``"a@2 d@4"``, or with numbers ``"a:5@2"``.

    >>> word("a@2 d:7@4")
    [(2, ('a', 0)), (4, ('d', 7))]
    """
    found = []
    for part in rows.split():
        value, _, time = part.partition("@")
        key, _, number = value.partition(":")
        found.append((int(time), (key, int(number or 0))))
    return found


def plan_of(text: str, streams: Iterable[str], relations: Iterable[str] = ()) -> Plan:
    """What a query over such streams and relations asks."""
    return _session(streams, relations, text)[1]


def run_by_the_clock(  # noqa: PLR0913 — a test says everything
    text: str,
    technique: Technique,
    streams: Arrivals,
    relations: Mapping[str, Sequence[Row]] | None = None,
    *,
    last: int,
    late: int = 0,
) -> Run:
    """What a query gives tick by tick, and in the end.

    Args:
        text: The query.
        technique: How it is run.
        streams: What comes in.
        relations: What is known.
        last: The last tick before the end of the streams.
        late: By how many ticks everything is held up before it comes in, and the watermark too.
    """
    relations = relations or {}
    session, plan = _session(streams, relations, text)
    made = implement(optimize(plan), max_delay=None, technique=technique)
    runner = LocalRunner(build_graph({"q": made}))
    schemas = {input_.name: polars_schema(input_.schema) for input_ in runner.graph.inputs}
    run = Run(plan, technique)
    for tick in [*range(1, last + 1), END_OF_TIME]:
        now = tick if tick == END_OF_TIME else max(0, tick - late)
        flows = {}
        for name, types in schemas.items():
            if name in relations:
                entry = session.catalog.find(name)
                assert isinstance(entry, RelationEntry), f"{name} is a relation"
                frame = pl.DataFrame(list(relations[name]), schema=types, orient="row")
                flows[name] = relation_flow(entry, frame if tick == 1 else frame.clear())
            else:
                came = [(*row, at, at, at + 1, 0) for at, row in streams[name] if at == now]
                whole = {**types, START: pl.Int64(), END: pl.Int64(), ID: pl.Int64()}
                batch = pl.DataFrame(came, schema=whole, orient="row")
                flows[name] = Flow([batch], Time(now))
        for out in runner.step(flows)["q"]:
            run.leaving.extend(_leaving(tick, plan, out))
    return run


def _leaving(tick: int, plan: Plan, out: pl.DataFrame) -> Iterable[Leaving]:
    is_signed = SIGN in out.columns
    times = (TIME, SIGN) if is_signed else (START, END)
    for *row, time, other in out.select(*plan.schema.names, *times).iter_rows():
        end, sign = (None, other) if is_signed else (other, 1)
        yield Leaving(tick, tuple(row), time, end, sign)


def _session(
    streams: Iterable[str], relations: Iterable[str], text: str
) -> tuple[tidemill.Session, Plan]:
    session = tidemill.connect()
    for name in streams:
        session.sql(
            f"CREATE STREAM {name} (k VARCHAR, n BIGINT, at BIGINT) "
            f"SOURCE memory('{name}') ORDERED BY at"
        )
    for name in relations:
        session.sql(f"CREATE RELATION {name} (k VARCHAR) SOURCE memory('{name}')")
    query = session.sql(text)
    assert isinstance(query, tidemill.Query), "the text is a query"
    return session, query.plan
