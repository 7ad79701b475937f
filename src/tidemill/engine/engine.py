"""One partition of one fragment: operators, their state, and how time passes through them.

``step`` takes what arrived on each channel since the last step, with the progress of the channel,
and gives what goes out on each channel, with its progress. Nothing depends on how the input is cut
into steps: outputs are snapshot-equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.engine.adapting import Spent, adapted
from tidemill.engine.flows import Flow
from tidemill.engine.handover import Handover, taken_in
from tidemill.engine.pool import in_pool
from tidemill.engine.stacks import Stack, members, move, stacked_state, stacks_of
from tidemill.errors import RunError, TooLargeError
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.adaptable import adaptable
from tidemill.physical.fragments import Node, Route, has_no_time
from tidemill.physical.limits import bounded
from tidemill.physical.operators.windows.validity import validity_of
from tidemill.physical.state.at_rest import Remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tidemill.engine.adaptations import Adaptation
    from tidemill.engine.adapting import Adapting
    from tidemill.engine.handover import AtRest
    from tidemill.engine.stacks import Gathered
    from tidemill.engine.views import View
    from tidemill.migration.moves import Moves
    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Fragment
    from tidemill.physical.operator import State

__all__ = ["Engine", "Flow", "Metrics"]


STACK_LIMIT_ROWS = 20_000
"""With more rows than this for each member in a step, a stack takes longer than its members."""


@dataclass(slots=True)
class Metrics:
    """What an operator has done in one partition, and what it remembers there.

    Attributes:
        rows_in: How many rows it has taken.
        rows_out: How many rows it has given.
        seconds: How long it has worked.
        state_rows: How many rows it remembers now.
        state_bytes: How many bytes they take.
        watermark: How far time has come for it.
        adapted: What it has decided about its tree, if it adapts.
    """

    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    watermark: Time = field(default=Time(0))
    adapted: tuple[Adaptation, ...] = ()


class Engine:
    """The operators of a fragment with the state of one partition.

    Operators that get rows in the first partition only rest in the others: there is nothing to
    compute, to remember or to wait for.

    Args:
        fragment: The operators.
        clock: What says for how many seconds they have worked.
        is_first: Whether it is the first partition.
        adapting: How joins adapt whose tree can change; ``None`` if they do not.

    Attributes:
        fragment: The operators.
        adapting: How joins adapt.
        states: What each operator, or stack of operators, remembers.
        watermarks: How far time has come for each of them.
        metrics: What each operator has done.
    """

    def __init__(
        self,
        fragment: Fragment,
        clock: Callable[[], float] = perf_counter,
        *,
        is_first: bool = True,
        adapting: Adapting | None = None,
    ) -> None:
        self.fragment = fragment
        self.adapting = adapting
        self._clock = clock
        self._resting = frozenset[str]() if is_first else fragment.alone
        nodes = tuple(node for node in fragment.nodes if node.name not in self._resting)
        self._units = _in_order(nodes)
        self._timed = _needs_time(fragment)
        found = {node.name: validity_of(node.apply.operator) for node in nodes}
        joins = {node.name: adaptable(node.apply.operator) for node in nodes}
        self._adaptable = {name: join for name, join in joins.items() if join is not None}
        self._validities = {name: v for name, v in found.items() if v is not None}
        self.states: dict[str, State] = {
            u.name: u.new_state() if isinstance(u, Stack) else u.apply.operator.new_state()
            for u in self._units
        }
        self.watermarks: dict[str, Time] = dict.fromkeys(self.states, Time(0))
        self.metrics: dict[str, Metrics] = {node.name: Metrics() for node in nodes}

    @in_pool
    def step(self, inputs: Mapping[str, Flow]) -> dict[str, Flow]:
        """Pass what arrived through the operators."""
        flows: dict[str, Flow] = {name: inputs[name] for name in self.fragment.reads}
        flows |= {name: Flow([], END_OF_TIME) for name in self._resting}
        for unit in list(self._units):
            nodes = [unit] if isinstance(unit, Node) else []
            if isinstance(unit, Stack):
                ports = [flows[node.reads[0]] for node in unit.nodes]
                gathered = unit.gathered(ports)
                if gathered.rows > STACK_LIMIT_ROWS * len(unit.nodes):
                    self._split(unit)
                    nodes = list(unit.nodes)
                else:
                    flows |= self._run_stack(unit, ports, gathered)
            for node in nodes:
                flows[node.name] = self._run(node, [flows[name] for name in node.reads])
        out = {channel.name: flows[channel.source] for channel in self.fragment.writes}
        return {name: Flow(flow.taken(), flow.watermark) for name, flow in out.items()}

    def remembered(self) -> dict[str, Remembered]:
        """What every operator or stack remembers, by its name."""
        return {
            name: Remembered(state, self.watermarks[name]) for name, state in self.states.items()
        }

    def restore(
        self, saved: Mapping[str, AtRest], moves: Moves = MappingProxyType({})
    ) -> list[Node]:
        """Go on with what was saved; operators that were not there get it moved, or begin empty.

        Args:
            saved: The states by name, of operators and of stacks, which may have had other
                members than those of this engine.
            moves: How operators that were not there get what others remember.

        Returns:
            The operators that can remember something and begin empty.

        Raises:
            DamagedError: A state is not what was saved, or that of another operator.
        """
        for unit in list(self._units):
            if isinstance(unit, Stack) and sum(n.name in saved for n in unit.nodes) > 1:
                self._split(unit)  # it was, or they would not have been by themselves
        filled: dict[str, State] = {}
        stacks = {node: name for name in saved for node in members(saved[name].numbers)}
        new: list[Node] = []
        for unit in self._units:
            if not self.states[unit.name].remembers:
                continue  # it learns the time with the next step
            if unit.name in saved:
                saved[unit.name].fill(self.states[unit.name])
                self.watermarks[unit.name] = saved[unit.name].watermark
                continue
            for node in unit.nodes if isinstance(unit, Stack) else (unit,):
                home = node.name if node.name in saved else stacks.get(node.name)
                if home is None:
                    new.append(node)
                    continue
                if home not in filled:
                    was_alone = home == node.name
                    old = node.apply.operator.new_state() if was_alone else stacked_state(node)
                    saved[home].fill(old)
                    filled[home] = old
                self._move(node, unit.name, filled[home], saved[home].watermark)
        return self._handed_over(new, Handover(moves, saved, self._remembered))

    def _handed_over(self, new: Sequence[Node], handover: Handover) -> list[Node]:
        """Let new operators have what others remember, those below first.

        Returns:
            Those that begin empty.
        """
        empty: list[Node] = []
        for unit in self._units:
            for node in self._members(unit):
                if node in new and (given := handover.of(node)) is not None:
                    taken_in(unit, node, given, self.states[unit.name])
                    known = self.watermarks[unit.name]
                    assert known in (0, given.watermark), "members of a stack are equally far"
                    self.watermarks[unit.name] = given.watermark
                elif node in new:
                    empty.append(node)
        return empty

    def _remembered(self, name: str) -> Remembered:
        """What an operator remembers, be it in a stack."""
        unit = next(u for u in self._units if name in {n.name for n in self._members(u)})
        remembered = Remembered(self.states[unit.name], self.watermarks[unit.name])
        if isinstance(unit, Node):
            return remembered
        node = next(member for member in unit.nodes if member.name == name)
        state = node.apply.operator.new_state()
        move(node, remembered.state, state)
        return Remembered(state, remembered.watermark)

    @staticmethod
    def _members(unit: Node | Stack) -> tuple[Node, ...]:
        return unit.nodes if isinstance(unit, Stack) else (unit,)

    def _split(self, stack: Stack) -> None:
        """Let each member run by itself from now on."""
        old, time = self.states.pop(stack.name), self.watermarks.pop(stack.name)
        for node in stack.nodes:
            self.states[node.name] = node.apply.operator.new_state()
            self.watermarks[node.name] = time
            move(node, old, self.states[node.name])
        place = self._units.index(stack)
        self._units[place : place + 1] = stack.nodes

    def _move(self, node: Node, to: str, old: State, time: Time) -> None:
        """Go on with the state of a node that is now in a stack, or no longer in the same."""
        move(node, old, self.states[to])
        assert self.watermarks[to] in (0, time), "members of a stack have the same watermark"
        self.watermarks[to] = time

    def measure(self) -> dict[str, Metrics]:
        """What each operator has done, and how much it remembers now."""
        for unit in self._units:
            state, time = self.states[unit.name], self.watermarks[unit.name]
            rows, bytes_ = state.rows(), state.bytes()
            shares = unit.rows(state) if isinstance(unit, Stack) else {unit.name: rows}
            for name, share in shares.items():
                metrics = self.metrics[name]
                metrics.state_rows = share
                metrics.state_bytes = bytes_ * share // max(rows, 1)
                metrics.watermark = time
        return self.metrics

    def drain(self) -> dict[str, Metrics]:
        """What each operator has done since this was asked last, and what it remembers now."""
        done = self.measure()
        self.metrics = {name: Metrics() for name in done}
        return done

    def _run(self, node: Node, ports: list[Flow]) -> Flow:
        validity = self._validities.get(node.name)
        if validity is not None and ports[0].view is not None and ports[0].view.validity is None:
            return self._view(node, ports[0], ports[0].view.windowed(validity))
        operator, state = node.apply.operator, self.states[node.name]
        began, metrics = self._clock(), self.metrics[node.name]
        adapting = self.adapting if node.name in self._adaptable else None
        busy = 0.0 if adapting is None else adapting.clock()
        given = [(port, batch) for port, flow in enumerate(ports) for batch in flow.taken()]
        rows = sum(batch.height for _, batch in given)
        metrics.rows_in += rows
        watermark = self._held(
            node.name, min((flow.watermark for flow in ports), default=END_OF_TIME), (node.name,)
        )
        assert watermark >= self.watermarks[node.name], "time does not run backwards"
        moves = watermark > self.watermarks[node.name] or node.apply.traits.waits

        def made() -> Iterator[Batch]:
            for port, batch in given:
                if batch.height:
                    yield from operator.on_batch(state, port, batch)
            if moves:
                yield from operator.on_watermark(state, watermark)

        values = sum(batch.height * batch.width for _, batch in given)
        try:
            out = [batch for batch in bounded(made(), values) if batch.height]
        except TooLargeError as error:
            raise _named(error, self.fragment.queries.get(node.name, ())) from None
        self.watermarks[node.name] = watermark
        metrics.rows_out += sum(batch.height for batch in out)
        if adapting is not None:
            spent, join = Spent(rows, busy, adapting.clock), self._adaptable[node.name]
            metrics.adapted += tuple(adapted(join, state, watermark, spent, adapting))
        metrics.seconds += self._clock() - began
        return Flow(out, min(watermark, operator.held(state)))

    def _held(self, unit: str, watermark: Time, nodes: Iterable[str]) -> Time:
        """How far time comes for an operator, or a stack, that may be held (Z52)."""
        if not self.fragment.held or watermark == END_OF_TIME:
            return watermark  # where streams have ended nothing is left to wait for
        limit = min(self.fragment.held.get(name, END_OF_TIME) for name in nodes)
        return min(watermark, max(limit, self.watermarks[unit]))

    def _view(self, node: Node, port: Flow, view: View) -> Flow:
        """What a window gives, for whoever looks at it."""
        assert not port.batches, "all that comes on a channel of a bundle comes in bundles"
        assert port.watermark >= self.watermarks[node.name], "time does not run backwards"
        self.watermarks[node.name] = port.watermark
        self.metrics[node.name].rows_in += replace(view, validity=None).count
        self.metrics[node.name].rows_out += view.count
        return Flow([], port.watermark, view)

    def _run_stack(self, stack: Stack, ports: list[Flow], gathered: Gathered) -> dict[str, Flow]:
        operator, state = stack.operator, self.states[stack.name]
        began = self._clock()
        out: list[Batch] = []
        if gathered.batch is not None:
            out += operator.on_batch(state, 0, gathered.batch)
        if gathered.crowd is not None:
            gathered.crowd.insert(state)
        watermark = ports[0].watermark
        assert all(flow.watermark == watermark for flow in ports), "they read the same input"
        watermark = self._held(stack.name, watermark, (node.name for node in stack.nodes))
        assert watermark >= self.watermarks[stack.name], "time does not run backwards"
        if watermark > self.watermarks[stack.name]:
            self.watermarks[stack.name] = watermark
            out += operator.on_watermark(state, watermark)
        # Readers of answers want to know how far these are known: as far as that of any member is.
        times = dict.fromkeys((node.name for node in stack.nodes), operator.held(state))
        if not self._timed.isdisjoint(times):
            times |= stack.held(state, self._timed)
        flows = {
            name: Flow(given, min(watermark, times[name]))
            for name, given in stack.separated(out).items()
        }
        seconds = (self._clock() - began) / len(stack.nodes)
        for node, port in zip(stack.nodes, ports, strict=True):
            metrics = self.metrics[node.name]
            metrics.rows_in += port.count()
            metrics.rows_out += sum(b.height for b in flows[node.name].batches)
            metrics.seconds += seconds
        return flows


def _named(error: TooLargeError, queries: Sequence[str]) -> RunError:
    """The error with the queries that the operator works for."""
    if not queries:
        return error
    names = ", ".join(f'"{name}"' for name in queries)
    word = "query" if len(queries) == 1 else "queries"
    return RunError(f"{word} {names}: {error.message}", hint=error.hint)


def _in_order(nodes: Sequence[Node]) -> list[Node | Stack]:
    """What runs one after another: what stacks read, the stacks, and all else."""
    stacks = stacks_of(nodes)
    stacked = {node.name for stack in stacks for node in stack.nodes}
    above = set(stacked)
    for node in nodes:
        if not above.isdisjoint(node.reads):
            above.add(node.name)
    before = [node for node in nodes if node.name not in above]
    after = [node for node in nodes if node.name in above - stacked]
    return [*before, *stacks, *after]


def _needs_time(fragment: Fragment) -> frozenset[str]:
    """The nodes whose progress an operator or another stage waits for."""
    needed = {channel.source for channel in fragment.writes if channel.route is not Route.QUERY}
    for node in reversed(fragment.nodes):
        if node.name in needed or not has_no_time(node.apply):
            needed.update(node.reads)
    return frozenset(needed)
