"""Pairs of rows with equal keys, made a bounded number at a time.

A key that many rows share, or no key at all, makes more pairs than memory holds. So they are
counted first where they can be many, and then made in parts: the elements by time, so that each
part meets only the partners that are valid meanwhile, and where that is not enough the partners
too. What a part costs is proportional to the pairs it makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["OTHER", "make_pairs"]

OTHER = "@other"
"""The suffix of a partner's column whose name the element has as well."""

_PAIRS_AT_ONCE = 1 << 21
"""About how many pairs are made at once."""

_PAIRS = "@pairs"


def make_pairs(
    elements: pl.DataFrame,
    partners: pl.DataFrame,
    keys: Sequence[str],
    other_keys: Sequence[str],
    *,
    nulls_equal: bool,
) -> Iterator[pl.DataFrame]:
    """Every element with every partner that has the same keys and may be valid at the same time.

    Args:
        elements: Rows with ``START`` and ``END``.
        partners: Others; columns named like one of the elements' get the suffix ``OTHER``.
        keys: Columns of the elements; without any, all pairs are made. No DOUBLE may stand alone:
            Polars finds no NaN where both columns are sorted.
        other_keys: Columns of the partners, of the same types.
        nulls_equal: Whether NULL equals NULL.
    """
    if elements.is_empty() or partners.is_empty():
        return
    if not keys:
        for some in _slices(elements, elements.height * partners.height):
            yield some.join(_near(some, partners), how="cross", suffix=OTHER)
        return

    def matching(some: pl.DataFrame, others: pl.DataFrame) -> tuple[pl.DataFrame, int]:
        """The partners that are in pairs, in how many each, and how many there are at most."""
        if some.height * others.height <= _PAIRS_AT_ONCE:
            return others, some.height * others.height
        counts = some.group_by(keys).agg(pl.len().cast(pl.Int64).alias(_PAIRS))
        found = others.drop(_PAIRS, strict=False).join(
            counts, left_on=other_keys, right_on=keys, nulls_equal=nulls_equal
        )
        return found, int(found[_PAIRS].sum())

    candidates, total = matching(elements, partners)
    for some in _slices(elements, total):
        near, here = candidates, total
        if total > _PAIRS_AT_ONCE:
            near, here = matching(some, _near(some, candidates))
        for part in _parts(near, here):
            yield some.join(
                part.drop(_PAIRS, strict=False),
                left_on=keys,
                right_on=other_keys,
                nulls_equal=nulls_equal,
                coalesce=False,
                suffix=OTHER,
            )


def _slices(elements: pl.DataFrame, pairs: int) -> Iterator[pl.DataFrame]:
    """The elements in parts of about as many pairs as are made at once, by time."""
    if pairs <= _PAIRS_AT_ONCE:
        yield elements
        return
    parts = -(-pairs // _PAIRS_AT_ONCE)
    yield from elements.sort(START).iter_slices(-(-elements.height // parts))


def _near(elements: pl.DataFrame, partners: pl.DataFrame) -> pl.DataFrame:
    """The partners that are valid at some instant between the elements' first and last."""
    first, last = elements[START].min(), elements[END].max()
    return partners.filter(pl.col(END) > first, pl.col(START) < last)


def _parts(partners: pl.DataFrame, pairs: int) -> Iterator[pl.DataFrame]:
    """The partners in parts of about as many pairs as are made at once."""
    if pairs <= _PAIRS_AT_ONCE:
        yield partners
        return
    part = pl.col(_PAIRS).cum_sum() // _PAIRS_AT_ONCE
    yield from partners.with_columns(part.alias(_PAIRS)).partition_by(_PAIRS)
