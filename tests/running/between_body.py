"""Queries that are created between two sessions of a checkpoint, on whatever engine."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from running.shop import NAMED, PAIRS, TOTAL, Bag, bags, define, expected, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import tidemill

__all__ = ["Created", "created_between", "lives", "opened"]

LAST, COMPARED = 160, 150

CREATED = {
    "cut": ("results", "", PAIRS),
    "told": ("changes", "", TOTAL),
    "empty": ("changes", "START FRESH", TOTAL),
    "named": ("results", "START FRESH", NAMED),
}
"""The queries that are created: the forms of their sinks, how they start, and what they ask."""


def opened(connect: Callable[[], tidemill.Session]) -> tidemill.Session:
    """A later session, with what only a process can give."""
    session = connect()
    session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
    return session


def lives(session: tidemill.Session) -> dict[str, str]:
    """From when on the answer of each query is said to be complete."""
    shown = session.sql("SHOW QUERIES")
    assert isinstance(shown, pl.DataFrame)
    return dict(shown.select("name", "complete_from").rows())


def created_between(connect: Callable[[], tidemill.Session], root: Path, keep: str = "") -> None:
    """Create queries when a session has run and no other one does; compare at every instant."""
    write(root / "in", 0, 60)
    with connect() as session:
        define(session, root / "in", keep=keep)
        for name in ("old", "gone"):
            session.sql(f"CREATE QUERY {name} AS {TOTAL}")
        session.start()
        session.await_idle()
    write(root / "in", 60, 70)
    created = opened(connect)  # it is killed before it starts
    for name, (form, start, text) in CREATED.items():
        created.sql(
            f"CREATE QUERY {name} INTO parquet('{root / name}', form => '{form}') {start} AS {text}"
        )
    created.sql("DROP QUERY gone")
    created.sql("CREATE QUERY gone AS SELECT k, v FROM s [RANGE 4]")
    first = lives(created)
    with opened(connect) as session:
        assert lives(session) == first, "what will be is what is said"
        session.start()
        write(root / "in", 70, 100)
        session.await_idle()
        assert lives(session) == first
    with opened(connect) as session:
        assert lives(session) == first
        session.start()
        write(root / "in", 100, LAST)
        session.await_idle()
        versions = {name: session.versions(name) for name in CREATED}
    assert first["old"] == "the beginning"
    assert first["gone"] == ("58" if keep else "63")
    for name, (_, start, text) in CREATED.items():
        ((_, _, _, since, _),) = versions[name].rows()
        is_whole = bool(keep) and not start
        assert since == (58 if is_whole else 60), name
        assert is_whole == (first[name] == str(since)), "windows are full at once"
        Created(root, since, int(first[name])).compare(name, text)


class Created:
    """What a query is to give that was created in between.

    Args:
        root: Where everything is.
        since: The instant from which on it answers.
        complete: The instant from which on its windows are full.
    """

    def __init__(self, root: Path, since: int, complete: int) -> None:
        self._root, self._since, self._complete = root, since, complete

    def compare(self, name: str, text: str) -> None:
        """Compare what its sink has got, at every instant."""
        found = _delivered(self._root / name)
        for time, wanted in enumerate(self._wanted(text)):
            assert found[time] == wanted, f"{name} at {time}"

    def _wanted(self, text: str) -> list[Bag]:
        """Nothing, then what it says of the rows that are for it, then what it says of all."""
        later = self._root / f"from {self._since}"
        if not later.exists():
            write(later, self._since, LAST)
        some, all_ = (bags(expected(place, text), COMPARED) for place in (later, self._root / "in"))
        since, complete = self._since, self._complete
        return [Counter[tuple[object, ...]]()] * since + some[since:complete] + all_[complete:]


def _delivered(directory: Path) -> list[Bag]:
    """What is in the files of a sink, at every instant."""
    files = sorted(directory.glob("batch=*/*.parquet"))
    whole = pl.concat(pl.read_parquet(file, hive_partitioning=False) for file in files)
    if "sign" in whole.columns:
        return bags(whole, COMPARED)
    begun = whole.drop("end").rename({"start": "time"}).with_columns(sign=pl.lit(1))
    gone = whole.drop("start").rename({"end": "time"}).with_columns(sign=pl.lit(-1))
    return bags(pl.concat([begun, gone]), COMPARED)
