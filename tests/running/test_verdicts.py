"""The verdict is true: the answer is exact from the instant that it names on, and not before it.

Changes are drawn, of any kind and several at once: windows grow and shrink, slide more
or less, filters, columns, aggregates, group keys and joins come and go. A row comes at every
instant, and no two sums of them are equal for long, so that a window that lacks one row, or has one
too many, gives another answer. What is right is what a bounded run of each version gives.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.shop import Bag, bags, define, write
from tidemill.lang.statements import Change

if TYPE_CHECKING:
    from pathlib import Path


SESSIONS, CHANGES = 4, {"some": 25, "all": 50}
"""How many sessions there are, and how many changes in each; ``make soak`` has all of them."""

BEFORE, PAST = 60, 150
"""How many rows come before the change, and up to when answers are compared."""


def drawn(random: Random) -> str:
    """A query whose columns are the same for all; its answer depends on every row it reads."""
    size = random.randint(2, 20)
    slide = f" SLIDE {random.randint(1, size)}" if random.random() < 0.5 else ""
    window = f"[RANGE {size}{slide}]"
    where = random.choice(["", "", " WHERE a.v > 2", " WHERE a.k < 2", " WHERE a.v <> 7"])
    key = random.choice(["a.k", "a.k", "a.v % 2", "a.v * 0"])
    value = random.choice(["SUM(a.v + a.t)", "SUM(a.t)", "COUNT(*) + MAX(a.t)", "MIN(a.t)"])
    source = f"s a {window}"
    if random.random() < 0.2:
        source += f" JOIN s b [RANGE {random.randint(1, 6)}] ON a.k = b.k"
    return f"SELECT {key} AS x, {value} AS y FROM {source}{where} GROUP BY {key}"


def undisturbed(directory: Path, texts: list[str]) -> list[list[Bag]]:
    """What bounded runs give."""
    with tidemill.connect() as session:
        define(session, directory)
        queries = [session.query(text) for text in texts]
        session.run()
        return [bags(query.changes(), PAST) for query in queries]


def _sessions() -> list[object]:
    """What is tried every time, and what ``make soak`` tries: each seed with each way to keep."""
    keeps = ["", "KEEP 15", "KEEP ALL"]
    some = [(seed, keeps[seed % 3], "some") for seed in range(SESSIONS)]
    every = [(seed, keep, "all") for seed in range(SESSIONS) for keep in keeps]
    return [*some, *(pytest.param(*one, marks=pytest.mark.soak) for one in every)]


@pytest.mark.parametrize(("seed", "keep", "changes"), _sessions())
def test_the_instant_that_the_verdict_names_is_the_first_exact_one(
    tmp_path: Path, seed: int, keep: str, changes: str
) -> None:
    random = Random(seed)  # noqa: S311 — the same changes every time
    pairs = [(drawn(random), drawn(random)) for _ in range(CHANGES[changes])]
    write(tmp_path, 0, BEFORE)
    told: list[int] = []
    ways = list(Change) if keep else [one for one in Change if one is not Change.EXACT]
    with tidemill.connect() as session:
        define(session, tmp_path, keep=keep)
        queries = [session.query(f"CREATE QUERY q{n} AS {old}") for n, (old, _) in enumerate(pairs)]
        session.start()
        session.await_idle()
        for n, (_, new) in enumerate(pairs):
            statement = f"ALTER QUERY q{n} AS {new} USING {random.choice(ways).value}"
            verdict = json.loads(str(session.sql(f"EXPLAIN FORMAT JSON {statement}")))
            assert f"exact from     {verdict['exact_from']}\n" in str(session.sql(statement))
            told.append(verdict["exact_from"])
        write(tmp_path, BEFORE, PAST + 50)
        session.await_idle()
        given = [bags(query.changes(), PAST) for query in queries]
    right = [undisturbed(tmp_path, list(texts)) for texts in zip(*pairs, strict=True)]
    differ = 0
    for n, first in enumerate(told):
        assert BEFORE <= first < PAST, pairs[n]
        for time in range(first, PAST):
            assert given[n][time] == right[1][n][time], f"{pairs[n]} at {time}, exact from {first}"
        before = first - 1
        if given[n][before] != right[1][n][before]:
            differ += 1
        else:
            is_same = right[0][n][before] == right[1][n][before]
            assert is_same or not right[1][n][before], f"{pairs[n]}: {first}"
    assert differ > len(pairs) // 2, "nearly everywhere something differs"
