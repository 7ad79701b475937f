"""Whether two plans of an aggregate over a join can run at once, and be put together (SGB, Z50).

Nothing is timed: the question is what is right. Tidemill does not do it: parts that are cut by time
need nothing of it, for any aggregate.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.migrations.same_groups import COMBINED, NotDistributiveError, compared, load
from benchmarks.techniques.shapes import Shape, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness.question import Context
    from benchmarks.migrations.same_groups import Counts

ADDED = ("SUM", "COUNT")
"""Functions that a pair changes that is counted twice."""


_MEANING = (
    "A group is one of a window. It is split if it has pairs of both plans. Mixed below: the first"
    " plan has an aggregate below its join, whose groups have old rows and new ones."
)


def answers(context: Context) -> Iterator[Table]:
    """What is right for each function, and what was found."""
    given = load(context.seed, 600 if context.full else 150)
    found: dict[str, Counts] = {}
    for function in COMBINED:
        context.progress(function)
        found[function] = compared(function, given)
    if any(one.combined for one in found.values()):
        raise WrongAnswerError("what SGB puts together is not the answer")
    yield Table(
        "Groups of two plans that run at once",
        ("function", "groups", "split", "wrong as given", "wrong with SGB", "wrong if mixed below"),
        tuple((function, *astuple(one)) for function, one in found.items()),
        (_MEANING,),
    )
    yield table_of("SGB", _shapes(found))


def _shapes(found: dict[str, Counts]) -> Iterator[Shape]:
    split = next(iter(found.values())).split
    yield Shape("groups are split between the plans", split > 0, f"{split} groups")
    yield Shape(
        "SGB puts them together for SUM, COUNT, MIN and MAX",
        not any(one.combined for one in found.values()),
    )
    try:
        compared("AVG", load(1, 1))
    except NotDistributiveError as error:
        refused = str(error)
    else:
        refused = ""
    yield Shape("AVG cannot be put together", bool(refused), refused)
    yield Shape(
        "sums of old and new rows below the join are counted twice (our erratum to Z50)",
        all(found[function].mixed for function in ADDED),
        ", ".join(f"{function}: {found[function].mixed} wrong" for function in found),
    )


QUESTION = Question(
    "group_by_switch", "Whether two plans of an aggregate over a join can be combined", answers
)
