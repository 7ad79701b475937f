"""Handover: how what an operator remembers is taken out by its meaning, and taken in by another.

Three methods of an operator whose traits say ``hands_over``. They are asked at a ``time`` that all
its inputs have passed and that it has been told:

    remembered   the elements of an input that can still matter to it
    remember     take such elements in, and emit nothing
    standing     what it has emitted that is still there at or after ``time``

Law:    a new state that remembers, port by port, what another state of the operator remembered,
        goes on like that one: what both emit from then on has the same snapshots, and so have what
        they remember and what stands. The state that was asked stays as it is.
Law:    at every instant from ``time`` on, ``standing`` has the snapshot of all that was emitted.

What is handed over is a batch of its form. What starts before ``time`` has been reckoned with; what
starts at or after it has not, unless the operator emits at once. So starts from ``time`` on are
true, and others say no more than that: an operator that does not know them says ``time - 1``.

    interval   Elements that end after ``time``. They may be cut or merged otherwise than they came.
    signed     Rows that are there, as changes before ``time`` that appear; then the changes to come
               as they are, a row's withdrawal never without the row.

Where an operator takes either form it gives the signed one, and takes either.

What can still matter depends on the operator: rows that meet nothing whatever comes, as those with
a NULL that an equality forbids, are not remembered and not given. An operator with a weaker
condition must not be handed what one with a stronger condition remembered.

An operator that emits what has ended (``Emission.WHEN_ENDED``) owes the part of an open element
that lies before ``time``. What it remembers starts where that part does, so that nothing is lost
and nothing given twice; what ends at ``time`` is among it. Where elements are counted, as in
windows and aggregations, they come with columns of the engine's own that say what they count for.

What stands below
-----------------

An operator that emits at once, or takes and gives the signed form only, owes nothing. It may
remember, instead of what another one remembered, what stands below (``takes_what_stands``), since
it has emitted what that makes: this is how a port is filled that no operator had before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tidemill.model.batch import Form
from tidemill.physical.traits import Emission

if TYPE_CHECKING:
    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.physical.operator import Operator, State
    from tidemill.physical.traits import Traits

__all__ = ["HandsOver", "handover_of", "takes_what_stands"]


@runtime_checkable
class HandsOver(Protocol):
    """The methods of an operator that hands over its state."""

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        """The elements of an input that can still matter."""
        ...

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        """Take them in without emitting."""
        ...

    def standing(self, state: State, time: Time) -> Batch:
        """What it has emitted that is still there at or after the time."""
        ...


def handover_of(operator: Operator) -> HandsOver | None:
    """How an operator hands over its state; ``None`` if it cannot, or has none."""
    if not operator.traits.hands_over:
        return None
    assert isinstance(operator, HandsOver), "an operator that hands over has the methods"
    return operator


def takes_what_stands(traits: Traits) -> bool:
    """Whether an operator may remember what stands below it."""
    if not traits.hands_over:
        return False
    is_signed = all(form is Form.SIGNED for form in (*traits.takes, traits.gives))
    return traits.emits is Emission.AT_ONCE or is_signed
