"""Plans that know update patterns against plans of signs: Golab's queries over network links.

Q1a, Q1b   a join with few and with many results
Q2a, Q2b   DISTINCT with few and with many results
Q3         NOT EXISTS, of which more and fewer results end before their time
Q4         NOT EXISTS below or above a join

Each runs by pattern, negative and direct on the same batches. Beside the times of the processor
stand the messages (rows that go into operators) and the rows of state: the theses measured engines
that pay for each row; this one pays for each batch, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.techniques.links import FTP, LINKS, TELNET, Sizes
from benchmarks.techniques.shapes import Shape, listed, table_of
from benchmarks.techniques.sides import (
    DIRECT,
    NEGATIVE,
    PATTERN,
    Measured,
    by_technique,
    compare,
    declared,
    drive,
    planned,
)
from tidemill.runtime.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell
    from tidemill.physical.plan import PhysicalPlan

JOIN = (
    "SELECT a.src, a.n, b.n AS m FROM l1 [w] a JOIN l2 [w] b ON a.src = b.src "
    "WHERE a.proto = {0} AND b.proto = {0}"
)
ANTI = (
    "SELECT a.src, a.n FROM l1 [w] a WHERE NOT EXISTS (SELECT * FROM l2 [w] b WHERE b.src = a.src)"
)
JOINED = (
    "SELECT a.src, a.n, c.n AS m FROM l1 [w] a JOIN l3 [w] c ON a.src = c.src "
    "WHERE {} AND NOT EXISTS (SELECT * FROM l2 [w] b WHERE b.src = a.src)"
)
SMALL, EXPLOSIVE = f"c.proto = {FTP} AND c.dst < 4", f"c.proto = {TELNET}"
"""Which rows of the third link are joined: so few that there are about as many results as rows, or
so many that their number grows with the square of the window."""

_COLUMNS = (
    "query",
    "window",
    "rows a step",
    "pattern: us a row",
    "negative / pattern",
    "direct / pattern",
    "messages, negative / pattern",
    "state, pattern",
    "negative",
    "direct",
)


class Asked:
    """A query with each window and technique.

    Args:
        context: What the question is given.
        sizes: How much there is.
    """

    def __init__(self, context: Context, sizes: Sizes) -> None:
        self._context, self._sizes = context, sizes
        self.rows: list[tuple[Cell, ...]] = []

    @property
    def full(self) -> bool:
        """Whether there is time."""
        return self._context.full

    def ask(
        self, title: str, text: str, links: int, *, shared: float = 1.0
    ) -> list[dict[str, Measured]]:
        """What becomes of each technique, window by window."""
        session = declared({name: LINKS[name] for name in list(LINKS)[:links]})
        found = []
        for window in self._sizes.windows:
            self._context.progress(f"{title}, window {window:,}")
            plan = planned(session, text.replace("[w]", f"[RANGE {window}]"))
            sides = by_technique(plan, PATTERN, NEGATIVE, DIRECT)
            result = compare(plan, sides, self._sizes.feed(window, links, shared=shared))
            found.append(result)
            self.rows.append(self._row(title, window, result))
        return found

    def _row(self, title: str, window: int, result: dict[str, Measured]) -> tuple[Cell, ...]:
        pattern, negative, direct = (result[name] for name in ("pattern", "negative", "direct"))
        return (
            title,
            window,
            self._sizes.step,
            pattern.seconds / self._sizes.rows * 1e6,
            negative.seconds / pattern.seconds,
            direct.seconds / pattern.seconds,
            negative.messages / pattern.messages,
            pattern.state,
            negative.state,
            direct.state,
        )


def slower(found: Sequence[dict[str, Measured]], side: str) -> list[float]:
    """The times of a technique by those of ``pattern``."""
    return [result[side].seconds / result["pattern"].seconds for result in found]


def answers(context: Context) -> Iterator[Table]:
    """The four queries, then the shapes."""
    windows = (2_000, 16_000, 128_000) if context.full else (2_000, 64_000)
    # Rows a step, and how many rows count.
    sizes = {200: 4_000, 2_000: 16_000, 16_000: 64_000} if context.full else {500: 4_000}
    shapes: list[Shape] = []
    for step, rows in sizes.items():
        asked = Asked(context, Sizes(windows, rows, step))
        some = [*_joins(asked), *_distincts(asked)]
        yield Table(
            f"By update pattern, {step:,} rows of a link a step", _COLUMNS, tuple(asked.rows)
        )
        shapes = shapes or some
    larger = (2_000, 16_000, 128_000, 512_000) if context.full else (2_000, 128_000)
    asked = Asked(context, Sizes(larger, 64_000, 16_000))
    shapes += _negations(asked)
    yield Table("NOT EXISTS, by the share of results that end early", _COLUMNS, tuple(asked.rows))
    table, more = _negation_and_join(context)
    yield table
    yield table_of("Of Golab's findings", [*shapes, *more])


def _joins(asked: Asked) -> Iterator[Shape]:
    small = asked.ask("Q1a join, small output", JOIN.format(FTP), 2)
    large = asked.ask("Q1b join, large output", JOIN.format(TELNET), 2)
    for name, found in (("Q1a", small), ("Q1b", large)):
        times = slower(found, "negative")
        yield Shape(
            f"{name}: pattern is about twice as fast as negative at the largest window, or more",
            times[-1] >= 1.8,  # noqa: PLR2004
            listed(times),
        )
    most = slower(large, "negative")[-1]
    yield Shape(
        "Q1b: pattern is 10 times as fast as negative",
        most >= 10,  # noqa: PLR2004
        f"{most:.1f}",
        "both make pairs by columns; a message withdraws by key, with no scan of the results",
    )
    same = [*slower(small, "direct"), *slower(large, "direct")]
    yield Shape(
        "Q1: direct gets slower than pattern as windows grow",
        min(same) > 1.2,  # noqa: PLR2004
        listed(same),
        "both have the same plan: all ends are known, and no state is a list to be scanned",
    )


def _distincts(asked: Asked) -> Iterator[Shape]:
    small = asked.ask("Q2a DISTINCT src", "SELECT DISTINCT src FROM l1 [w]", 1)
    large = asked.ask("Q2b DISTINCT src, dst", "SELECT DISTINCT src, dst FROM l1 [w]", 1)
    for name, found, factor in (("Q2a", small, 10), ("Q2b", large, 1.8)):
        times = slower(found, "negative")
        yield Shape(
            f"{name}: pattern is {factor:g} times as fast as negative at the largest window",
            times[-1] >= factor,
            listed(times),
            "theirs looks for another row when one goes; here a step's changes are counted in one "
            "sort, and what a window costs is the state",
        )
        less = [result["negative"].state / result["pattern"].state for result in found]
        wanted = 10 if name == "Q2a" else 1.5
        yield Shape(
            f"{name}: pattern remembers by the output, not by the input",
            less[-1] >= wanted,
            f"{listed(less)} times less",
        )


def _negations(asked: Asked) -> Iterator[Shape]:
    advantage: dict[float, list[float]] = {}
    shares: dict[float, float] = {}
    for shared in (0.0, 0.02, 0.2) if asked.full else (0.0, 0.2):
        shares[shared] = asked_share = _premature(shared)
        found = asked.ask(f"Q3 NOT EXISTS, {asked_share:.0%} premature", ANTI, 2, shared=shared)
        advantage[shared] = slower(found, "negative")
    rare, often = min(advantage), max(advantage)
    yield Shape(
        "Q3: where expiry is often premature, pattern wins for small windows only",
        advantage[often][-1] < 1 < advantage[often][0],
        f"negative / pattern {listed(advantage[often])}",
        "withdrawals are found by key, never by a scan of partitions",
    )
    yield Shape(
        "Q3: pattern gains as premature expirations get rarer",
        advantage[rare][-1] > advantage[often][-1],
        "; ".join(f"{shares[s]:.0%}: {listed(a)}" for s, a in advantage.items()),
        "they are a small part of the work of a step either way",
    )


def _premature(shared: float) -> float:
    """Which share of the results of Q3 is withdrawn before its window is over."""
    sizes = Sizes((2_000,), rows=4_000, step=1_000)
    window = sizes.windows[0]
    plan = planned(
        declared({name: LINKS[name] for name in ("l1", "l2")}),
        ANTI.replace("[w]", f"[RANGE {window}]"),
    )
    answer = Answer(plan.schema)
    made = by_technique(plan, PATTERN)["pattern"]
    drive(made, sizes.feed(window, 2, shared=shared), answer, Measured())
    results = answer.results()
    early = int((results["end"] < results["n"] + window).sum())
    return early / results.height


def _negation_and_join(context: Context) -> tuple[Table, list[Shape]]:
    """Q4, with the negation below and above the join."""
    rows_that_count = 8_000 if context.full else 4_000
    names = [f"{t.value}, {n}" for n in ("pushed", "pulled") for t in (NEGATIVE, PATTERN, DIRECT)]
    session = declared(LINKS)
    rows: list[tuple[Cell, ...]] = []
    found: dict[str, list[dict[str, Measured]]] = {"small join": [], "explosive join": []}
    for (title, results), condition in zip(found.items(), (SMALL, EXPLOSIVE), strict=True):
        largest = 32_000 if condition is SMALL else 8_000
        windows = (500, 2_000, largest) if context.full else (500, largest // 4)
        sizes = Sizes(windows, rows=rows_that_count, step=1_000)
        for window in windows:
            context.progress(f"Q4 {title}, window {window:,}")
            plan = planned(session, JOINED.format(condition).replace("[w]", f"[RANGE {window}]"))
            sides: dict[str, PhysicalPlan] = {}
            for where in ("pushed", "pulled"):
                made = by_technique(plan, NEGATIVE, PATTERN, DIRECT, negation=where)
                sides |= {f"{technique}, {where}": side for technique, side in made.items()}
            result = compare(plan, sides, sizes.feed(window, 3, shared=0.2))
            least = min(result, key=lambda side: result[side].seconds)
            best = result[least].seconds
            cells = (result[name].seconds / best for name in names)
            state = (result[name].state for name in ("pattern, pushed", "pattern, pulled"))
            rows.append((f"Q4 {title}", window, *cells, least, *state))
            results.append(result)
    columns = ("query", "window", *names, "fastest", "state: pattern, pushed", "pulled")
    return Table("NOT EXISTS below and above a join", columns, tuple(rows)), _q4_shapes(found)


def _q4_shapes(found: dict[str, list[dict[str, Measured]]]) -> list[Shape]:
    def by(one: str, other: str, title: str) -> list[float]:
        return [result[one].seconds / result[other].seconds for result in found[title]]

    def fastest(title: str) -> list[str]:
        """Of those that were compared: negative and by pattern."""
        sides = [side for side in found[title][0] if not side.startswith("direct")]
        return [min(sides, key=lambda side: result[side].seconds) for result in found[title]]

    small = fastest("small join")
    order = by("negative, pulled", "negative, pushed", "small join")
    gain = by("pattern, pushed", "pattern, pulled", "explosive join")
    return [
        Shape(
            "Q4: with negative, the negation is better pushed down",
            min(order) > 1,
            f"pulled / pushed {listed(order)}",
            "a join that stays small takes away more than the negation does",
        ),
        Shape(
            "Q4: pattern with the negation pulled up is best for the largest window",
            small[-1] == "pattern, pulled",
            "; ".join(small),
            "the result of the join, which is counted when the negation stands above it, may grow "
            "faster than its inputs",
        ),
        Shape(
            "Q4: negative with the negation pushed down is best for the smallest window",
            small[0] == "negative, pushed",
            small[0],
            "signs cost more than intervals whatever the size of the window",
        ),
        Shape(
            "Q4: pulling up loses where the join is explosive",
            gain[-1] < 1,
            f"pushed / pulled with pattern {listed(gain)}",
        ),
    ]


QUESTION = Question("update_patterns", "What it is worth to know how results end", answers)
