"""Entrances: what is done with the rows of an input where they come in.

Channels that go together go as bundles, all others by themselves. Nothing is remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.engine.bundles import rest_of
from tidemill.engine.engine import Engine, Metrics
from tidemill.engine.flows import Flow
from tidemill.model.time import Time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.engine.bundles import Bundle
    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Channel, Fragment

__all__ = ["Entrance"]


class Entrance:
    """The operators at which the rows of one input come in.

    Args:
        fragment: What is done with the rows of the input where they come in.
        bundles: The channels of it that go together.
    """

    def __init__(self, fragment: Fragment, bundles: Sequence[Bundle]) -> None:
        self._bundles = bundles
        self._engine = Engine(rest_of(fragment, self._bundles))
        (self._input,) = fragment.reads
        self._told = self._nothing_done()

    def step(self, batch: Batch) -> Iterator[tuple[Channel, Batch]]:
        """What rows become, and on which channel it goes."""
        rest = self._engine.fragment
        outputs = self._engine.step({self._input: Flow([batch], Time(0))})
        for channel in rest.writes:
            yield from ((channel, out) for out in outputs[channel.name].batches)
        for bundle in self._bundles if batch.height else ():
            packed = bundle.packed(batch, self._told)
            if packed.height:
                yield bundle.channel, packed

    def drain(self) -> dict[str, Metrics]:
        """What operators have done since this was asked last."""
        told, self._told = self._told, self._nothing_done()
        return {**self._engine.drain(), **told}

    def _nothing_done(self) -> dict[str, Metrics]:
        members = (member for bundle in self._bundles for member in bundle.members)
        return {name: Metrics() for member in members for name in member.tells}
