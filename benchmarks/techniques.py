"""How techniques of withdrawing results compare: intervals against signs, and form by pattern.

    direct     every element knows its end            (time intervals; DIRECT)
    negative   what goes is withdrawn by a message    (positive-negative; NT)
    pattern    signs only where ends are not known    (update-pattern aware)

The questions are those of the two theses that measured it: Krämer's queries over an auction site,
and count windows; Golab's joins, distinct and negation over connections of a network. All sides
get the same batches, on one core, in this run, in turns; the best time of the processor counts,
and none before the answers are found to be equal. What counts is the ratio. Below each table stands
which of the shapes of the theses is found (ok) and which is not (NOT), with what is seen instead.

    python -m benchmarks.techniques [scale]
"""

# ruff: noqa: T201, PLR2004 — a benchmark prints, and has numbers of its own

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from time import process_time
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from tidemill.demo.nexmark import generate
from tidemill.engine.engine import Flow
from tidemill.engine.fragments import build_graph
from tidemill.model.batch import END, ID, START
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.implement import implement
from tidemill.optimizer.rewrite import optimize
from tidemill.optimizer.techniques import Technique
from tidemill.runtime.answers import Answer
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.rules import Negation
    from tidemill.physical.plan import PhysicalPlan

REPEATS = 3
DIRECT, NEGATIVE, PATTERN = Technique.DIRECT, Technique.NEGATIVE, Technique.PATTERN


# How a question is asked


@dataclass(frozen=True)
class Feed:
    """What comes in, step by step, and from which step on time counts."""

    steps: list[dict[str, Flow]]
    counted: int = 0


@dataclass
class Measured:
    """What became of a side: its best time, its answer, and the most it remembered."""

    seconds: float = float("inf")
    rows_out: int = 0
    state: int = 0
    by_operator: Counter[str] = field(default_factory=Counter)
    first: int | None = None


def feed_of(streams: Mapping[str, pl.DataFrame], steps: int, *, counted: float = 0) -> Feed:
    """Streams with a column ``at`` in as many steps of equal length, and their end.

    Args:
        streams: The rows, in the order of time.
        steps: How many steps.
        counted: From which time on it counts how long a step takes.
    """
    last = 1 + max(int(frame["at"][-1]) for frame in streams.values())
    edges = [last * step // steps for step in range(steps + 1)]
    parts: list[dict[str, Flow]] = []
    for low, high in pairwise(edges):
        flows = {}
        for name, frame in streams.items():
            some = frame.filter(pl.col("at") >= low, pl.col("at") < high)
            ids = pl.int_range(some.height, dtype=pl.Int64, eager=True) + low
            elements = some.with_columns(
                pl.col("at").alias(START), (pl.col("at") + 1).alias(END), ids.alias(ID)
            )
            flows[name] = Flow([elements], Time(high))
        parts.append(flows)
    first = sum(1 for edge in edges[1:] if edge <= counted)
    return Feed(parts, first)


def planned(session: tidemill.Session, text: str) -> Plan:
    """What a query asks."""
    query = session.sql(text)
    assert isinstance(query, tidemill.Query), "the questions are queries"
    return query.plan


def drive(plan: PhysicalPlan, feed: Feed, answer: Answer | None, measured: Measured) -> None:
    """Run a plan once; the time is kept if it is the best, the answer if it is wanted."""
    runner = LocalRunner(build_graph({"q": plan}))
    names = {input_.name for input_ in runner.graph.inputs}
    seconds, rows_in = 0.0, 0
    steps = [*feed.steps, {name: Flow([], END_OF_TIME) for name in feed.steps[0]}]
    for number, step in enumerate(steps):
        flows = {name: Flow(list(step[name].batches), step[name].watermark) for name in names}
        began = process_time()
        out = runner.step(flows)["q"]
        took = process_time() - began
        if feed.counted <= number < len(feed.steps):
            seconds += took
        if answer is not None:
            answer.add(out)
            rows_in += sum(b.height for flow in flows.values() for b in flow.batches)
            if out and measured.first is None and number < len(feed.steps):
                measured.first = rows_in
            if number % 4 == 0:
                _note_state(runner, measured)
    if answer is None:
        measured.seconds = min(measured.seconds, seconds)
    else:
        answer.has_ended = True
        measured.rows_out = answer.rows()


def _note_state(runner: LocalRunner, measured: Measured) -> None:
    found: Counter[str] = Counter()
    for engine in (engine for stage in runner.engines for engine in stage):
        kinds = {node.name: node.apply.operator for node in engine.fragment.nodes}
        for name, metrics in engine.measure().items():
            kind = type(kinds[name])
            found[f"{kind.__module__.split('.')[-2]}.{kind.__name__}"] += metrics.state_rows
    if found.total() > measured.state:
        measured.state, measured.by_operator = found.total(), found


def compare(
    plan: Plan, sides: Mapping[str, PhysicalPlan], feed: Feed, repeats: int = REPEATS
) -> dict[str, Measured]:
    """All sides of a question; fails if their answers differ."""
    measured = {side: Measured() for side in sides}
    expected: pl.DataFrame | None = None
    for side, made in sides.items():
        answer = Answer(plan.schema)
        drive(made, feed, answer, measured[side])
        elements = answer.elements()
        assert expected is None or elements.equals(expected), f"{side} gives another answer"
        expected = elements
    for _ in range(repeats):
        for side, made in sides.items():
            drive(made, feed, None, measured[side])
    return measured


def by_technique(
    plan: Plan,
    *techniques: Technique,
    negation: Negation = "written",
    max_delay: int | None = None,
    rewritten: bool = True,
) -> dict[str, PhysicalPlan]:
    """The plan of each technique."""
    best = optimize(plan, negation=negation) if rewritten else plan
    return {
        technique.value: implement(best, max_delay=max_delay, split=False, technique=technique)
        for technique in techniques
    }


def table(*columns: str) -> None:
    """The head of a table."""
    print("| " + " | ".join(columns) + " |")
    print("|---" + "|---:" * (len(columns) - 1) + "|")


def row(*cells: str) -> None:
    """A line of a table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def shape(*, found: bool, says: str, seen: str = "", why: str = "") -> None:
    """Whether a shape of the theses is found, what is seen, and if not so, why."""
    print(f"  {'ok ' if found else 'NOT'}  {says}{f': {seen}' if seen else ''}", flush=True)
    if why and not found:
        print(f"       {why}")


# Krämer: intervals against signs over an auction site


AUCTIONS = {
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT",
    "auction": "id BIGINT, seller BIGINT, initial_bid BIGINT",
    "closed": "id BIGINT, seller BIGINT",
}
QUERIES = {
    "Q1 currency, map": "SELECT auction, bidder, price * 0.9 AS euro FROM bid [RANGE 1 MINUTE]",
    "Q2 some items, filter": "SELECT auction, price FROM bid [RANGE 1 MINUTE] "
    "WHERE auction IN (1007, 1020, 1087, 1201, 1219)",
    "Q3 closed soon, join": "SELECT a.id, a.seller FROM auction [RANGE 1 MINUTE] a "
    "JOIN closed c ON a.id = c.id",
    "Q4 highest bid, MAX and semi-join": "SELECT auction, price FROM bid [RANGE 1 MINUTE] "
    "WHERE price = (SELECT MAX(price) FROM bid [RANGE 1 MINUTE])",
    "Q5 closing price, joins and MAX": """
        SELECT p.id, a.seller, MAX(p.price) AS price
        FROM ((SELECT auction AS id, price FROM bid [RANGE 1 MINUTE])
              UNION ALL (SELECT id, initial_bid AS price FROM auction [RANGE 1 MINUTE])) p
        JOIN closed c ON p.id = c.id JOIN auction [RANGE 1 MINUTE] a ON c.id = a.id
        GROUP BY p.id, a.seller""",
}


def auction_site(count: int) -> dict[str, pl.DataFrame]:
    """The events of an auction site, with times from 0 on."""
    events = generate(count, seed=7).streams()
    first = min(frame["date_time"].cast(pl.Int64).min() for frame in events.values())  # type: ignore[type-var]
    return {
        name: events[name]
        .with_columns((pl.col("date_time").cast(pl.Int64) - first).alias("at"))
        .select(*(part.split()[0] for part in columns.split(", ")), "at")
        for name, columns in AUCTIONS.items()
    }


def declared(streams: Mapping[str, str]) -> tidemill.Session:
    """A session that knows some streams."""
    session = tidemill.connect()
    for name, columns in streams.items():
        session.sql(
            f"CREATE STREAM {name} ({columns}, at BIGINT) SOURCE memory('{name}') ORDERED BY at"
        )
    return session


def kraemer(scale: float) -> None:
    """Q1 to Q5 in interval form and in signed form."""
    count = int(40_000 * scale)
    feed = feed_of(auction_site(count), 20)
    session = declared(AUCTIONS)
    print(
        f"\n## Intervals (direct) against signs (negative): {count:,} events of an auction site\n"
    )
    table("query", "direct", "negative / direct", "elements out", "changes out", "ratio", "state")
    ratios: dict[str, float] = {}
    counts: dict[str, float] = {}
    for rewritten in (False, True):
        for name, text in QUERIES.items():
            if rewritten and not name.startswith(("Q1", "Q2")):
                continue
            plan = planned(session, text)
            # Q4 and Q5 are decorrelated and pushed together only when they are rewritten.
            is_rewritten = rewritten or not name.startswith(("Q1", "Q2"))
            sides = by_technique(plan, DIRECT, NEGATIVE, rewritten=is_rewritten)
            found = compare(plan, sides, feed)
            direct, negative = found["direct"], found["negative"]
            label = f"{name}, rewritten" if rewritten else name
            ratios[label] = negative.seconds / direct.seconds
            counts[label] = negative.rows_out / max(direct.rows_out, 1)
            row(
                label,
                f"{direct.seconds:.3f} s",
                f"{ratios[label]:.2f}",
                f"{direct.rows_out:,}",
                f"{negative.rows_out:,}",
                f"{counts[label]:.2f}",
                f"{direct.state:,} / {negative.state:,}",
            )
    own = {name[:2]: ratio for name, ratio in ratios.items() if "rewritten" not in name}
    print()
    shape(found=counts["Q1 currency, map"] == 2, says="Q1: twice as many messages, exactly")
    for name, ratio in own.items():
        shape(found=ratio > 1, says=f"{name}: intervals are faster", seen=f"{ratio:.2f}")
    for name in ("Q2", "Q3"):
        shape(
            found=own[name] > max(2, own["Q1"]),
            says=f"{name}: the ratio is above 2, and above that of Q1",
            seen=f"{own[name]:.2f} against {own['Q1']:.2f}",
            why="columns are copied, not objects made: a filter costs as little as a map",
        )
    shape(
        found=all(1 < own[name] < 2 for name in ("Q4", "Q5")),
        says="Q4, Q5: between 1 and 2",
        seen=f"{own['Q4']:.2f}, {own['Q5']:.2f}",
        why="a signed join finds and updates rows by key, an interval join appends and drops",
    )


# Krämer: count windows


def count_windows(scale: float) -> None:
    """The last N rows in signed form and in interval form."""
    rows, step = int(5_000 * scale), 50
    numbers = pl.int_range(rows, dtype=pl.Int64, eager=True)
    values = (numbers.hash(seed=1) % 1000).cast(pl.Int64)
    stream = pl.DataFrame({"v": values, "at": numbers * 20_000})
    feed = feed_of({"s": stream}, rows // step)
    session = declared({"s": "v BIGINT"})
    print(f"\n## The last N rows: {rows:,} rows, {step} a step\n")
    shapes: list[tuple[bool, str, str]] = []
    table(
        "N",
        "signs: rows until the first result",
        "intervals",
        "signs: us a row",
        "intervals",
        "intervals / signs",
    )
    for size in (100, 500, 2000):
        plan = planned(session, f"SELECT v FROM s [ROWS {size}]")
        sides = by_technique(plan, PATTERN, DIRECT)
        found = compare(plan, sides, feed, repeats=2)
        signs, intervals = found["pattern"], found["direct"]
        row(
            f"{size:,}",
            f"{signs.first:,}",
            f"{intervals.first:,}",
            f"{signs.seconds / rows * 1e6:.1f}",
            f"{intervals.seconds / rows * 1e6:.1f}",
            f"{intervals.seconds / signs.seconds:.2f}",
        )
        assert signs.first is not None, "there are results"
        assert intervals.first is not None, "there are results"
        says = f"N = {size:,}: signs give their first result with the first rows, intervals after N"
        at_once = signs.first <= step and size < intervals.first <= size + 2 * step
        shapes.append((at_once, says, f"{signs.first:,}, {intervals.first:,}"))
    print()
    for found_, says, seen in shapes:
        shape(found=found_, says=says, seen=seen)


# Golab: direct, negative and by pattern over connections of a network


LINKS = dict.fromkeys(("l1", "l2", "l3"), "src BIGINT, dst BIGINT, proto BIGINT, n BIGINT")
SOURCES = 1600
FTP, TELNET, OTHER = 0, 1, 2


def zipf(numbers: pl.Series, seed: int, values: int = SOURCES) -> pl.Series:
    """Numbers below ``values``, the k-th about as often as 1 / k."""
    uniform = (numbers.hash(seed=seed) % 1_000_003).cast(pl.Float64) / 1_000_003
    return ((pl.Series([float(values)]) ** uniform).floor() - 1).cast(pl.Int64)


def link(rows: int, seed: int, *, shared: float = 1.0) -> pl.DataFrame:
    """Connections, one for each unit of time.

    Args:
        rows: How many.
        seed: Which random numbers.
        shared: Which share of the rows has a source that other links have as well.
    """
    n = pl.int_range(rows, dtype=pl.Int64, eager=True)
    part = (n.hash(seed=seed + 1) % 1000).cast(pl.Float64) / 1000
    alone = (n.hash(seed=seed + 2) % 1000).cast(pl.Float64) / 1000 >= shared
    src = zipf(n, seed)
    chosen = pl.select(
        proto=pl.when(part < 0.03).then(FTP).when(part < 0.13).then(TELNET).otherwise(OTHER),
        src=pl.when(alone).then(src + SOURCES).otherwise(src),
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


@dataclass(frozen=True)
class Sizes:
    """Windows, how many rows of a link are counted after they have filled, and how many a step."""

    windows: tuple[int, ...]
    rows: int
    step: int

    def feed(self, window: int, links: int, *, shared: float = 1.0) -> Feed:
        """Links that fill a window, and then so many rows that count."""
        whole = window + self.rows
        streams = {
            f"l{i + 1}": link(whole, 10 * i, shared=shared if i == 1 else 1.0) for i in range(links)
        }
        return feed_of(streams, whole // self.step, counted=window)


def question(
    title: str, text: str, sizes: Sizes, links: int, *, shared: float = 1.0
) -> list[dict[str, Measured]]:
    """A query with each window and technique: times by that of ``pattern``, and state."""
    session = declared({name: LINKS[name] for name in list(LINKS)[:links]})
    found = []
    for window in sizes.windows:
        plan = planned(session, text.replace("[w]", f"[RANGE {window}]"))
        sides = by_technique(plan, PATTERN, NEGATIVE, DIRECT)
        result = compare(plan, sides, sizes.feed(window, links, shared=shared), repeats=2)
        found.append(result)
        _row_of(title, window, sizes, result)
    return found


def _row_of(title: str, window: int, sizes: Sizes, result: Mapping[str, Measured]) -> None:
    pattern = result["pattern"]
    by_operator = ", ".join(
        f"{name} {count:,}" for name, count in pattern.by_operator.most_common(3) if count
    )
    row(
        title,
        f"{window:,}",
        f"{pattern.seconds / sizes.rows * 1e6:.1f}",
        *(f"{result[t].seconds / pattern.seconds:.2f}" for t in ("negative", "direct")),
        *(f"{result[t].state:,}" for t in ("pattern", "negative", "direct")),
        by_operator,
    )


def _head() -> None:
    print()
    table(
        "query",
        "window",
        "pattern: us a row",
        "negative / pattern",
        "direct / pattern",
        "state: pattern",
        "negative",
        "direct",
        "where (pattern)",
    )


def ratio(found: Sequence[Mapping[str, Measured]], side: str) -> list[float]:
    """The times of a technique by those of ``pattern``."""
    return [result[side].seconds / result["pattern"].seconds for result in found]


def listed(numbers: Sequence[float]) -> str:
    """Numbers for a reader."""
    return ", ".join(f"{number:.2f}" for number in numbers)


JOIN = (
    "SELECT a.src, a.n, b.n AS m FROM l1 [w] a JOIN l2 [w] b ON a.src = b.src "
    "WHERE a.proto = {0} AND b.proto = {0}"
)


def joins(sizes: Sizes) -> None:
    """Q1a and Q1b."""
    _head()
    small = question("Q1a join, small output", JOIN.format(FTP), sizes, 2)
    large = question("Q1b join, large output", JOIN.format(TELNET), sizes, 2)
    print()
    for name, found in (("Q1a", small), ("Q1b", large)):
        slower = ratio(found, "negative")
        shape(
            found=slower[-1] >= 1.8,
            says=f"{name}: pattern is about twice as fast as negative at the largest window",
            seen=listed(slower),
        )
        same = ratio(found, "direct")
        shape(
            found=same[-1] > 1.2,
            says=f"{name}: direct gets slower than pattern as windows grow",
            seen=listed(same),
            why="here both have the same plan: all ends are known, and no state is a list",
        )
    most = ratio(large, "negative")[-1]
    shape(
        found=most >= 5,
        says="Q1b: pattern is 10 times as fast as negative",
        seen=f"{most:.2f}",
        why="both make pairs by columns; a message withdraws by key, with no scan of the results",
    )


def distincts(sizes: Sizes) -> None:
    """Q2a and Q2b."""
    _head()
    small = question("Q2a DISTINCT src", "SELECT DISTINCT src FROM l1 [w]", sizes, 1)
    large = question("Q2b DISTINCT src, dst", "SELECT DISTINCT src, dst FROM l1 [w]", sizes, 1)
    print()
    for name, found, factor in (("Q2a", small, 5), ("Q2b", large, 1.8)):
        slower = ratio(found, "negative")
        shape(
            found=slower[-1] >= factor,
            says=f"{name}: negative takes {factor:g} times as long or more at the largest window",
            seen=listed(slower),
            why="counting is one sort of the changes of a step, whatever the size of the window",
        )
        less = [result["negative"].state / result["pattern"].state for result in found]
        shape(
            found=less[-1] > (10 if name == "Q2a" else 1.5),
            says=f"{name}: pattern remembers less than negative, by the output and not the input",
            seen=f"{listed(less)} times",
        )


ANTI = (
    "SELECT a.src, a.n FROM l1 [w] a WHERE NOT EXISTS (SELECT * FROM l2 [w] b WHERE b.src = a.src)"
)


def negations(sizes: Sizes) -> None:
    """Q3, with more and less sources in common."""
    _head()
    advantage: dict[float, list[float]] = {}
    premature: dict[float, float] = {}
    for shared in (0.0, 0.02, 0.2):
        share = _premature(sizes, shared)
        premature[shared] = share
        found = question(f"Q3 NOT EXISTS, {share:.0%} premature", ANTI, sizes, 2, shared=shared)
        advantage[shared] = ratio(found, "negative")
    print()
    rare, frequent = min(advantage), max(advantage)
    shape(
        found=advantage[frequent][-1] < 1 < advantage[frequent][0],
        says="Q3: where expiry is often premature, pattern wins for small windows only",
        seen=f"negative / pattern {listed(advantage[frequent])}",
        why="no crossover: withdrawals are found by key, never by a scan of partitions",
    )
    shape(
        found=advantage[rare][-1] > advantage[frequent][-1],
        says="Q3: pattern gains as premature expirations get rarer",
        seen="; ".join(f"{premature[s]:.0%}: {listed(a)}" for s, a in advantage.items()),
    )


def _premature(sizes: Sizes, shared: float) -> float:
    """Which share of the results of Q3 is withdrawn before its window is over."""
    window = sizes.windows[0]
    session = declared({name: LINKS[name] for name in ("l1", "l2")})
    plan = planned(session, ANTI.replace("[w]", f"[RANGE {window}]"))
    answer = Answer(plan.schema)
    made = by_technique(plan, PATTERN)["pattern"]
    drive(made, sizes.feed(window, 2, shared=shared), answer, Measured())
    results = answer.results()
    return float((results["end"] < results["n"] + window).mean() or 0)  # type: ignore[arg-type]


JOINED = (
    "SELECT a.src, a.n, c.n AS m FROM l1 [w] a JOIN l3 [w] c ON a.src = c.src "
    "WHERE c.proto = {} AND NOT EXISTS (SELECT * FROM l2 [w] b WHERE b.src = a.src)"
)


def negation_and_join(sizes: Sizes) -> None:
    """Q4, with the negation below and above the join."""
    print()
    names = [f"{t.value}, {n}" for n in ("pushed", "pulled") for t in (NEGATIVE, PATTERN, DIRECT)]
    table("query", "window", *names, "fastest", "state: pattern, pushed", "pulled")
    session = declared(LINKS)
    best: dict[str, list[str]] = {}
    gain: dict[str, list[float]] = {}
    order: dict[str, list[float]] = {}
    for title, proto, shared in (("small join", FTP, 0.02), ("explosive join", TELNET, 0.02)):
        best[title], gain[title], order[title] = [], [], []
        for window in sizes.windows:
            plan = planned(session, JOINED.format(proto).replace("[w]", f"[RANGE {window}]"))
            sides: dict[str, PhysicalPlan] = {}
            for where in ("pushed", "pulled"):
                made = by_technique(plan, NEGATIVE, PATTERN, DIRECT, negation=where)
                sides |= {f"{technique}, {where}": side for technique, side in made.items()}
            found = compare(plan, sides, sizes.feed(window, 3, shared=shared), repeats=2)
            least = min(found, key=lambda side: found[side].seconds)
            row(
                f"Q4 {title}",
                f"{window:,}",
                *(f"{found[name].seconds / found[least].seconds:.2f}" for name in names),
                least,
                f"{found['pattern, pushed'].state:,}",
                f"{found['pattern, pulled'].state:,}",
            )
            best[title].append(least)
            gain[title].append(found["pattern, pushed"].seconds / found["pattern, pulled"].seconds)
            order[title].append(
                found["negative, pulled"].seconds / found["negative, pushed"].seconds
            )
    print()
    for title in best:
        shape(
            found=min(order[title]) > 1,
            says=f"Q4 {title}: with negative, negation pushed down is faster",
            seen=f"pulled / pushed {listed(order[title])}",
        )
    shape(
        found=best["small join"][-1] == "pattern, pulled",
        says="Q4: pattern with the negation pulled up is best for the largest window",
        seen=", ".join(best["small join"]),
        why="the crossover is the other way round: the result of the join, which is counted when "
        "the negation stands above, grows with the square of the window, its inputs do not",
    )
    shape(
        found=best["small join"][0] == "negative, pushed",
        says="Q4: negative with the negation pushed down is best for the smallest window",
        seen=best["small join"][0],
        why="each operator costs the same for a small batch; a join of intervals has fewest",
    )
    shape(
        found=gain["explosive join"][-1] < 1,
        says="Q4: pulling up loses where the join is explosive",
        seen=f"pushed / pulled with pattern {listed(gain['explosive join'])}, "
        f"small join {listed(gain['small join'])}",
    )


def main() -> None:
    """Print the tables."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    print(f"One core, best of {REPEATS} or 2 in turns; answers are compared before any time counts")
    kraemer(scale)
    count_windows(scale)
    sizes = Sizes((2_000, 8_000, 32_000), rows=int(16_000 * scale), step=2_000)
    print(f"\n## By update pattern: {sizes.rows:,} rows a link after windows have filled")
    joins(sizes)
    distincts(sizes)
    negations(sizes)
    negation_and_join(Sizes((500, 2_000, 8_000), rows=int(8_000 * scale), step=1_000))


if __name__ == "__main__":
    main()
