"""The ticker: lets time pass while nothing comes.

Without rows there is no batch, and without a batch no time passes: windows over streams that are
ordered by arrival would not empty, and a stream that may be idle would hold others back. So while
the pipeline runs, a word is put into the control stream when time could change an answer:

- there is a stream without a time of its own, and something is remembered;
- a stream that may be idle has been silent for as long as it takes, and is read with others.

In the first case there is a tick when the last row leaves a window (``clear``), so that an answer
empties when it is due. For rows that leave before it, the longer nothing has come, the fewer ticks
there are: one each quarter of the silence, at least each ten seconds, and not more than one a
second.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from tidemill.algebra.reach import clear
from tidemill.algebra.tree import streams_of, walk
from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.runtime.spark.driver.control import Control, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.entries import StreamEntry
    from tidemill.runtime.spark.state.batch_log import BatchLog

__all__ = ["Moment", "Ticker", "time_matters"]

_SECOND = 1_000_000
_LEAST_PAUSE, _MOST_PAUSE = _SECOND, 10 * _SECOND
_LOOK = 0.1
"""How often it is found out whether time matters, in seconds."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What the driver knows at a moment; times are in microseconds.

    Attributes:
        now: What time it is.
        batch: When the last batch began.
        came: When something last came on each stream, or the first batch began.
        remembers: Whether something is remembered.
        ends: When the last rows of streams without a time of their own leave windows.
    """

    now: int
    batch: int
    came: Mapping[str, int]
    remembers: bool
    ends: Collection[int] = ()


def time_matters(
    streams: Mapping[str, StreamEntry], groups: Iterable[frozenset[str]], moment: Moment
) -> bool:
    """Whether an answer may change because time has passed since the last batch.

    Args:
        streams: The streams that are read.
        groups: Those that are read together.
        moment: What is known.
    """
    since = moment.now - moment.batch
    if moment.remembers and any(moment.batch < end <= moment.now for end in moment.ends):
        return True
    if since < _LEAST_PAUSE:
        return False
    if moment.remembers and any(stream.time_column is None for stream in streams.values()):
        silence = moment.now - max(moment.came.values())
        if since >= min(max(silence // 4, _LEAST_PAUSE), _MOST_PAUSE):
            return True
    together = {name for group in groups if len(group) > 1 for name in group}
    for name, stream in streams.items():
        if stream.idle_after is not None and name in together:
            idle_from = moment.came[name] + stream.idle_after
            if moment.batch < idle_from <= moment.now:
                return True
    return False


class Ticker:
    """Puts ticks into the control stream.

    Args:
        streams: The streams that are read.
        groups: Those that are read together.
        control: The control stream.
        batch_log: When batches have begun.
        clock: What time it is, in microseconds since 1970.
        seen: When something came on streams since the start, in the time of batches, and how many
            rows are remembered, if there was a batch.
        plans: What the queries mean.
    """

    def __init__(  # noqa: PLR0913 — all that tells whether time matters
        self,
        streams: Mapping[str, StreamEntry],
        groups: frozenset[frozenset[str]],
        control: Control,
        batch_log: BatchLog,
        *,
        clock: Callable[[], int],
        seen: Callable[[], tuple[Mapping[str, int], int | None]],
        plans: Iterable[Plan] = (),
    ) -> None:
        self.error: RunError | None = None
        self._streams = streams
        self._control = control
        self._ends: tuple[object, dict[str, int], set[int]] = None, {}, set()
        self.follow(groups, plans)
        self._batch_log = batch_log
        self._clock = clock
        self._seen = seen
        self._batch: int | None = batch_log.latest[0]
        self._silent_from = clock()
        self._ticked: int | None = None
        self._ended = Event()

    def follow(self, groups: frozenset[frozenset[str]], plans: Iterable[Plan]) -> None:
        """Let time pass for other queries from now on, which read the same streams.

        Args:
            groups: The streams that are read together.
            plans: What the queries mean.
        """
        self._groups = groups
        timeless = {name for name, stream in self._streams.items() if stream.time_column is None}
        read = {part: streams_of(part) & timeless for plan in plans for part in walk(plan)}
        self._parts = [(part, streams) for part, streams in read.items() if streams]

    def start(self, failed: Callable[[], None]) -> None:
        """Tick when time matters, until it is closed.

        Args:
            failed: What is done if something is wrong.
        """

        def run() -> None:
            while not self._ended.wait(_LOOK):
                try:
                    self.look()
                except Exception as error:  # noqa: BLE001 — the caller of await_idle is told
                    self.error = RunError(
                        f"a tick cannot be written to the checkpoint: {error}",
                        hint="make room and start again; nothing is lost",
                    )
                    failed()
                    return

        if any(s.time_column is None or s.idle_after is not None for s in self._streams.values()):
            Thread(target=run, name="tidemill-ticker", daemon=True).start()

    def look(self) -> None:
        """Tick if time matters and the last tick has been heard."""
        number, began = self._batch_log.latest
        if self._batch is not None and number > self._batch:
            # Partitions hear in their first batch of a stream on which nothing ever came.
            self._batch, self._silent_from = None, max(self._silent_from, began)
        if self._ticked == number:
            return
        seen, remembered = self._seen()
        came = {name: seen.get(name, self._silent_from) for name in self._streams}
        # Of what was left when the pipeline was stopped nothing is known yet.
        remembers = number >= 0 if remembered is None else remembered > 0
        last = max(began, min(came.values()))
        moment = Moment(self._clock(), last, came, remembers, self._window_ends())
        if time_matters(self._streams, self._groups, moment):
            self._control.say(Word.TICK)
            self._ticked = number

    def _window_ends(self) -> set[int]:
        """When the last rows of streams without a time of their own leave windows."""
        newest, parts = self._batch_log.newest, self._parts  # a change may give others meanwhile
        of_parts, of_newest, ends = self._ends
        if parts is not of_parts or newest != of_newest:
            ends = set[int]()
            for part, streams in parts:
                came = [newest[name] for name in streams if name in newest]
                end = clear(part, Time(max(came) + 1)) if came else None
                ends |= set() if end is None else {end}
            self._ends = parts, dict(newest), ends
        return ends

    def close(self) -> None:
        """Tick no more."""
        self._ended.set()
