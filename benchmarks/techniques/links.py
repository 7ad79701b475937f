"""Connections between hosts over links of a network, and windows over them (Golab's setting).

In place of the trace that was measured, the sources of connections are about as frequent as in it:
the k-th of 1600 as 1 / k; few connections transfer files, and three times as many log in.
"""

# ruff: noqa: PLR2004 — shares and seeds

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from benchmarks.techniques.sides import Feed, feed_of

__all__ = ["FTP", "LINKS", "TELNET", "Sizes"]

LINKS = dict.fromkeys(("l1", "l2", "l3"), "src BIGINT, dst BIGINT, proto BIGINT, n BIGINT")
FTP, TELNET, OTHER = 0, 1, 2
_SOURCES = 1600
_FILL = 8_000
"""Windows are filled in steps of so many rows."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much there is.

    Attributes:
        windows: How long rows count; a link has one row for each unit of time.
        rows: How many rows of a link count after the window has filled.
        step: How many rows of a link come in a step.
    """

    windows: tuple[int, ...]
    rows: int
    step: int

    def feed(self, window: int, links: int, *, shared: float = 1.0) -> Feed:
        """Links that fill a window, and then so many rows that count.

        Args:
            window: Which window.
            links: How many links.
            shared: Which share of the rows of the second has a source that others have as well.
        """
        whole = window + self.rows
        streams = {
            f"l{i + 1}": _link(whole, 10 * i, shared if i == 1 else 1.0) for i in range(links)
        }
        fill_steps = max(1, window // _FILL)
        return feed_of(streams, self.rows // self.step, fill=window, fill_steps=fill_steps)


def _link(rows: int, seed: int, shared: float) -> pl.DataFrame:
    n = pl.int_range(rows, dtype=pl.Int64, eager=True)
    part = (n.hash(seed=seed + 1) % 1000).cast(pl.Float64) / 1000
    alone = (n.hash(seed=seed + 2) % 1000).cast(pl.Float64) / 1000 >= shared
    src = _zipf(n, seed)
    chosen = pl.select(
        proto=pl.when(part < 0.03).then(FTP).when(part < 0.13).then(TELNET).otherwise(OTHER),
        src=pl.when(alone).then(src + _SOURCES).otherwise(src),
    )
    return pl.DataFrame(
        {
            "src": chosen["src"],
            "dst": (n.hash(seed=seed + 3) % 100).cast(pl.Int64),
            "proto": chosen["proto"].cast(pl.Int64),
            "n": n,
            "at": n,
        }
    )


def _zipf(numbers: pl.Series, seed: int) -> pl.Series:
    """Numbers below ``_SOURCES``, the k-th about as often as 1 / k."""
    uniform = (numbers.hash(seed=seed) % 1_000_003).cast(pl.Float64) / 1_000_003
    return ((pl.Series([float(_SOURCES)]) ** uniform).floor() - 1).cast(pl.Int64)
