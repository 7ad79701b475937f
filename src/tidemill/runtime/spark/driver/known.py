"""What is known of the queries on Spark: their plans, their sinks, and what they have given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.catalog.records import user_name
from tidemill.errors import RunError
from tidemill.model.time import END_OF_TIME, Time
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.sinks import TableSink

if TYPE_CHECKING:
    from tidemill.optimizer.planned import Planned
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.sinks import Sink
    from tidemill.runtime.spark.driver.checks import Checked
    from tidemill.runtime.spark.driver.run_report import RunReport
    from tidemill.runtime.tables import Tables

__all__ = ["Known"]


@dataclass(slots=True)
class Known:
    """The queries that run, or were run last.

    Attributes:
        report: What they have given in memory, and up to when it is known.
        tables: The tables.
        planned: The plans that they run with.
        outdated: Those whose plans were made with other settings, which make others.
        sinks: Where their answers go, by what people call the query; one of which nothing runs any
            more has its sink.
    """

    report: RunReport
    tables: Tables
    planned: dict[str, Planned] = field(default_factory=dict)
    outdated: frozenset[str] = frozenset()
    sinks: dict[str, Sink] = field(default_factory=dict)

    def take(self, checked: Checked) -> None:
        """Know what runs from now on."""
        self.planned, self.outdated = checked.planned, checked.outdated
        users = {user_name(name) for name in checked.planned}
        idle = {name: sink for name, sink in self.sinks.items() if name not in users}
        now = {user_name(name): sink for name, sink in checked.sinks.items()}
        self.sinks = {**idle, **now}

    def answer(self, query: str) -> Answer | None:
        """What a query has given so far: from memory, or from the files it goes to.

        Raises:
            RunError: It goes to where it cannot be read back from.
        """
        sink = self.sinks.get(user_name(query))
        if sink is None:
            return self.report.answer(query)
        if isinstance(sink, FileSink):
            # What instances have given was cut, so that all of it is the answer of the query.
            answer, mine = sink.answer(), [n for n in self.planned if user_name(n) == query]
            answer.known = Time(min(map(self.report.known, mine), default=END_OF_TIME))
            reads = [t for t in map(self.report.last_read, mine) if t is not None]
            answer.last_read = max(reads, default=None)
            return answer
        if isinstance(sink, TableSink):
            return self.tables.answer(sink)
        raise RunError(
            f'the answer of "{query}" goes to its sink and is not kept',
            hint="leave out INTO, or write INTO parquet(…)",
        )
