"""What plans do, measured: they are run step by step, on the local engine's runner.

Law: what is observed is what the same steps do in a session. The first steps, in which state fills,
can be left out: then what is remembered, and what is done in a step, is that of the steady state.
The same feed is the same work step by step, so of several turns the least of each step counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

from tidemill.physical.fragments import build_graph
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tidemill.engine.engine import Flow, Metrics
    from tidemill.model.batch import Batch
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Observed", "Seen", "least", "observe"]


@dataclass(slots=True)
class Seen:
    """What an operator did in all steps that count, and remembered at the end of one, on average.

    Attributes:
        rows_in: How many rows came.
        rows_out: How many rows left.
        took: For how many seconds it worked, by step.
        state_rows: How many rows it remembered.
        state_bytes: How many bytes they took.
    """

    rows_in: int = 0
    rows_out: int = 0
    took: list[float] = field(default_factory=list)
    state_rows: float = 0.0
    state_bytes: float = 0.0

    @property
    def seconds(self) -> float:
        """How long it worked."""
        return sum(self.took)


@dataclass(slots=True)
class Observed:
    """What plans did.

    Attributes:
        steps: How many steps count.
        took: For how many seconds there was work that is no operator's, by step.
        operators: Of each operator, by fingerprint.
    """

    steps: int = 0
    took: list[float] = field(default_factory=list)
    operators: dict[str, Seen] = field(default_factory=dict)

    @property
    def between(self) -> float:
        """For how long there was work that is no operator's."""
        return sum(self.took)

    @property
    def seconds(self) -> float:
        """How long all of it took."""
        return self.between + sum(one.seconds for one in self.operators.values())


def least(turns: Sequence[Observed]) -> Observed:
    """What several turns of the same took, each step at its fastest."""
    first = turns[0]
    operators = {
        name: replace(one, took=_fastest([turn.operators[name].took for turn in turns]))
        for name, one in first.operators.items()
    }
    return replace(first, took=_fastest([turn.took for turn in turns]), operators=operators)


def _fastest(turns: Sequence[Sequence[float]]) -> list[float]:
    return [min(step) for step in zip(*turns, strict=True)]


def observe(
    plans: Mapping[str, PhysicalPlan],
    feed: Iterable[Mapping[str, Flow]],
    *,
    partitions: int = 1,
    warm: int = 0,
    given: Callable[[int, Mapping[str, list[Batch]]], None] = lambda *_: None,
) -> Observed:
    """Run plans step by step.

    Args:
        plans: The plans, by query.
        feed: What comes in each step, by input.
        partitions: How many partitions there are.
        warm: How many steps come before those that count.
        given: Is told the number of each step and what each query gave in it.
    """
    runner, found = LocalRunner(build_graph(dict(plans)), partitions=partitions), Observed()
    for number, flows in enumerate(feed):
        began = perf_counter()
        answers = runner.step(flows)
        took = perf_counter() - began
        done = runner.drain()
        given(number, answers)
        if number >= warm:
            found.steps += 1
            worked = sum(metrics.seconds for place in done.values() for metrics in place.values())
            found.took.append(max(took - worked, 0.0))
            for place in done.values():
                _add(found.operators, place, found.steps)
    for one in found.operators.values():
        one.state_rows /= max(found.steps, 1)
        one.state_bytes /= max(found.steps, 1)
    return found


def _add(seen: dict[str, Seen], place: Mapping[str, Metrics], step: int) -> None:
    for name, metrics in place.items():
        one = seen.setdefault(name, Seen())
        if len(one.took) < step:
            one.took.append(0.0)
        one.took[-1] += metrics.seconds
        one.rows_in += metrics.rows_in
        one.rows_out += metrics.rows_out
        one.state_rows += metrics.state_rows
        one.state_bytes += metrics.state_bytes
