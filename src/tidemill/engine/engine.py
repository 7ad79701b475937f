"""One partition of one fragment: operators, their state, and how time passes through them.

``step`` takes what arrived on each channel since the last step, with the progress of the channel,
and gives what goes out on each channel, with its progress. Nothing depends on how the input is cut
into steps: outputs are snapshot-equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.operator import State
from tidemill.physical.state.saved import load_state, save_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.engine.fragments import Fragment, Node
    from tidemill.model.batch import Batch
    from tidemill.physical.state.saved import Saved

__all__ = ["Engine", "Flow", "Metrics"]


_WATERMARK = "@watermark"


@dataclass(slots=True)
class Flow:
    """Elements, and the promise that none that starts before ``watermark`` will follow."""

    batches: list[Batch]
    watermark: Time


@dataclass(slots=True)
class Metrics:
    """What an operator has done so far: the statistics the optimizer lives on."""

    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0


class Engine:
    """The operators of a fragment with the state of one partition."""

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        self.states: dict[str, State] = {
            n.name: n.apply.operator.new_state() for n in fragment.nodes
        }
        self.watermarks: dict[str, Time] = {node.name: Time(0) for node in fragment.nodes}
        self.metrics: dict[str, Metrics] = {node.name: Metrics() for node in fragment.nodes}

    def step(self, inputs: Mapping[str, Flow]) -> dict[str, Flow]:
        """Pass what arrived through the operators."""
        flows: dict[str, Flow] = {name: inputs[name] for name in self.fragment.reads}
        for node in self.fragment.nodes:
            flows[node.name] = self._run(node, [flows[name] for name in node.reads])
        return {channel.name: flows[channel.source] for channel in self.fragment.writes}

    def save(self) -> dict[str, Saved]:
        """The state of every operator by fingerprint, and how far time has come."""
        return {
            name: save_state(
                State(state.tables, {**state.numbers, _WATERMARK: self.watermarks[name]})
            )
            for name, state in self.states.items()
        }

    def load(self, saved: Mapping[str, Saved]) -> None:
        """Go on where another engine stopped; operators it did not have begin empty."""
        for name, state in self.states.items():
            if name in saved:
                load_state(state, saved[name])
                self.watermarks[name] = Time(state.numbers.pop(_WATERMARK))

    def measure(self) -> dict[str, Metrics]:
        """What each operator has done, and how much it remembers now."""
        for name, metrics in self.metrics.items():
            metrics.state_rows = self.states[name].rows()
            metrics.state_bytes = self.states[name].bytes()
        return self.metrics

    def _run(self, node: Node, ports: list[Flow]) -> Flow:
        operator, state = node.apply.operator, self.states[node.name]
        began, metrics = perf_counter(), self.metrics[node.name]
        out: list[Batch] = []
        for port, flow in enumerate(ports):
            for batch in flow.batches:
                metrics.rows_in += batch.height
                if batch.height:
                    out += operator.on_batch(state, port, batch)
        watermark = min((flow.watermark for flow in ports), default=END_OF_TIME)
        assert watermark >= self.watermarks[node.name], "time does not run backwards"
        if watermark > self.watermarks[node.name]:
            self.watermarks[node.name] = watermark
            out += operator.on_watermark(state, watermark)
        out = [batch for batch in out if batch.height]
        metrics.rows_out += sum(batch.height for batch in out)
        metrics.seconds += perf_counter() - began
        return Flow(out, min(watermark, operator.held(state)))
