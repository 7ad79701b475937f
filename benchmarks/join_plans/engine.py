"""Zhu's settings and Golab's orders on the real engine: what joins cost, and what they keep.

Zhu's rates are scaled down: with the printed ones there would be up to 16 million results in a
second. Their ratios stay, and so does what there is to be seen: which plan keeps more. Rows come in
steps; time is that of the processor, the least of some turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from time import process_time
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.harness.stepped import Stepped
from tidemill.algebra.expr import Call, Column, conjunction
from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.optimizer.physical.merge_joins import merge_joins
from tidemill.optimizer.planning import Planning
from tidemill.optimizer.search.probe_orders import probe_orders
from tidemill.physical.operators.join.multi_join import EAGER, MultiJoin, ShortLived
from tidemill.physical.plan import Exchange, inputs, over

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.join_plans.golab import Streams
    from benchmarks.join_plans.settings import Setting
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Run", "chain_run", "one_join"]

SECOND = 1_000_000
_STEPS = 100


@dataclass(frozen=True, slots=True)
class Run:
    """What a run took.

    Attributes:
        seconds: Of the processor.
        state: How many rows were kept, on average over the second half.
        results: How many there are.
    """

    seconds: float
    state: float
    results: int


# Zhu's chains


def chain_run(setting: Setting, scale: float, *, multiway: bool, seed: int) -> Run:
    """A chain of streams, joined by joins of two or by one join.

    The planner makes no such chain one join, whose rows would have to be in several places at once;
    in one partition they can.
    """
    frames = _chain(setting, scale, seed)
    planning = Planning(optimized=False)
    with tidemill.connect() as session:
        for name, frame in frames.items():
            session.put(name, frame)
            columns = "l BIGINT, r BIGINT, t BIGINT"
            session.sql(f"CREATE STREAM {name} ({columns}) SOURCE memory('{name}') ORDERED BY t")
        session.sql(f"CREATE QUERY q AS {_chain_query(setting)}")
        engine = Stepped(session, planning=planning, changed=_merged if multiway else _in_one_place)
        return _stepped(engine, frames)


def _in_one_place(plan: PhysicalPlan) -> PhysicalPlan:
    """The plan without exchanges."""
    below = tuple(_in_one_place(one) for one in inputs(plan))
    return below[0] if isinstance(plan, Exchange) else over(plan, below)


def _merged(plan: PhysicalPlan) -> PhysicalPlan:
    return merge_joins(_in_one_place(plan), lazy=0, chosen=(), all_=True)[0]


def _stepped(engine: Stepped, frames: Mapping[str, pl.DataFrame]) -> Run:
    last = max(max(frame["t"].to_list(), default=0) for frame in frames.values())
    seconds, results, kept = 0.0, 0, []
    for number in range(_STEPS):
        low, high = (last * i // _STEPS for i in (number, number + 1))
        parts = {
            name: frame.filter(pl.col("t").is_between(low, high, closed="left"))
            for name, frame in frames.items()
        }
        began = process_time()
        given = engine.step(parts)
        seconds += process_time() - began
        results += sum(batch.height for batch in given["q"])
        if number >= _STEPS // 2:
            kept.append(engine.state()[0])
    return Run(seconds, sum(kept) / len(kept), results)


def _chain(setting: Setting, scale: float, seed: int) -> dict[str, pl.DataFrame]:
    """The rows of three windows: at random times, with values that make the selectivities."""
    chance = Random(f"{seed} {setting.number}")  # noqa: S311 — not for secrets
    values = [1, *(round(1 / share) for share in setting.shares), 1]
    frames = {}
    for number, rate in enumerate(setting.rates):
        time, rows = 0.0, []
        while (time := time + chance.expovariate(rate * scale)) < 3 * setting.window:
            left, right = (chance.randrange(values[i]) for i in (number, number + 1))
            rows.append((left, right, int(time * SECOND)))
        frames[f"s{number}"] = pl.DataFrame(rows, schema=["l", "r", "t"], orient="row")
    return frames


def _chain_query(setting: Setting) -> str:
    window = f"[RANGE {setting.window:g} SECONDS]"
    if len(setting.rates) == 3:  # noqa: PLR2004 — a chain of three
        return (
            f"SELECT s0.t AS a, s2.t AS b FROM s0 {window} JOIN s1 {window} ON s0.r = s1.l"
            f" JOIN s2 {window} ON s1.r = s2.l"
        )
    return (
        "SELECT x.a, y.b FROM"
        f" (SELECT s0.t AS a, s1.r AS k FROM s0 {window} JOIN s1 {window} ON s0.r = s1.l) AS x JOIN"
        f" (SELECT s3.t AS b, s2.l AS k FROM s2 {window} JOIN s3 {window} ON s2.r = s3.l) AS y"
        " ON x.k = y.k"
    )


# Golab's joins of many on one value


def one_join(  # noqa: PLR0913 — every setting has a name
    streams: Streams,
    order: Sequence[int],
    *,
    step: int,
    evaluation: int = EAGER,
    expiration: int = EAGER,
    restore: bool = True,
) -> Run:
    """The operator that joins windows on one value, fed ``step`` instants at once."""
    join = _join(len(streams.rates), order, evaluation, expiration, restore=restore)
    frames = _elements(streams)
    state = join.new_state()
    seconds, results, kept = 0.0, 0, []
    for low in range(0, streams.rows + 1, step):
        parts = [f.filter(pl.col(START).is_between(low, low + step, closed="left")) for f in frames]
        began = process_time()
        found = [out for port, part in enumerate(parts) for out in join.on_batch(state, port, part)]
        found += join.on_watermark(state, Time(low + step))
        seconds += process_time() - began
        results += sum(batch.height for batch in found)
        kept.append(state.rows())
    results += sum(batch.height for batch in join.on_watermark(state, END_OF_TIME))
    half = kept[len(kept) // 2 :]
    return Run(seconds, sum(half) / len(half), results)


def _join(
    inputs: int, order: Sequence[int], evaluation: int, expiration: int, *, restore: bool
) -> MultiJoin:
    names = tuple(f"v{number}" for number in range(inputs))
    columns = [Column(name, BIGINT) for name in names]
    return MultiJoin(
        tuple(Schema((Field("v", BIGINT),)) for _ in names),
        names,
        conjunction(*(Call("=", (columns[0], one), BOOLEAN) for one in columns[1:])),
        probe_orders(order),
        evaluation=evaluation,
        expiration=expiration,
        short_lived=ShortLived.RESTORE if restore else ShortLived.NO_RESTORE,
    )


def _elements(streams: Streams) -> list[pl.DataFrame]:
    """The rows of each stream, from when to when they count."""
    rows: list[list[tuple[int, int, int]]] = [[] for _ in streams.rates]
    for stream, time, value in streams.arrivals():
        rows[stream].append((value, time, time + streams.windows[stream]))
    schema = {"v": pl.Int64(), START: pl.Int64(), END: pl.Int64()}
    return [pl.DataFrame(of_stream, schema=schema, orient="row") for of_stream in rows]
