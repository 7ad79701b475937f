"""Sessions that go on from a checkpoint of the local engine, and crashes between their stages."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import define
from tidemill.runtime.clock import now
from tidemill.runtime.files import read_file
from tidemill.runtime.local import intake, sources, stepping
from tidemill.runtime.local.stepping import STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tidemill.runtime.callback import Callback
    from tidemill.runtime.local.stepping import Step

__all__ = ["CrashError", "Taken", "connected", "crashing", "in_small_steps"]


class CrashError(Exception):
    """What a process that is killed does not raise; it leaves the same behind."""


class Taken:
    """A function that gets rows: what it was given, by batch; a batch that comes again is equal."""

    def __init__(self) -> None:
        self.batches: dict[int, pl.DataFrame] = {}

    def __call__(self, rows: pl.DataFrame, number: int) -> None:
        assert self.batches.get(number, rows).equals(rows), f"batch {number} has other rows now"
        self.batches[number] = rows

    def rows(self) -> pl.DataFrame:
        """All of it."""
        return pl.concat(self.batches.values())


@contextmanager
def crashing(step: int, stage: int) -> Iterator[None]:
    """Let a step, counted from here, crash when a stage of it is done."""
    left = [step]

    def crash(_: Step) -> None:
        if left[0] == 0:
            raise CrashError
        left[0] -= 1

    stages: list[Callable[[Step], None]] = [*STAGES]
    stages.insert(stage + 1, crash)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepping, "STAGES", tuple(stages))
        yield


@contextmanager
def in_small_steps(rows: int, piece: int) -> Iterator[None]:
    """Let steps end after so many rows, and files come in pieces of so many."""

    def sliced(*given: object, **named: object) -> Iterator[pl.DataFrame]:
        for frame in read_file(*given, **named):  # type: ignore[arg-type]
            yield from frame.iter_slices(piece)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "_STEP_ROWS", rows)
        patch.setattr(sources, "read_file", sliced)
        yield


def connected(
    root: Path,
    texts: Sequence[str],
    taken: Callback | None = None,
    *,
    partitions: int | None = None,
    clock: Callable[[], int] = now,
) -> tidemill.Session:
    """A session on the checkpoint below a directory: each text is a query into files of its own.

    With a function, the first of them goes there as well.
    """
    session = tidemill.connect(checkpoint=root / "state", partitions=partitions, clock=clock)
    define(session, root / "in")
    for number, text in enumerate(texts):
        session.sql(f"CREATE QUERY q{number} INTO parquet('{root / f'out{number}'}') AS {text}")
    if taken is not None:
        session.callback("taken", taken)
        session.sql(f"CREATE QUERY called INTO callback('taken') AS {texts[0]}")
    return session
