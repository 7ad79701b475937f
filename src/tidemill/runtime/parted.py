"""Answers made of parts: what several instances of a query have given, each for its own instants.

Law: at every instant before ``known``, the snapshot is the sum of those of the pieces that answer
it. In signed form a piece announces at its first instant what is there then, and withdraws at its
last what is still there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, SIGN, START, TIME, Form
from tidemill.model.time import END_OF_TIME, Time
from tidemill.runtime.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Piece", "clipped", "parted"]


@dataclass(frozen=True, slots=True)
class Piece:
    """What an instance has given, for some instants.

    Attributes:
        answer: What it has given.
        since: The first instant that counts.
        until: The first one that does not count any more.
        waits: Whether nothing of it counts yet, since pieces before it are not over.
    """

    answer: Answer
    since: Time
    until: Time
    waits: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether nothing is cut off."""
        return (self.since, self.until, self.waits) == (0, END_OF_TIME, False)

    @property
    def is_over(self) -> bool:
        """Whether all that counts has come."""
        return self.answer.known >= self.until


def parted(schema: Schema, pieces: Sequence[Piece]) -> Answer:
    """One answer made of pieces.

    Args:
        schema: The columns of all of them.
        pieces: What is there when, and from whom.
    """
    if len(pieces) == 1 and pieces[0].is_everything:
        return pieces[0].answer
    whole = Answer(schema, is_whole=all(piece.answer.is_whole for piece in pieces))
    for piece in pieces:
        if not piece.waits:
            whole.add(clipped(piece, schema))
    # What is over does not change any more, however far its instance has come.
    open_ = [piece.answer.known for piece in pieces if not piece.is_over]
    whole.known = Time(min(open_, default=END_OF_TIME))
    reads = [piece.answer.last_read for piece in pieces if piece.answer.last_read is not None]
    whole.last_read = max(reads, default=None)
    return whole


def clipped(piece: Piece, schema: Schema) -> Iterator[Batch]:
    """What a piece has given of the instants that count."""
    since, until = piece.since, piece.until
    cut = piece.answer.whole(Form.INTERVAL).with_columns(
        pl.col(START).clip(lower_bound=since), pl.col(END).clip(upper_bound=until)
    )
    yield cut.filter(pl.col(START) < pl.col(END))
    changes = piece.answer.whole(Form.SIGNED)
    if changes.is_empty() or piece.answer.known <= since:
        return  # what is there at the beginning is not known yet
    standing = _net(changes.filter(pl.col(TIME) <= since), schema, since, 1)
    between = changes.filter((pl.col(TIME) > since) & (pl.col(TIME) < until))
    yield pl.concat([standing, between])
    if until < END_OF_TIME and piece.is_over:
        yield _net(changes.filter(pl.col(TIME) < until), schema, until, -1)


def _net(changes: Batch, schema: Schema, time: Time, sign: int) -> Batch:
    """What changes add up to, as changes at one time."""
    total = changes.group_by(schema.names, maintain_order=True).agg(pl.col(SIGN).sum() * sign)
    there = total.filter(pl.col(SIGN) != 0)
    return there.select(*schema.names, pl.lit(time, pl.Int64).alias(TIME), SIGN)
