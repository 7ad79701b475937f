"""The pool: operators run on a thread of Polars' own, one at a time.

Most calls of Polars hand their work over to a thread of its pool and wait. Where rows are few that
takes several times as long as the work (design note 0006). Who is on such a thread already hands
nothing over.

Laws:
- What a function gives or raises in the pool is what it gives or raises elsewhere.
- Nobody waits for ever. Some calls of Polars wait for its pool while they have the lock of the
  interpreter: were the function there and waiting for the lock, both would wait. So it goes into
  the pool only if no other thread of Python could make such a call; else it runs where it is. A
  thread that is none of Python's counts, too, once it has asked for ``current_thread()``, as a log
  does: who logs in the pool does so once. A thread that looks on takes part only while no function
  is in the pool, and none goes there meanwhile.

What is known of threads is known to the process, so that is where it is kept.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from threading import Lock, active_count, local
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["in_pool", "looking_on", "taking_part"]

P = ParamSpec("P")
T = TypeVar("T")


class _Here(local):
    """Whether this thread is one of the pool."""

    is_pool = False


_HERE, _LOCK = _Here(), Lock()
_ONLOOKERS = [0]
_TURN = Lock()
"""Taken by the function in the pool, or by the thread that looks on and takes part for a while."""


@contextmanager
def looking_on(threads: int = 1) -> Iterator[None]:
    """This thread, or so many, make no call of Polars while they are in here."""
    with _LOCK:
        _ONLOOKERS[0] += threads
    try:
        yield
    finally:
        with _LOCK:
            _ONLOOKERS[0] -= threads


@contextmanager
def taking_part(patience: float) -> Iterator[bool]:
    """Let a thread that looks on make calls of Polars; functions stay out of the pool meanwhile.

    Args:
        patience: How many seconds to wait for the end of a function that is in the pool.

    Yields:
        Whether it may: not if that function has not ended.
    """
    is_free = _TURN.acquire(timeout=patience)
    try:
        yield is_free
    finally:
        if is_free:
            _TURN.release()


def in_pool(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, run on a thread of Polars' pool if that is safe."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if _HERE.is_pool or active_count() - _ONLOOKERS[0] > 1:
            return function(*args, **kwargs)
        if not _TURN.acquire(blocking=False):
            return function(*args, **kwargs)
        try:
            return _handed_over(lambda: function(*args, **kwargs))
        finally:
            _TURN.release()

    return run


def _handed_over(work: Callable[[], T]) -> T:
    """Run on a thread of the pool: columns are computed there if there are several."""
    given: list[T] = []
    raised: list[BaseException] = []

    def column(values: pl.Series, **_: object) -> pl.Series:
        _HERE.is_pool = True
        try:
            given.append(work())
        except BaseException as error:  # noqa: BLE001 — it is raised again, where it belongs
            raised.append(error)
        finally:
            _HERE.is_pool = False
        return values

    one = pl.DataFrame({"a": [0], "b": [0]})
    one.select(pl.col("a").map_batches(column, return_dtype=pl.Int64), pl.col("b") + 1)
    if raised:
        raise raised[0]
    return given[0]
