"""The stages of a step: what is done, and in which order.

Law: a process that is killed after any stage leaves what the next one goes on from: the step is
taken again as it was, or it is done. Without a checkpoint some stages do nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.runtime.local.commit import Commit
from tidemill.runtime.local.growing import GrowingFiles
from tidemill.runtime.local.input_log import Begun
from tidemill.runtime.local.keeping import stream_commits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidemill.engine.engine import Flow
    from tidemill.model.batch import Batch
    from tidemill.runtime.local.archives import Archives
    from tidemill.runtime.local.delivering import Delivery
    from tidemill.runtime.local.growing import Source
    from tidemill.runtime.local.intake import Intake
    from tidemill.runtime.local.keeping import Keeper
    from tidemill.runtime.local.runner import LocalRunner
    from tidemill.runtime.local.sources import Arrival

__all__ = ["STAGES", "Step", "take_stages"]


@dataclass(slots=True)
class Step:
    """A step on its way.

    Attributes:
        number: Its number.
        intake: The streams that are read.
        sources: What they are read from.
        readers: What can be read of each stream now.
        groups: The streams that are read together.
        relations: The rows of relations for inputs that have not had them.
        runner: The operators.
        delivery: What becomes of answers.
        keeper: What keeps it all, if there is a checkpoint.
        epoch: That of the queries that began last.
        fed: The inputs that have had the rows of their relations when it is done.
        archives: The rows that streams keep.
        inputs: The streams of inputs that are of a query's own.
        ends: Whether the streams end with it.
        streams: What has come on each stream.
        answers: What each query has given in it.
    """

    number: int
    intake: Intake
    sources: Mapping[str, Source]
    readers: dict[str, Iterator[Arrival]]
    groups: frozenset[frozenset[str]]
    relations: Mapping[str, Flow]
    runner: LocalRunner
    delivery: Delivery
    keeper: Keeper | None
    epoch: int
    fed: frozenset[str]
    archives: Archives
    inputs: Mapping[str, str]
    ends: bool = False
    streams: dict[str, Flow] = field(default_factory=dict)
    answers: dict[str, list[Batch]] = field(default_factory=dict)


def take(step: Step) -> None:
    """Take what can be read now, and let time pass."""
    intake = step.intake
    step.streams = intake.take(step.readers, ends=False)
    intake.pass_time(step.groups)
    for name, flow in step.streams.items():
        gate = intake.gates[name]
        if step.ends:
            gate.finish()
        flow.watermark = gate.watermark


def compute(step: Step) -> None:
    """Pass it through the operators."""
    replayed = step.archives.replayed(step.inputs, step.streams)
    step.answers = step.runner.step({**step.streams, **step.relations, **replayed})


def note(step: Step) -> None:
    """Write down what the step depends on, if anything of it can be seen."""
    if step.keeper is None:
        return
    noted, has_rows = step.intake.noted, any(b.height for s in step.answers.values() for b in s)
    if not (noted.reads or has_rows or step.ends):
        return  # time has passed, and nothing has come of it
    files = {n: s for n, s in step.sources.items() if isinstance(s, GrowingFiles)}
    taken = {name: len(source.taken) for name, source in files.items()}
    step.keeper.note(step.sources, Begun(step.number, noted, taken, step.ends, step.archives.leg()))


def deliver(step: Step) -> None:
    """Give the answers to where they go."""
    known, gates = step.runner.known, step.intake.gates
    step.delivery.deliver(step.number, step.answers, known, gates)


def save(step: Step) -> None:
    """Write what is new of the state, and of what streams keep."""
    replays = step.archives.advance()
    step.archives.take(step.number, step.intake.kept, step.intake.gates)
    step.archives.replays = replays
    if step.keeper is None:
        return
    commit = Commit(
        step.number + 1,
        step.intake.now,
        step.epoch,
        stream_commits(step.intake, step.sources),
        tuple(sorted(step.fed)),
        step.runner.known,
        step.ends,
        replays,
        step.keeper.left,
    )
    step.keeper.save(commit, step.runner, step.intake.gates)


def commit(step: Step) -> None:
    """Let the step be done."""
    if step.keeper is not None:
        step.keeper.commit()
    step.delivery.publish()


STAGES: tuple[Callable[[Step], None], ...] = (take, compute, note, deliver, save, commit)
"""Each can be the last one before a kill."""


def take_stages(step: Step) -> None:
    """Take a step from its begin to its end.

    Raises:
        RunError: A source or a sink cannot be read or written.
        OSError: The checkpoint cannot be written.
    """
    for stage in STAGES:
        stage(step)
