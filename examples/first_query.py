# ruff: noqa: INP001, T201 — a program on its own that talks to a person
"""A first query: from text to a plan, and from events to the answer at every instant.

The answers come from the reference evaluator, which computes by definition what a query means.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import tidemill
from tidemill.algebra.snapshot import Element, Reference, Row, value_order

STREAMS = """
CREATE STREAM bid (at TIMESTAMP, item VARCHAR, bidder VARCHAR, price INTEGER)
  SOURCE memory() ORDERED BY at;
CREATE STREAM sale (at TIMESTAMP, item VARCHAR) SOURCE memory() ORDERED BY at;
"""

HIGHEST = """
SELECT item, COUNT(*) AS bids, MAX(price) AS highest
FROM bid [RANGE 10 MINUTES]
GROUP BY item
"""

SOLD = """
SELECT s.item, b.bidder, b.price
FROM sale s JOIN bid [RANGE 10 MINUTES] b ON s.item = b.item
WHERE b.price >= ALL (SELECT price FROM bid [RANGE 10 MINUTES] c WHERE c.item = s.item)
"""

MISTAKE = "SELECT item, MAX(prise) FROM bid [RANGE 10 MINUTES] GROUP BY item"

BIDS: list[tuple[str, Row]] = [
    ("12:00", ("lamp", "Ada", 10)),
    ("12:02", ("vase", "Bob", 25)),
    ("12:03", ("lamp", "Cem", 14)),
    ("12:07", ("lamp", "Ada", 17)),
    ("12:09", ("vase", "Dee", 28)),
    ("12:13", ("vase", "Bob", 31)),
    ("12:14", ("lamp", "Eve", 15)),
]
SALES: list[tuple[str, Row]] = [("12:08", ("lamp",)), ("12:14", ("vase",)), ("12:20", ("lamp",))]


def main() -> None:
    """Show two queries, their plans and their answers, and one mistake."""
    session = tidemill.connect()
    session.sql(STREAMS)
    reference = Reference({"bid": elements(BIDS), "sale": elements(SALES)})
    print("The bids of the last ten minutes, item by item.")
    answer(reference, show(session, HIGHEST), ["12:00", "12:03", "12:10", "12:13", "12:24"])
    print("When an item is sold: who bid most for it in the last ten minutes?")
    answer(reference, show(session, SOLD), ["12:07", "12:08", "12:14", "12:20"])
    print("A mistake, and what Tidemill says about it:\n")
    try:
        session.sql(MISTAKE)
    except tidemill.TidemillError as error:
        print(error)


def show(session: tidemill.Session, text: str) -> tidemill.Query:
    """Register a query; print its text and its plan."""
    query = session.sql(text)
    assert isinstance(query, tidemill.Query), "a SELECT gives a query"
    print(text, query.explain(), "", sep="\n")
    return query


def answer(reference: Reference, query: tidemill.Query, times: list[str]) -> None:
    """Print the rows of the answer at some times, as a table."""
    table = [["at", *query.schema.names]]
    for time in times:
        rows = sorted(reference.snapshot(query.plan, instant(time)).elements(), key=value_order)
        table += [[time, *map(str, row)] for row in rows] or [[time, "-"]]
    lines = ("".join(cell.ljust(9) for cell in line).rstrip() for line in table)
    print(*lines, "", sep="\n")


def elements(events: list[tuple[str, Row]]) -> list[Element]:
    """The events as elements of a stream: instant, id, row."""
    return [
        Element(instant(time), number, (moment(time), *values))
        for number, (time, values) in enumerate(events)
    ]


def moment(time: str) -> datetime:
    """A time of the day the example plays on."""
    return datetime.fromisoformat(f"2026-03-01T{time}")


def instant(time: str) -> int:
    """The same as microseconds since 1970."""
    return (moment(time) - datetime.fromisoformat("1970-01-01")) // timedelta(microseconds=1)


if __name__ == "__main__":
    main()
