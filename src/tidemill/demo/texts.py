"""Texts of the auction site: names, places, channels, and words by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.demo.chance import Chance

__all__ = [
    "CHANNELS",
    "CITIES",
    "FAVOURITES",
    "FIRST_NAMES",
    "LAST_NAMES",
    "STATES",
    "URLS",
    "card_numbers",
    "picked",
    "words",
]

FIRST_NAMES = [
    *("Peter", "Paul", "Luke", "John", "Saul", "Vicky"),
    *("Kate", "Julie", "Sarah", "Deiter", "Walter"),
]
LAST_NAMES = [
    *("Shultz", "Abrams", "Spencer", "White", "Bartels"),
    *("Walton", "Smith", "Jones", "Noris"),
]
CITIES = [
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
    *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
]
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]

_SITE = "https://www.nexmark.com"
_KNOWN = ("Google", "Facebook", "Baidu", "Apple")
_OTHERS = 10_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PER_WORD = 12
"""So many digits to the base of the letters and the blank fit into a number of 64 bits."""

FAVOURITES = len(_KNOWN)
"""So many of the channels have names that people know; half of the bids come through them."""


def _url(number: int) -> str:
    """Where a channel leads; nine in ten of those without a name say who they are."""
    path = "/".join(_LETTERS[number // 26**place % 26] * 3 for place in range(3))
    link = f"{_SITE}/{path}/item.htm?query=1"
    if number < FAVOURITES or number % 10 == 0:
        return link
    reverse = int(f"{number - FAVOURITES:032b}"[::-1], 2)
    return f"{link}&channel_id={abs(reverse - 2**32 if reverse >= 2**31 else reverse)}"


CHANNELS = [*_KNOWN, *(f"channel-{number}" for number in range(_OTHERS))]
URLS = [_url(number) for number in range(len(CHANNELS))]


def picked(choices: Sequence[str], places: pl.Series) -> pl.Series:
    """The texts at the given places."""
    return pl.Series(choices, dtype=pl.String).gather(places)


def words(
    chance: Chance, numbers: pl.Series, *, lane: str, most: int, blank: str = " "
) -> pl.Series:
    """Texts of three letters and more, with a blank now and then."""
    alphabet = _LETTERS + 2 * blank
    letters = []
    for start in range(0, most, _PER_WORD):
        digits = chance.words(numbers, lane=f"{lane} {start}")
        for _ in range(start, min(most, start + _PER_WORD)):
            letters.append(picked(list(alphabet), digits % len(alphabet)))
            digits = digits // len(alphabet)
    names = [str(place) for place in range(most)]
    text = pl.DataFrame(letters, schema=names).select(pl.concat_str(names)).to_series()
    length = chance.below(max(1, most - 3), numbers, lane=f"{lane} length") + 3
    frame = pl.DataFrame({"text": text, "length": length})
    return frame.select(pl.col("text").str.head(pl.col("length")).str.strip_chars(" ")).to_series()


def card_numbers(chance: Chance, numbers: pl.Series) -> pl.Series:
    """Numbers of credit cards: four groups of four digits."""
    card = chance.below(10**16, numbers, lane="card")
    groups = [card // 10 ** (4 * place) % 10**4 for place in (3, 2, 1, 0)]
    padded = pl.DataFrame({f"{n}": group.cast(pl.String) for n, group in enumerate(groups)})
    return padded.select(pl.concat_str(pl.all().str.zfill(4), separator=" ")).to_series()
