"""What the benchmark needs besides the generator, which is ``tidemill/demo/nexmark.py``.

    python benchmarks/nexmark/generator.py [events]

prints how many events a core makes in a second of its work.
"""

# ruff: noqa: T201 — a benchmark prints

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from time import process_time

if __package__ in (None, ""):  # run as a program
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).parents[2]))

import polars as pl

from tidemill.demo.events import SECOND
from tidemill.demo.nexmark import BEGIN, STREAMS, Site
from tidemill.demo.site import write_site

__all__ = ["SIDE_ROWS", "around_midnight", "side_input", "write"]

SIDE_ROWS = 10_000
"""So many rows has the relation that query 13 looks up."""


def around_midnight(events: int, seed: int, *, rate: int, disorder: int = 0) -> Site:
    """A site on which the day changes half-way."""
    midnight = BEGIN + timedelta(days=1)
    return Site(events, seed, rate, disorder, midnight - timedelta(seconds=events // 2 // rate))


def write(directory: Path, site: Site, *, files: int) -> None:
    """Write the streams, each as so many Parquet files, and the relation of query 13."""
    (directory / "side").mkdir(parents=True, exist_ok=True)
    side_input().write_parquet(directory / "side" / "0000.parquet")
    write_site(site, directory, files=files)


def side_input() -> pl.DataFrame:
    """A relation of keys and values."""
    keys = pl.int_range(SIDE_ROWS, dtype=pl.Int64, eager=True)
    return pl.DataFrame({"key": keys, "value": "value " + keys.cast(pl.String)})


def main() -> None:
    """Print the speed."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    for disorder in (0, SECOND):
        began = process_time()
        streams = Site(events, seed=1, disorder=disorder).streams()
        time = process_time() - began
        rows = ", ".join(f"{streams[name].height:,} {name}" for name in STREAMS)
        size = sum(frame.estimated_size("mb") for frame in streams.values())
        print(
            f"{events:,} events out of order by {disorder / SECOND:g} s: {time:.2f} s, "
            f"{events / time / 1e6:.2f} M events/s on one core; {rows}; {size:.0f} MB"
        )


if __name__ == "__main__":
    main()
