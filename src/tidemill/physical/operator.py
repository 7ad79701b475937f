"""The contract of a physical operator.

An operator is a constant description; a ``State`` belongs to one partition and is the only thing
that changes. The engine calls, in any order that time allows,

    on_batch       elements of one input; each starts at or after that input's last watermark
    on_watermark   all inputs have passed this time: nothing that starts before it will come

Law: the bag of elements ever emitted has, at every instant, the snapshot of the logical operator on
the snapshots of the inputs, for every way to cut the input into batches, every order of rows in a
batch, and every schedule of watermarks that ends with ``END_OF_TIME``. What is emitted is final.
After ``on_watermark(t)`` every later element starts at or after ``min(t, held(state))``, and state
holds nothing that cannot matter any more. After ``END_OF_TIME`` state is empty.

There is no ``on_end``: the end of a stream is a watermark. There is no ``open`` or ``close``:
resources belong to runtimes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time
    from tidemill.physical.state.table import Table
    from tidemill.physical.traits import Traits

__all__ = ["LEFT", "RIGHT", "Operator", "State", "with_delay"]

LEFT, RIGHT = 0, 1
"""The ports of an operator with two inputs; an operator with one has port ``LEFT`` only."""


@dataclass(slots=True)
class State:
    """What an operator remembers for one partition: named tables and a few numbers.

    Attributes:
        tables: The tables by name.
        numbers: The numbers by name.
        shaped: For an operator whose tables change: empty ones for the names that were saved.
            It raises a ``DamagedError`` if there can be none of such names.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    shaped: Callable[[Collection[str]], dict[str, Table]] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def remembers(self) -> bool:
        """Whether there can be anything to remember, now or later."""
        return bool(self.tables or self.numbers)

    def take_shape(self, names: Collection[str]) -> None:
        """Before it is filled: have the tables that were saved, if the operator can have others.

        Raises:
            DamagedError: It can have no tables of such names.
        """
        if self.shaped is not None and names != self.tables.keys():
            self.tables = self.shaped(names)

    def rows(self) -> int:
        """How many rows are remembered."""
        return sum(table.rows() for table in self.tables.values())

    def bytes(self) -> int:
        """How many bytes they take."""
        return sum(table.bytes() for table in self.tables.values())


class Operator(Protocol):
    """A physical operator."""

    @property
    def schema(self) -> Schema:
        """The columns of the output, without time."""
        ...

    @property
    def traits(self) -> Traits:
        """What it promises to the planner and the engine."""
        ...

    def new_state(self) -> State:
        """The state before any input."""
        ...

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Take elements of one input; emit what is certain now."""
        ...

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """All inputs have passed ``time``: emit what is certain now, forget what is over."""
        ...

    def held(self, state: State) -> Time:
        """No element still to be emitted from what is remembered starts before this time."""
        ...


def with_delay(operator: Operator, max_delay: int | None) -> Operator:
    """An operator that holds nothing back for longer, of one whose traits say that it delays."""
    described: Any = operator  # a dataclass, as all operators are
    limited: Operator = replace(described, max_delay=max_delay)
    return limited
