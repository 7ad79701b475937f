"""Physical streams of letters for the tests of operators, written as in the paper.

``"b[1,7) d[3,inf)"`` is b valid from 1 up to 7 and d from 3 on; ``"b@1 a@3"`` are instants. Two
letters, as ``"ab[1,7)"``, are a row of two columns.
"""

from __future__ import annotations

import re
from collections import Counter

from physical.run import Advance, Arrive, Element, Output, Schedule
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import VARCHAR

__all__ = [
    "LETTERS",
    "P1",
    "P2",
    "P3",
    "arriving",
    "assert_stream",
    "is_chronon",
    "is_end_ordered",
    "one_by_one",
    "stream",
    "together",
]

LETTERS = Schema((Field("letter", VARCHAR),))

_ELEMENT = re.compile(r"(\w+)(?:@(\d+)|\[(\d+),(\d+|inf)\))")


def stream(text: str) -> list[Element]:
    """The elements of a physical stream of letters."""
    return [
        Element(tuple(row), int(at), int(at) + 1)
        if at
        else Element(tuple(row), int(start), END_OF_TIME if end == "inf" else int(end))
        for row, at, start, end in _ELEMENT.findall(text)
    ]


P1 = stream("c[1,8) a[5,11) d[6,14) a[9,10) b[12,17)")
P2 = stream("b[1,7) d[3,9) a[4,5) b[7,15) e[10,18)")
P3 = stream("b@1 a@3 c@4 a@7 b@10")


def arriving(*events: str | int, schema: Schema = LETTERS) -> Schedule:
    """A schedule for one input: batches as text, watermarks as numbers."""
    return Schedule(
        (schema,),
        tuple(
            Advance(event) if isinstance(event, int) else Arrive(0, tuple(stream(event)))
            for event in events
        ),
    )


def together(*ports: list[Element], schema: Schema = LETTERS) -> Schedule:
    """Everything in one batch a port, and no watermark but the last."""
    events = tuple(Arrive(port, tuple(elements)) for port, elements in enumerate(ports))
    return Schedule((schema,) * len(ports), events)


def one_by_one(*ports: list[Element], schema: Schema = LETTERS) -> Schedule:
    """Each element in a batch of its own, in the order of starts, and a watermark after each."""
    arrivals = sorted((e.start, port, i) for port, es in enumerate(ports) for i, e in enumerate(es))
    events: list[Arrive | Advance] = []
    for start, port, i in arrivals:
        events += [Advance(start), Arrive(port, (ports[port][i],))]
    return Schedule((schema,) * len(ports), tuple(events))


def assert_stream(output: Output, expected: str) -> None:
    """Fail unless exactly these elements were emitted, in any order."""
    assert Counter(output.elements) == Counter(stream(expected)), output.text()


def is_chronon(output: Output) -> bool:
    """Whether every element is valid for one instant."""
    return all(e.end == e.start + 1 for e in output.elements)


def is_end_ordered(output: Output) -> bool:
    """Whether elements in the order of their starts are in the order of their ends too."""
    ends = [end for _, end in sorted((e.start, e.end) for e in output.elements)]
    return ends == sorted(ends)
