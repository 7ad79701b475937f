"""Read-only sessions: they look at a checkpoint while a pipeline may go on with it.

No lock is taken and nothing is written, ever. What is registered is read anew at each statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tidemill.control.between import shown_between, standing
from tidemill.control.checkpoint_past import engine_of
from tidemill.control.kept import KeptCatalog
from tidemill.control.kept_plans import plan_kept
from tidemill.control.look import Look
from tidemill.control.queries import LivingQueries
from tidemill.errors import RunError
from tidemill.runtime.adaptation_log import AdaptationLog
from tidemill.runtime.opening import is_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.entries import QueryEntry
    from tidemill.catalog.listing import Listing
    from tidemill.connectors.connector import Engine
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.runtime.runs import Runs

__all__ = ["ReadOnlyQueries", "refusal"]


def refusal() -> RunError:
    """The error that says that a session only reads."""
    return RunError(
        "this session is read-only: it neither runs queries nor changes them",
        hint="SELECT … AS OF, session.ask, SHOW, DESCRIBE and EXPLAIN are for it; to change"
        " something, connect without read_only, when no other session has the checkpoint",
    )


class ReadOnlyQueries(LivingQueries):
    """The queries of a checkpoint, to be looked at.

    Args:
        directory: The checkpoint.
        planner: How a query would be computed.
        engine: Where its queries run, if it does not say so itself.

    Raises:
        RunError: There is no checkpoint, or it cannot be read.
    """

    is_read_only = True

    def __init__(
        self, directory: Path, planner: Callable[[QueryEntry, Statistics], Planned], engine: Engine
    ) -> None:
        super().__init__(planner, engine=engine)
        self._directory = directory.resolve()
        self._log = AdaptationLog(self._directory)
        self._default = engine
        self.refresh()

    def refresh(self) -> None:
        """Know what is registered now."""
        if not is_checkpoint(self._directory):
            raise RunError(
                f'there is no checkpoint at "{self._directory}"',
                hint="connect(checkpoint=…) without read_only makes one",
            )
        engine = engine_of(self._directory) or self._default
        self.catalog = KeptCatalog(self._directory, engine).look()

    @property
    def directory(self) -> Path:
        """The checkpoint."""
        return self._directory

    def past(self) -> Path:
        """The checkpoint."""
        return self._directory

    @property
    def look(self) -> Look:
        """What can be seen of the queries now."""
        return _Look(self.catalog, None, None, {}, self.plan, is_running=False, shown=self._shown)

    def plan(self, query: QueryEntry) -> Planned:
        """How a query is computed that runs on the checkpoint, or how it would be computed.

        Raises:
            RunError: Its plan is damaged, or cannot be read.
        """
        return plan_kept(self._directory, query) or super().plan(query)

    def _shown(self) -> Catalog:
        """What is registered, with the instants from which queries answer, or will."""
        kept = KeptCatalog(self._directory, engine_of(self._directory) or self._default)
        return shown_between(
            self.catalog, kept.known(), lambda: standing(self._directory, self.catalog)
        )

    def changing(self) -> NoReturn:
        """Refuse it."""
        raise refusal()

    def run(self, *_: object, **__: object) -> NoReturn:
        """Refuse it."""
        raise refusal()

    def start(self, *_: object, **__: object) -> NoReturn:
        """Refuse it."""
        raise refusal()

    def await_idle(self) -> NoReturn:
        """Refuse it."""
        raise refusal()

    def carry_out(self, *_: object, **__: object) -> NoReturn:
        """Refuse it."""
        raise refusal()


class _Look(Look):
    """What can be seen where nothing runs."""

    __slots__ = ()

    def listing(self) -> Listing:
        """The queries; another process would have to be asked what they do."""
        found = dict(super().listing())
        return {**found, "state": ["unknown"] * len(found["name"])}

    def finished(self) -> Runs:
        """Refuse it."""
        raise refusal()

    def _latest(self) -> Runs:
        raise refusal()
