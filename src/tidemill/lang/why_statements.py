"""Statements that ask why: they are part of ``statements``, and are imported from there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.lang.lifecycle_statements import Instant
    from tidemill.lang.statements import Name

__all__ = ["Why", "WhyKind"]


class WhyKind(Enum):
    """What is asked of an answer: of rows that are there, that came or went, or that are not."""

    ROWS = "ROWS"
    CHANGE = "CHANGE"
    NOT = "NOT"


@dataclass(frozen=True, slots=True)
class Why:
    """WHY [ALL | CHANGE | NOT] target [WHERE condition] [DOWN TO name] [AT instant | AT NOW].

    Attributes:
        target: What is asked about: the name of a query, table or derived stream, or a query.
        kind: What is asked of its answer.
        condition: Of which rows, over the columns of the answer; ``None`` for all. There is one
            of rows that are not there.
        down_to: The derived stream at whose rows the explanation stops; ``None`` for streams.
        at: Of which instant; ``None`` for NOW, the last one that is known.
        flat: Whether the rows of streams are given, and not each step to them.
        sets: Whether they are given as sets beside the rows of the answer: SELECT PROVENANCE … AS
            OF instant, of which the target is the SELECT.
    """

    target: Name | exp.Expr
    kind: WhyKind = WhyKind.ROWS
    condition: exp.Expr | None = None
    down_to: Name | None = None
    at: Instant | None = None
    flat: bool = False
    sets: bool = False
