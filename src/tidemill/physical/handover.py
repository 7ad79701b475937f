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

What is handed over is a batch of its form. What starts before ``time`` has been reckoned with, and
what starts at or after it has not, unless the operator emits at once. So starts from ``time`` on
are true, and others say no more than that: an operator that does not know them says ``time - 1``.

    interval   Elements that end after ``time``. They may be cut or merged otherwise than they came.
    signed     Rows that are there have appeared before ``time``; then the changes to come, as they
               came. An operator that looks at changes only gives those alone.

An operator that takes either form gives the signed one, and takes either. One that counts elements,
as windows and aggregations do, gives interval form with columns of the engine's own, which say what
an element counts for. Only an operator of the same meaning can make use of these; other batches
hold the rows of the input, and whoever has such an input can remember them.

What can still matter depends on the operator. Rows that meet nothing, whatever comes, are neither
remembered nor given: those with a NULL that an equality forbids, and in a join of many inputs those
that do not meet what its condition asks of their input alone. So what one operator remembered must
not be handed to one that asks for less.

An operator that emits what has ended (``Emission.WHEN_ENDED``) owes the part of an open element
that lies before ``time``. What it remembers starts where that part does, whenever it came, so that
nothing is lost and nothing given twice; what ends at ``time`` is among it, and what it owes nothing
for starts at ``time``. So it can be handed over only to one of its meaning. One that emits ahead of
time what it knows (``interval.Distinct``) gives as starting later what it has not emitted yet.

What stands below
-----------------

An operator that emits at once, or takes and gives the signed form only, owes nothing and has
emitted all there is. It may remember, instead of what another one remembered, what stands below
(``takes_what_stands``): this is how a port is filled that no operator had before. Elsewhere that
would not do. What ended at ``time`` stands no more, and still has to be withdrawn in signed form.
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
