"""Probing: the elements of one input, made longer by one other input after another.

Law:    the bag of all combinations of an element with one partner of each step that meet what the
        steps ask for. A combination starts at the latest start, ends at the earliest end, and is
        left out if that is no interval; its weight is the product of the weights. So probing is
        linear in the elements and in each of the partners: a sum of weighted bags gives the sum of
        the results (G-33).
State:  none. Combinations that are not complete live only while they are made longer, a bounded
        number at a time for each step; where a step finds nothing the later ones are not made.

Weights are optional: a frame without ``WEIGHT`` counts each row once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START
from tidemill.physical.frames import pick
from tidemill.physical.joining.pairs import OTHER, make_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.physical.joining.partners import Partners

__all__ = ["WEIGHT", "Step", "probe"]

WEIGHT = "@weight"
"""The column with how often a row counts: 1 where it appears, -1 where it is taken back."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """How combinations meet the rows of one more input.

    Attributes:
        keys: Columns of the combinations.
        other_keys: Columns of the partners that must equal them; without any, all pairs are tried.
        computed: Columns to compute for the combinations before; they are left out afterwards.
        other_computed: Columns to compute for the partners before; likewise.
        nulls_equal: Whether NULL equals NULL. A key for which it does not is never NULL in the
            partners then.
        filters: What else must be true, of the columns of both.
        sought: Columns of the partners that are there without being computed, each once, in an
            order of their own, so that steps that look for the same have the same.
        given: The columns of the combinations that these must equal.
        over: The columns of pairs that are left out of combinations.
    """

    keys: tuple[str, ...] = ()
    other_keys: tuple[str, ...] = ()
    computed: tuple[pl.Expr, ...] = ()
    other_computed: tuple[pl.Expr, ...] = ()
    nulls_equal: bool = False
    filters: tuple[pl.Expr, ...] = ()
    sought: tuple[str, ...] = field(init=False)
    given: tuple[str, ...] = field(init=False)
    over: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        computed = {expr.meta.output_name() for expr in self.other_computed}
        both = zip(self.other_keys, self.keys, strict=True)
        pairs = {other: own for other, own in both if other not in computed}
        object.__setattr__(self, "sought", tuple(sorted(pairs)))
        made = (expr.meta.output_name() for expr in (*self.computed, *self.other_computed))
        over = frozenset((START + OTHER, END + OTHER, WEIGHT + OTHER, *made))
        object.__setattr__(self, "over", over)
        object.__setattr__(self, "given", tuple(pairs[other] for other in self.sought))


def probe(
    elements: pl.DataFrame,
    steps: Sequence[Step],
    partners: Sequence[Partners],
    met: list[int] | None = None,
) -> Iterator[pl.DataFrame]:
    """Every combination of an element with one partner of each step.

    Args:
        elements: Rows with ``START`` and ``END``, and maybe ``WEIGHT``.
        steps: What is asked for, input by input.
        partners: The rows of these inputs, likewise, of which only those are looked at that may
            match. Other columns have names of their own.
        met: As many numbers, to which it is added how many combinations leave each step.
    """
    if elements.is_empty() or any(others.is_empty() for others in partners):
        return
    if not steps:
        yield elements
        return
    for longer in _longer(elements, steps[0], partners[0]):
        if met is not None:
            met[-len(steps)] += longer.height
        yield from probe(longer, steps[1:], partners[1:], met)


def _longer(elements: pl.DataFrame, step: Step, others: Partners) -> Iterator[pl.DataFrame]:
    """The combinations with one partner more, a bounded number at a time."""
    if step.computed:
        elements = elements.with_columns(step.computed)
    partners = others.meeting(step.sought, pick(elements, step.given))
    if partners.is_empty():
        return
    if step.other_computed:
        partners = partners.with_columns(step.other_computed)
    both_weighted = WEIGHT in elements.columns and WEIGHT in partners.columns
    weight = [pl.col(WEIGHT) * pl.col(WEIGHT + OTHER)] if both_weighted else []
    keys = step.keys, step.other_keys
    for pairs in make_pairs(elements, partners, *keys, nulls_equal=step.nulls_equal):
        valid = pairs.with_columns(
            pl.max_horizontal(START, START + OTHER).alias(START),
            pl.min_horizontal(END, END + OTHER).alias(END),
            *weight,
        ).filter(pl.col(START) < pl.col(END))
        matched = valid.filter(*step.filters) if step.filters else valid
        # Not by drop, which takes longer than most of what is done with a few rows.
        yield pick(matched, [name for name in matched.columns if name not in step.over])
