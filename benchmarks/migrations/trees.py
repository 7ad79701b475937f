"""Four streams that meet in a key, and the trees in which they can be joined.

Zhu's selectivities differ from join to join. Here all streams meet in one key, and the keys of a
stream are drawn from the first so many numbers: of two streams, one over the number of the one that
has more is then the share of pairs that match, also where one of them is joined already. So the
chain A, B, C, D has any selectivities that do not grow from join to join.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidemill.algebra.expr import Call, Column, Named
from tidemill.algebra.plan import Join, JoinKind, Plan, Project, Source, TimeWindow, Window
from tidemill.algebra.tree import share
from tidemill.model.batch import END, ID, START
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.physical.joining.tree import Stage

if TYPE_CHECKING:
    from tidemill.physical.joining.tree import JoinTree

__all__ = ["NAMES", "SECOND", "Setting", "Tree", "rows_of", "staged", "written"]

SECOND = 1_000_000
"""A second, in microseconds."""

NAMES = ("a", "b", "c", "d")
"""The streams, from left to right."""

Tree: TypeAlias = "int | tuple[Tree, Tree]"
"""A stream by its number, or what is joined of two trees."""

_SCHEMA = Schema((Field("k", BIGINT), Field("v", BIGINT)))


@dataclass(frozen=True, slots=True)
class Setting:
    """What comes, and what it is asked.

    Attributes:
        name: What it is called.
        window: How long windows are, in seconds.
        rates: How many rows of each stream come in a second.
        keys: From how many keys those of each stream are drawn.
        old: The tree that runs.
        new: The one that takes over.
        seconds: For how long rows come.
        at: After how many seconds the new one is to take over.
        poisson: Whether rows come at random times, or equally far from each other.
    """

    name: str
    window: int
    rates: tuple[int, ...]
    keys: tuple[int, ...]
    old: Tree
    new: Tree
    seconds: int = 0
    at: int = 0
    poisson: bool = True

    def scaled(self, factor: int) -> Setting:
        """So many times as many rows and keys: as many matches for each row as before."""
        rates, keys = (
            tuple(factor * number for number in numbers) for numbers in (self.rates, self.keys)
        )
        return replace(self, rates=rates, keys=keys)


def rows_of(setting: Setting, seed: int) -> dict[str, list[pl.DataFrame]]:
    """The rows of each stream, second by second."""
    chance = Random(f"{seed} {setting.name}")  # noqa: S311 — not for secrets
    return {
        name: _seconds(setting, rate, keys, chance)
        for name, rate, keys in zip(NAMES, setting.rates, setting.keys, strict=True)
    }


def _seconds(setting: Setting, rate: int, keys: int, chance: Random) -> list[pl.DataFrame]:
    # Rows that come at random may all be earlier than the end: twice as many are drawn.
    count = setting.seconds * rate * (2 if setting.poisson else 1)
    drawn = pl.DataFrame(
        {name: [chance.random() for _ in range(count)] for name in ("key", "wait")},
        schema={"key": pl.Float64(), "wait": pl.Float64()},
    )
    number = pl.int_range(pl.len(), dtype=pl.Int64())
    time = (-(1 - pl.col("wait")).log()).cum_sum() / rate if setting.poisson else number / rate
    whole = drawn.select(
        (pl.col("key") * keys).cast(pl.Int64()).alias("k"),
        number.alias("v"),
        (time * SECOND).cast(pl.Int64()).alias(START),
    ).with_columns((pl.col(START) + 1).alias(END), pl.col("v").alias(ID))
    second = pl.col(START) // SECOND
    return [whole.filter(second == number) for number in range(setting.seconds)]


def written(setting: Setting, tree: Tree) -> Plan:
    """The query, written as a tree; its columns are in the same order whichever it is."""
    whole = _joined(setting, tree)
    fields = (whole.schema[f"{name}_v"] for name in NAMES)
    return share(Project(whole, tuple(Named(f.name, Column(f.name, f.type)) for f in fields)))


def _joined(setting: Setting, tree: Tree) -> Plan:
    if isinstance(tree, int):
        name = NAMES[tree]
        window = Window(Source(name, _SCHEMA), TimeWindow(setting.window * SECOND))
        named = (Named(f"{name}_{field.name}", Column(field.name, BIGINT)) for field in _SCHEMA)
        return Project(window, tuple(named))
    left, right = (_joined(setting, part) for part in tree)
    names = (*left.schema.names, *right.schema.names)
    condition = Call("=", (_key(left), _key(right)), BOOLEAN)
    return Join(left, right, JoinKind.INNER, condition, names)


def _key(plan: Plan) -> Column:
    """The key in one of the streams of a plan."""
    return Column(next(name for name in plan.schema.names if name.endswith("_k")), BIGINT)


def staged(tree: Tree) -> JoinTree:
    """A tree as the operator takes it that can change it."""
    return tree if isinstance(tree, int) else Stage(tuple(map(staged, tree)))
