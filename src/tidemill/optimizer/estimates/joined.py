"""How elements of a join are made of those of its inputs: which begin together, which agree.

A row that comes to a join meets all its partners at once, so its results begin at one instant, and
those that are left when it goes end at one. What is computed of a group changes once then, and not
once for each of them. Such elements are a *wave*; they agree in the columns of the row that came,
and in those that conditions say are equal to them.

And there are no more combinations of some columns of an input than this has rows, however often its
rows are in the join.

Laws: the rows of all waves are those of the flow, so ``together`` is the mean number of elements of
a group that begin at one instant: one, if each comes on its own. Whatever is known of sides, there
are no more combinations than without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import expm1, inf, log1p
from typing import TYPE_CHECKING, Final, TypeAlias

from tidemill.algebra.expr import Call, Column, conjuncts, used_columns
from tidemill.optimizer.characteristics import covered_part
from tidemill.optimizer.selectivity import seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidemill.algebra.expr import Expr, Named

__all__ = ["Joined", "Side", "Wave", "met"]

_MOST: Final = 1e30
_LEAST: Final = 1e-30
_MANY: Final = 64
"""Of joins of more inputs it is not told apart which row came last."""

Values: TypeAlias = "Callable[[Sequence[Expr]], float]"
"""How many combinations of values some expressions have."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Elements that begin together, since a row of one input has come.

    Attributes:
        rate: How many such waves there are in a microsecond.
        rows: How many elements one has, one at least.
        shared: The columns in which they agree.
    """

    rate: float
    rows: float
    shared: frozenset[str]

    def left(self, rows: float, chance: float) -> Wave:
        """What is left if there are so many elements on average, and any with a probability."""
        chance = max(chance, _LEAST)
        return replace(self, rate=self.rate * chance, rows=min(max(rows / chance, 1.0), _MOST))


@dataclass(frozen=True, slots=True)
class Side:
    """An input of a join.

    Attributes:
        columns: Its columns, and those that are equal to them.
        size: How many of its elements are valid at an instant.
        counted: How many there are, of which its columns have their values.
    """

    columns: frozenset[str]
    size: float
    counted: float = inf


@dataclass(frozen=True, slots=True)
class Joined:
    """What elements are made of.

    Attributes:
        waves: Those that begin together, one kind for each input.
        sides: The inputs.
    """

    waves: tuple[Wave, ...]
    sides: tuple[Side, ...]

    def renamed(self, new: Mapping[str, str]) -> Joined:
        """The same with other names for columns."""
        return self._with(lambda old: frozenset(new[name] for name in old if name in new))

    def projected(self, columns: Sequence[Named]) -> Joined:
        """The same with other columns: what is computed agrees where that does which it is of."""
        used = [(one.name, used_columns(one.expr)) for one in columns]
        return self._with(lambda old: frozenset(name for name, read in used if read <= old))

    def _with(self, moved: Callable[[frozenset[str]], frozenset[str]]) -> Joined:
        return Joined(
            tuple(replace(wave, shared=moved(wave.shared)) for wave in self.waves),
            tuple(replace(side, columns=moved(side.columns)) for side in self.sides),
        )

    def thinned(self, share: float) -> Joined:
        """What is left if each element is kept with a probability.

        >>> joined = Joined((Wave(1.0, 2.0, frozenset()),), ()).thinned(0.5)
        >>> round(joined.waves[0].rate, 2), round(joined.waves[0].rows, 2)
        (0.75, 1.33)
        """
        if share >= 1:
            return self
        waves = (
            wave.left(wave.rows * share, -expm1(wave.rows * log1p(-share)))
            for wave in self.waves
            if share > 0
        )
        return replace(self, waves=tuple(waves))

    def together(self, keys: Sequence[Expr], values: Values) -> float:
        """How many elements of a group begin together, on average.

        Args:
            keys: What elements of a group agree on.
            values: How many combinations of values some of them have.
        """
        rows = found = 0.0
        for wave in self.waves:
            free = [key for key in keys if not used_columns(key) <= wave.shared]
            rows += wave.rate * wave.rows
            found += wave.rate * seen(values(free) if free else 1.0, wave.rows)
        return max(rows / found, 1.0) if found > 0 else 1.0

    def combinations(self, keys: Sequence[Expr], values: Values, *, present: bool) -> float:
        """How many combinations of values there are at most: each is one of rows of the inputs.

        Args:
            keys: Of which expressions.
            values: How many combinations of values some of them have, if inputs have rows enough.
            present: Whether only those count that there are at an instant.
        """
        left, found = list(keys), 1.0
        while left:
            covers = []
            for side in self.sides:
                own = [key for key in left if used_columns(key) <= side.columns]
                if own:
                    most = values(own)
                    rows = seen(most, side.size) if present else min(most, side.counted)
                    covers.append((-len(own), rows, own))
            if not covers:
                return min(found * values(left), _MOST)
            _, rows, own = min(covers, key=lambda cover: cover[:2])
            found = min(found * rows, _MOST)
            left = [key for key in left if key not in own]
        return found


@dataclass(frozen=True, slots=True)
class Input:
    """What comes to a join.

    Attributes:
        joined: What it is made of, if it is a join itself.
        rate: How many elements come in a microsecond.
        side: The elements.
    """

    joined: Joined | None
    rate: float
    side: Side

    @property
    def waves(self) -> tuple[Wave, ...]:
        """Its waves; elements that come on their own are waves of one."""
        if self.joined is None:
            return (Wave(self.rate, 1.0, self.side.columns),)
        return self.joined.waves

    @property
    def sides(self) -> tuple[Side, ...]:
        """Its inputs."""
        return (self.side,) if self.joined is None else self.joined.sides


def met(first: Input, second: Input, share: float, condition: Expr) -> Joined | None:
    """What the pairs are made of that match.

    Args:
        first: One input.
        second: The other one.
        share: Which share of all pairs match.
        condition: When they do.
    """
    if len(first.sides) + len(second.sides) > _MANY:
        return None
    equal = []
    for part in conjuncts(condition):
        match part:
            case Call("=", (Column(one), Column(other))):
                equal.append((one, other))
            case _:
                pass
    waves = (*_meeting(first, second, share, equal), *_meeting(second, first, share, equal))
    sides = (*first.sides, *second.sides)
    return Joined(
        waves, tuple(replace(side, columns=_equal_to(side.columns, equal)) for side in sides)
    )


def _meeting(
    own: Input, other: Input, share: float, equal: Sequence[tuple[str, str]]
) -> Iterator[Wave]:
    """The waves that the elements of one input cause when they come."""
    partners = min(other.side.size * share, _MOST)
    if own.rate <= 0 or partners <= 0:
        return
    keys = {name for both in equal for name in both} & own.side.columns
    for wave in own.waves:
        # Elements that agree on what is looked up have the same partners.
        some = partners if keys <= wave.shared else wave.rows * partners
        left = wave.left(wave.rows * partners, covered_part(some))
        yield replace(left, shared=_equal_to(wave.shared, equal))


def _equal_to(columns: frozenset[str], equal: Sequence[tuple[str, str]]) -> frozenset[str]:
    """The columns, and those that are equal to them."""
    found = set(columns)
    for one, other in (*equal, *equal):
        if one in found or other in found:
            found |= {one, other}
    return frozenset(found)
