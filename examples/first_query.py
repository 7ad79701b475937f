# ruff: noqa: INP001, T201 — a program on its own that talks to a person
"""A first query: from text to a plan, from events to rows with the time they are valid.

The queries run on the local engine; the reference evaluator, which computes by definition what a
query means, checks the answer at one instant.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import polars as pl

import tidemill
from tidemill.algebra.explain import explain
from tidemill.algebra.snapshot import Element, Reference
from tidemill.model.time import from_datetime
from tidemill.optimizer.logical.rewrite import optimize

STREAMS = """
CREATE STREAM bid (at TIMESTAMP, item VARCHAR, bidder VARCHAR, price INTEGER)
  SOURCE memory('bids') ORDERED BY at;
CREATE STREAM sale (at TIMESTAMP, item VARCHAR) SOURCE memory('sales') ORDERED BY at;
"""

HIGHEST = """
SELECT item, COUNT(*) AS bids, MAX(price) AS highest
FROM bid [RANGE 10 MINUTES]
WHERE price >= 12
GROUP BY item
"""

SOLD = """
SELECT s.item, b.bidder, b.price
FROM sale s JOIN bid [RANGE 10 MINUTES] b ON s.item = b.item
WHERE b.price >= ALL (SELECT price FROM bid [RANGE 10 MINUTES] c WHERE c.item = s.item)
"""

MISTAKE = "SELECT item, MAX(prise) FROM bid [RANGE 10 MINUTES] GROUP BY item"


def moment(time: str) -> datetime:
    """A time of the day the example plays on."""
    return datetime.fromisoformat(f"2026-03-01T{time}")


BIDS = [
    (moment("12:00"), "lamp", "Ada", 10),
    (moment("12:02"), "vase", "Bob", 25),
    (moment("12:03"), "lamp", "Cem", 14),
    (moment("12:07"), "lamp", "Ada", 17),
    (moment("12:09"), "vase", "Dee", 28),
    (moment("12:13"), "vase", "Bob", 31),
]
SALES = [(moment("12:08"), "lamp"), (moment("12:14"), "vase"), (moment("12:20"), "lamp")]


def main() -> None:
    """Run two queries, check one answer, and make one mistake."""
    session = tidemill.connect()
    session.sql(STREAMS)
    session.put("bids", pl.DataFrame(BIDS, ["at", "item", "bidder", "price"], orient="row"))
    session.put("sales", pl.DataFrame(SALES, ["at", "item"], orient="row"))
    highest, sold = session.query(HIGHEST), session.query(SOLD)
    session.run()

    print("1. Item by item, the bids of at least 12 in the last ten minutes:\n", HIGHEST, sep="")
    print("Its plan, optimized:\n", explain(optimize(highest.plan)), sep="\n")
    print("\nIts answer, and from when to when each row is valid:\n", table(highest), sep="\n")
    print("\n2. When an item is sold, who bid most in the last ten minutes?\n", SOLD, sep="")
    print("A sale is there for one instant, a microsecond, and so is the answer:\n")
    print(table(sold))

    time, rows = moment("12:10"), highest.snapshot(moment("12:10")).rows()
    bids = [Element(from_datetime(bid[0]), number, bid) for number, bid in enumerate(BIDS)]
    by_definition = Reference({"bid": bids}).snapshot(highest.plan, from_datetime(time))
    assert Counter(rows) == by_definition, "the engine is wrong"
    print(f"\n3. The first answer at {time:%H:%M} is {rows}.\nThe reference evaluator agrees.")

    print("\n4. A mistake, and what Tidemill says about it:\n")
    try:
        session.sql(MISTAKE)
    except tidemill.TidemillError as error:
        print(error)


def table(query: tidemill.Query) -> str:
    """The answer of a query as lines of text; seconds are left out where there are none."""
    lines = [[*query.schema.names, "from", "until"]]
    for *values, start, end in query.results().rows():
        times = (f"{time:%H:%M:%S.%f}" for time in (start, end))
        lines.append([*map(str, values), *(time.removesuffix(":00.000000") for time in times)])
    return "\n".join("  " + "".join(cell.ljust(9) for cell in line).rstrip() for line in lines)


if __name__ == "__main__":
    main()
