"""Other settings of planning on a checkpoint: each query migrates, and its answer is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.restarts_body import COMPARED, LAST
from running.shop import bags, define, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["migrated"]

TEXTS = {
    "total": "SELECT k, SUM(v + t) AS y FROM s [RANGE 20] GROUP BY k",
    "pairs": "SELECT a.v AS x, b.v AS y FROM s a [RANGE 7], s b [RANGE 9], s c [RANGE 5]"
    " WHERE a.k = b.k AND b.k = c.k AND a.v > b.v",
    "absent": "SELECT k, v FROM s [RANGE 8] WHERE v NOT IN (SELECT v FROM s [RANGE 3] WHERE k = 1)",
    "last": "SELECT k, COUNT(*) + MAX(t) AS y FROM s [ROWS 5] GROUP BY k",
}
SETTINGS: list[dict[str, object]] = [
    {"technique": "direct"},
    {"technique": "negative", "joins": "multiway", "optimize": False},
    {"technique": "negative", "joins": "multiway", "optimize": False},
]
FORMS = ("results", "changes")


def migrated(connect: Callable[..., tidemill.Session], root: Path) -> None:
    """Run with other settings on one checkpoint, one after another.

    Args:
        connect: Makes a session on the checkpoint, with settings.
        root: Where everything is.
    """
    source = root / "in"
    source.mkdir()
    bounds = [0, 60, 110, LAST]
    for turn, settings in enumerate(SETTINGS):
        session = connect(**settings)
        define(session, source)
        for name, text in TEXTS.items():
            for form in FORMS:
                into = f"INTO parquet('{root / name / form}', form => '{form}')"
                session.sql(f"CREATE QUERY {name}_{form} {into} AS {text}")
        if turn == 1:
            with pytest.warns(tidemill.TidemillWarning, match="goes on with the plan it had"):
                session.start()
            assert all('"last_' in told for told in session.warnings)
        else:
            session.start()
        for first in range(bounds[turn], bounds[turn + 1], 10):
            write(source, first, first + 10)
            session.await_idle()
        for name in TEXTS:
            instances = {row[2] for row in session.versions(f"{name}_results").rows()}
            has_moved = turn > 0 and name != "last"
            assert len(instances) == (2 if has_moved else 1), f"{name} in turn {turn}"
        session.stop()
    _compare(source, root)


def _compare(source: Path, root: Path) -> None:
    with tidemill.connect() as session:
        define(session, source)
        queries = {name: session.query(text) for name, text in TEXTS.items()}
        session.run()
        right = {name: bags(query.changes(), COMPARED) for name, query in queries.items()}
    for name in TEXTS:
        for form in FORMS:
            files = sorted((root / name / form).glob("batch=*/*.parquet"))
            rows = pl.concat(pl.read_parquet(file, hive_partitioning=False) for file in files)
            if form == "results":
                begun = rows.drop("end").rename({"start": "time"}).with_columns(sign=pl.lit(1))
                gone = rows.drop("start").rename({"end": "time"}).with_columns(sign=pl.lit(-1))
                rows = pl.concat([begun, gone])
            found = bags(rows, COMPARED)
            for time in range(COMPARED):
                assert found[time] == right[name][time], f"{name} as {form} at {time}"
