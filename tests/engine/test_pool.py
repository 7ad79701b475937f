"""Work in the pool of Polars: the same results and errors, and nobody waits for ever."""

from __future__ import annotations

import subprocess
import sys
from threading import Event, Thread, get_ident

import polars as pl
import pytest

from tidemill.engine.pool import in_pool, looking_on, taking_part


@in_pool
def where() -> int:
    return get_ident()


@in_pool
def fails(text: str) -> None:
    raise ValueError(text)


def test_work_is_done_on_another_thread() -> None:
    assert where() != get_ident()


def test_what_is_in_the_pool_stays_on_its_thread() -> None:
    outer, inner = in_pool(lambda: (get_ident(), where()))()
    assert outer == inner


def test_an_error_is_raised_as_it_is() -> None:
    with pytest.raises(ValueError, match=r"^so it is$") as caught:
        fails("so it is")
    assert caught.value.__context__ is None
    assert where() != get_ident()


def test_work_stays_where_it_is_while_another_thread_could_wait_for_the_pool() -> None:
    end = Event()
    other = Thread(target=end.wait)
    other.start()
    try:
        assert where() == get_ident()
        with looking_on():
            assert where() != get_ident()
        assert where() == get_ident()
    finally:
        end.set()
        other.join()
    assert where() != get_ident()


def test_who_looks_on_takes_part_only_while_nobody_is_in_the_pool() -> None:
    with taking_part(1) as is_free:
        assert is_free
        assert where() == get_ident()
    assert where() != get_ident()
    begun, done, seen = Event(), Event(), list[bool]()

    def look() -> None:
        begun.wait()
        with taking_part(0.01) as is_free:
            seen.append(is_free)
        done.set()

    @in_pool
    def work() -> int:
        begun.set()
        done.wait()
        return get_ident()

    other = Thread(target=look)
    with looking_on():
        other.start()
        assert work() != get_ident()
        other.join()
    assert seen == [False]
    assert where() != get_ident()


CROWD = """
from threading import Thread
from time import monotonic
import polars as pl
from tidemill.engine.pool import in_pool

rows = pl.DataFrame({"a": range(5000), "b": [i % 7 for i in range(5000)]})
until = monotonic() + 2

@in_pool
def work():
    return rows.join(rows.head(50), on="b").group_by("a").agg(pl.len()).sort("a")

def inside():
    while monotonic() < until:
        work()

def outside():  # calls that wait for the pool and have the lock of the interpreter
    while monotonic() < until:
        rows.partition_by("b"); rows.to_arrow(); rows.is_duplicated()

crowd = [Thread(target=one, daemon=True) for one in (inside, inside, outside, outside)]
for one in crowd: one.start()
for one in crowd: one.join(20)
assert not any(one.is_alive() for one in crowd), "they wait for each other"
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_crowd_of_threads_comes_to_its_end(threads: int) -> None:
    run = subprocess.run(  # noqa: S603 — a text of this file
        [sys.executable, "-c", CROWD],
        env={"POLARS_MAX_THREADS": str(threads), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_polars_computes_alike_there() -> None:
    rows = pl.DataFrame({"a": [3, 1, 2], "b": ["x", None, "x"]})

    def ask() -> pl.DataFrame:
        return rows.group_by("b", maintain_order=True).agg(pl.col("a").sum()).join(rows, on="b")

    assert in_pool(ask)().equals(ask())
