"""A small shop: two files of bids, and a script about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GROWING", "SCRIPT", "write_shop"]

SCRIPT = """\
CREATE STREAM bid (at TIMESTAMP, item VARCHAR, price INTEGER)
  SOURCE csv('{bids}') ORDERED BY at;
CREATE QUERY top AS
  SELECT item, MAX(price) AS top FROM bid [RANGE 3 MINUTES] GROUP BY item;
"""

GROWING = "SELECT a.price FROM bid [RANGE UNBOUNDED] a, bid [RANGE UNBOUNDED] b WHERE a.at = b.at;"
"""A query that remembers everything."""


def write_shop(directory: Path, *more: str) -> Path:
    """Write the files and the script, with more statements behind it; the path of the script."""
    bids = directory / "bids"
    bids.mkdir()
    (bids / "1.csv").write_text(
        "at,item,price\n2026-03-01T12:00:00,pen,10\n2026-03-01T12:01:00,cup,5\n", encoding="utf-8"
    )
    (bids / "2.csv").write_text("at,item,price\n2026-03-01T12:03:00,pen,8\n", encoding="utf-8")
    script = directory / "shop.sql"
    script.write_text(SCRIPT.format(bids=bids) + "".join(more), encoding="utf-8")
    return script
