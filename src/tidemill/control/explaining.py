"""Explaining: why rows of an answer are there, from what streams have kept.

It is asked like a question (``asking.py``): of one instant that is known, at one boundary. What the
query computes is computed again, over the kept rows that can matter at the instant, with hidden
columns (``provenance/``). So nothing needs to be done while the query runs, and what is said is the
same on both engines, in every process, and after every restart.

Law: the rows of the answer are those that ``AS OF`` gives at the instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.plan import Relation, Source, Union
from tidemill.binder.one_time import Question
from tidemill.binder.times import time_type
from tidemill.catalog.entries import QueryEntry
from tidemill.control.tracing import Kept
from tidemill.errors import RunError
from tidemill.model.batch import END, START, polars_type
from tidemill.model.time import END_OF_TIME, Time, time_text
from tidemill.model.types import BIGINT
from tidemill.provenance.lines import flattened, stepwise
from tidemill.provenance.trace import COPIES, NODE, trace
from tidemill.runtime.why import Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.binder.why import BoundWhy
    from tidemill.control.asked import Asked
    from tidemill.control.asking import Asking
    from tidemill.model.types import DataType
    from tidemill.provenance.trace import Trace

__all__ = ["Explaining"]


@dataclass(frozen=True, slots=True)
class Explaining:
    """What a session has to explain answers with.

    Attributes:
        asking: What it has to answer questions with.
    """

    asking: Asking

    def why(
        self, bound: BoundWhy, at: Time | None, *, flat: bool = False, wait: float | None = None
    ) -> Why:
        """Why the rows of an answer are there.

        Args:
            bound: What is asked.
            at: Of which instant; ``None`` for the last one that is known.
            flat: Whether only rows of streams are told, and not what was made between.
            wait: For how many seconds to wait for the instant to be known.

        Raises:
            RunError: The instant is not known, or what is needed is not kept.
        """
        return self.asking.when_known(lambda: self._why(bound, at, flat=flat), wait)

    def _why(self, bound: BoundWhy, at: Time | None, *, flat: bool) -> Why:
        question = _question(bound.plan)
        asked = self.asking.asked(question)
        time = _instant(asked, question, at)
        plan = _plan(asked, bound, time)
        kept = Kept(asked)
        ends = _ends(bound)
        found = trace(plan, bound.condition, time, kept.elements, ends)
        if flat:
            lines = flattened(found, kept.rows_of)
        else:
            lines = stepwise(found, kept.rows_of, ends)
        times = time_type(plan, self.asking.catalog)
        return Why(
            _typed(lines, times),
            _typed(_answers(found, plan), times),
            time,
            asked.known(question),
            asked.past.batch,
            _streams(found, lines),
        )


def _question(plan: Plan) -> Question:
    """The question that asks for all rows of a plan."""
    return Question(plan, plan.schema.names, (), None, 0, {})


def _instant(asked: Asked, question: Question, at: Time | None) -> Time:
    """The instant that is asked of, which is known.

    Raises:
        RunError: It is not known, or streams do not keep their past.
    """
    asked.require_kept(question)
    time = asked.now(question) if at is None else at
    asked.require_known(question, time)
    return time


def _plan(asked: Asked, bound: BoundWhy, time: Time) -> Plan:
    """What is computed at the instant: of a query that was changed, what its parts compute."""
    if not isinstance(bound.entry, QueryEntry):
        return bound.plan
    plans = asked.plans(bound.entry, time)
    if not plans:
        raise RunError(
            f'query "{bound.entry.name}" answers nothing at {time_text(time)}: it was stopped',
            hint="ask for an instant at which it runs; SHOW QUERIES says what has become of it",
        )
    return reduce(Union, plans)


def _ends(bound: BoundWhy) -> Mapping[Plan, str]:
    return {} if bound.down_to is None else {bound.down_to.plan: bound.down_to.name}


def _answers(found: Trace, plan: Plan) -> pl.DataFrame:
    return found.answers.select(
        pl.col(NODE).alias("answer"),
        pl.struct(plan.schema.names).alias("row"),
        pl.col(COPIES).alias("copies"),
        pl.col(START).alias("start"),
        pl.col(END).alias("end"),
    )


def _typed(frame: pl.DataFrame, time: DataType) -> pl.DataFrame:
    """The same with times of the type that the readers of the answer have."""
    if time == BIGINT:
        return frame
    times = pl.col("start", "end")
    return frame.with_columns(pl.when(times < END_OF_TIME).then(times).cast(polars_type(time)))


def _streams(found: Trace, lines: pl.DataFrame) -> dict[str, dict[str, str]]:
    """The columns of each stream with rows in the lines, and what structs call them."""
    fields = lines.schema["row"]
    assert isinstance(fields, pl.Struct), "a row is a struct"
    names = {one.name for one in fields.fields}
    told: dict[str, dict[str, str]] = {}
    for one in found.found:
        plan = one.leaf.plan
        assert isinstance(plan, Source | Relation), "it has ids"
        told[plan.name] = {
            name: name if name in names else f"{plan.name}.{name}" for name in plan.schema.names
        }
    return told

