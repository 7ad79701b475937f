# ruff: noqa: INP001, T201 — a program on its own that talks to a person
"""Draws ``validity.svg``: the bids of a stream, a query's answer over time, and one snapshot.

The bars are what ``results()`` of the query of the README gives, the line is what ``snapshot()``
gives. Run this file to write the picture anew; ``tests/test_pictures.py`` compares the two.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from html import escape
from pathlib import Path

import polars as pl

import tidemill

PICTURE = Path(__file__).with_name("validity.svg")

BIDS = (
    (0, "pen", 10),
    (1, "cup", 5),
    (2, "pen", 7),
    (3, "pen", 8),
    (4, "pen", 6),
    (5, "cup", 9),
)
"""Minute, item, price."""

NOON = datetime(2026, 3, 1, 12)  # noqa: DTZ001 — a TIMESTAMP has no zone
QUERY = "SELECT item, MAX(price) AS top FROM bid [RANGE 3 MINUTES] GROUP BY item"
RANGE = 3
MINUTES = 8
LOOK = 3.5
"""When the snapshot is taken, in minutes."""

WIDTH, LEFT, RIGHT = 860, 172, 28
STEP = (WIDTH - LEFT - RIGHT) / MINUTES
BIDS_TOP, BID_HEIGHT = 62, 21
ANSWER_TOP = BIDS_TOP + len(BIDS) * BID_HEIGHT + 22
ANSWER_HEIGHT, BAR = 44, 32
ITEMS = ("pen", "cup")
AXIS = ANSWER_TOP + len(ITEMS) * ANSWER_HEIGHT + 10
HEIGHT = AXIS + 62

STYLE = """\
  text { font: 13px ui-sans-serif, system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif }
  .card { fill: #ffffff; stroke: #d8dee6 }
  .title { fill: #16202b; font-weight: 600 }
  .note { fill: #5c6b7a; font-size: 12px }
  .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 12px }
  .grid { stroke: #e9edf2; stroke-width: 1 }
  .axis { stroke: #aeb9c5; stroke-width: 1.5 }
  .pen { fill: #0d9488 } .cup { fill: #d97706 }
  .faint { opacity: .18 }
  .value { fill: #ffffff; font-weight: 700; font-size: 15px }
  .price { fill: #ffffff; font-weight: 700; font-size: 11px }
  .halo { stroke: #ffffff; stroke-width: 5; opacity: .75 }
  .look { stroke: #7c3aed; stroke-width: 2; stroke-dasharray: 5 4 }
  .found { fill: #7c3aed }
  .said { fill: #ffffff; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #10171f; stroke: #2b3744 }
    .title { fill: #e8eef5 }
    .note { fill: #93a3b4 }
    .grid { stroke: #1d2731 }
    .axis { stroke: #4a5a6a }
    .pen { fill: #14b8a6 } .cup { fill: #f59e0b }
    .faint { opacity: .24 }
    .value, .price { fill: #08110f }
    .halo { stroke: #10171f }
    .look { stroke: #a78bfa }
    .found { fill: #a78bfa }
    .said { fill: #120a24 }
  }"""


def asked() -> tidemill.Query:
    """The query of the README, run on its bids."""
    session = tidemill.connect()
    rows = [(NOON + timedelta(minutes=minute), item, price) for minute, item, price in BIDS]
    session.put("bids", pl.DataFrame(rows, ["at", "item", "price"], orient="row"))
    session.sql(
        "CREATE STREAM bid (at TIMESTAMP, item VARCHAR, price INTEGER) "
        "SOURCE memory('bids') ORDERED BY at"
    )
    query = session.sql(QUERY)
    assert isinstance(query, tidemill.Query), "a SELECT gives a query"
    session.run()
    return query


def x(minute: float) -> float:
    """Where a minute is."""
    return round(LEFT + minute * STEP, 1)


def minutes(times: pl.Expr) -> pl.Expr:
    """Minutes after noon."""
    return (times.cast(pl.Datetime("us")) - NOON).dt.total_seconds() / 60


def text(at: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    """A line of text."""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{at:g}" y="{y:g}" class="{kind}"{place}>{escape(words)}</text>'


def grid() -> list[str]:
    """The minutes, and the axis of time."""
    lines = [
        f'<line x1="{x(m):g}" y1="{BIDS_TOP - 14}" x2="{x(m):g}" y2="{AXIS}" class="grid"/>'
        for m in range(MINUTES + 1)
    ]
    lines.append(f'<line x1="{LEFT}" y1="{AXIS}" x2="{WIDTH - RIGHT}" y2="{AXIS}" class="axis"/>')
    lines += [
        text(x(m), AXIS + 18, f"12:{m:02}", "note mono", "middle") for m in range(MINUTES + 1)
    ]
    return lines


def bids() -> list[str]:
    """Each bid, and the three minutes for which the window holds it."""
    lines = [
        text(24, BIDS_TOP + 4, "the stream", "title"),
        text(24, BIDS_TOP + 22, "bids, each in the", "note"),
        text(24, BIDS_TOP + 38, "window for 3 minutes", "note"),
    ]
    for place, (minute, item, price) in enumerate(BIDS):
        y = BIDS_TOP + place * BID_HEIGHT
        lines.append(
            f'<rect x="{x(minute):g}" y="{y - 4}" width="{RANGE * STEP:g}" height="8" rx="4" '
            f'class="{item} faint"/>'
        )
        lines.append(f'<circle cx="{x(minute):g}" cy="{y}" r="9.5" class="{item}"/>')
        lines.append(text(x(minute), y + 4, str(price), "price", "middle"))
    return lines


def answer(query: tidemill.Query) -> list[str]:
    """The rows of the answer, each from its start up to its end, which is open."""
    y = ANSWER_TOP + 14
    lines = [
        text(24, y, "the answer", "title"),
        text(24, y + 18, "rows that are valid", "note"),
        text(24, y + 34, "in [start, end)", "note"),
    ]
    for item, top, start, end in (
        query.results().with_columns(minutes(pl.col("start", "end"))).rows()
    ):
        y = ANSWER_TOP + ITEMS.index(item) * ANSWER_HEIGHT
        left, right = x(start) + 1, x(end) - 1
        lines.append(
            f'<path d="M{left:g} {y} H{right - 7:g} a7 7 0 0 1 7 7 V{y + BAR - 7} a7 7 0 0 1 -7 7 '
            f'H{left:g} z" class="{item}"/>'
        )
        lines.append(text((left + right) / 2, y + 21, f"{item} {top}", "value", "middle"))
    return lines


def look(query: tidemill.Query) -> list[str]:
    """A line at one instant, and what the answer is there."""
    at = NOON + timedelta(minutes=LOOK)
    rows = " · ".join(f"{item} {top}" for item, top in sorted(query.snapshot(at).rows()))
    said = f"snapshot at {at:%H:%M:%S}: {rows}"
    width = 7.4 * len(said) + 24
    left = x(LOOK) - width / 2
    ends = f'x1="{x(LOOK):g}" y1="{BIDS_TOP - 20}" x2="{x(LOOK):g}" y2="{AXIS + 28}"'
    return [
        f'<line {ends} class="halo"/>',
        f'<line {ends} class="look"/>',
        f'<rect x="{left:g}" y="{AXIS + 26}" width="{width:g}" height="26" rx="13" class="found"/>',
        text(x(LOOK), AXIS + 43.5, said, "said mono", "middle"),
    ]


def picture() -> str:
    """The whole picture, as SVG."""
    query = asked()
    title = "A stream of bids, the answer of a sliding window over time, and a snapshot of it"
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{title}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="12" class="card"/>',
        text(24, 28, QUERY, "note mono"),
        *grid(),
        *bids(),
        *answer(query),
        *look(query),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"written: {PICTURE.name}")
