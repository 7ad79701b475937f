"""Traits: what an operator promises, as a value that everyone who plans or runs it can read.

Nothing outside of ``physical`` asks an operator for its class: what there is to know about it is
here. Each trait is a law about the operator's behaviour (``tests/laws/test_traits.py``).

    takes        on each port, rows come in this form; ``None`` for either
    gives        rows leave in this form; ``None`` for the one form in which they come
    emits        AT_ONCE       what leaves is made of what comes, and nothing leaves on a watermark
                 ON_WATERMARK  what the watermark has passed leaves with it, and nothing is behind
                 WHEN_ENDED    an element leaves when its end is known, and may lie behind
    meets        on each port, rows that agree on these expressions must be in one partition, with
                 those of other ports that agree on theirs; none of them: all rows; ``None``: a row
                 may be anywhere. Wherever a row of a signed stream is, all its changes are there
    row_by_row   what leaves for a row depends on nothing else, so it does not matter where it is
    keeps_time   rows keep the time they came with
    keeps_rows   for each row that comes one leaves
    needs_ids    rows of one instant are ordered by their ids, or ids are told as columns
    waits        what is remembered may leave although no time has passed, because the operator has
                 become another one of its identity: it is told the watermark in every step
    delays       ``max_delay`` limits for how long what does not change is held back
    passes       on each port, the columns of the output that hold the value of an expression
    expiry       how the rows that leave expire, given how those that come do (G-21)
    instants     whether the elements that leave are valid for one instant each
    shortens     if all elements that come end earlier by some time, but those that stay for ever,
                 and those that are empty then do not come, the same is true of what leaves
    gains        fewer elements of the same snapshots mean less work, and the same snapshots leave
    merges       the rows that come leave in as few elements as they may, and never in more
    tables       what is remembered: names, keys and layouts
    counts       whether numbers are remembered besides
    adapts       its shape can be changed between two steps
    alike        a text that is equal for operators that can run as one (``engine/stacks.py``)
    hands_over   what it remembers can be taken out and taken in by meaning (``handover.py``)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.expr import Column
from tidemill.algebra.patterns import UpdatePattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidemill.algebra.expr import Expr, Named
    from tidemill.model.batch import Form
    from tidemill.model.schema import Field, Schema
    from tidemill.physical.operator import State

__all__ = [
    "Emission",
    "Expiry",
    "Instants",
    "Passes",
    "StateTable",
    "Traits",
    "pass_all",
    "pass_by_position",
    "pass_named",
    "state_tables",
]

Passes: TypeAlias = "Mapping[Expr, frozenset[str]]"
"""By expression over the columns of an input, the columns of the output that hold its value."""


class Emission(Enum):
    """When the rows of an operator leave it."""

    AT_ONCE = "at once"
    ON_WATERMARK = "on watermark"
    WHEN_ENDED = "when ended"


class Expiry(Enum):
    """How the update pattern of the output follows from those of the inputs."""

    SAME = "same"  # the most demanding of the inputs
    JOINED = "joined"  # ends are intersected: weak, if more than one input loses rows
    COUNTED = "counted"  # ends are those of the last duplicate: weak, if rows go at all
    STRICT = "strict"  # ends depend on what is still to come

    def of(self, below: Sequence[UpdatePattern]) -> UpdatePattern:
        """The pattern of the output."""
        strongest = max(below)
        match self:
            case Expiry.SAME:
                return strongest
            case Expiry.STRICT:
                return UpdatePattern.STRICT
            case Expiry.COUNTED:
                moves = strongest is not UpdatePattern.MONOTONIC
            case Expiry.JOINED:
                # What never goes changes no end.
                moves = sum(b is not UpdatePattern.MONOTONIC for b in below) > 1
            case _:
                assert_never(self)
        return max(strongest, UpdatePattern.WEAK) if moves else strongest


class Instants(Enum):
    """Whether every row of a snapshot of the output is an element by itself, of one instant."""

    LOST = "lost"  # equal rows at neighbouring instants may become one element
    KEPT = "kept"  # if all inputs have instants
    JOINED = "joined"  # if one input has instants
    MADE = "made"

    def of(self, below: Iterable[bool]) -> bool:
        """Whether the output has instants, given whether the inputs have."""
        match self:
            case Instants.LOST:
                return False
            case Instants.KEPT:
                return all(below)
            case Instants.JOINED:
                return any(below)
            case Instants.MADE:
                return True
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class StateTable:
    """A table of an operator's state: its name, the columns rows are found by, and its layout."""

    name: str
    key: tuple[str, ...]
    layout: str


@dataclass(frozen=True, slots=True)
class Traits:
    """What an operator promises; the module says what each trait means."""

    takes: tuple[Form | None, ...]
    gives: Form | None
    meets: tuple[tuple[Expr, ...] | None, ...]
    passes: tuple[Passes, ...]
    emits: Emission = Emission.AT_ONCE
    row_by_row: bool = False
    keeps_time: bool = False
    keeps_rows: bool = False
    needs_ids: bool = False
    waits: bool = False
    delays: bool = False
    expiry: Expiry = Expiry.SAME
    instants: Instants = Instants.LOST
    shortens: bool = False
    gains: bool = False
    merges: bool = False
    tables: tuple[StateTable, ...] = ()
    counts: bool = False
    hands_over: bool = False
    adapts: bool = False
    alike: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        ports = {len(self.takes), len(self.meets), len(self.passes)}
        assert len(ports) == 1, "each port has a form, a place and columns"

    @property
    def remembers(self) -> bool:
        """Whether what leaves can depend on what came in an earlier batch."""
        return bool(self.tables) or self.counts

    @property
    def passes_through(self) -> bool:
        """Whether it can stand where rows come in, before there are partitions and time."""
        return self.row_by_row and self.keeps_time

    @property
    def in_time(self) -> bool:
        """Whether changes leave when the watermark has passed them, neither before nor after."""
        return self.emits is Emission.ON_WATERMARK


def state_tables(state: State) -> tuple[StateTable, ...]:
    """The tables of a state."""
    return tuple(StateTable(n, table.key, table.layout) for n, table in state.tables.items())


def pass_all(columns: Schema) -> Passes:
    """Every column under its name."""
    return pass_by_position(columns, columns.names)


def pass_by_position(columns: Iterable[Field], names: Iterable[str]) -> Passes:
    """Every column under the name that stands at its place."""
    both = zip(columns, names, strict=True)
    return {Column(field.name, field.type): frozenset({name}) for field, name in both}


def pass_named(named: Iterable[Named]) -> Passes:
    """Every expression under the names that it is given."""
    passes: dict[Expr, frozenset[str]] = {}
    for one in named:
        passes[one.expr] = passes.get(one.expr, frozenset()) | {one.name}
    return passes
