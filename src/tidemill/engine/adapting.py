"""Adapting: each partition decides in which tree a join of many inputs goes on (Z67).

Every so many steps in which rows came, and when rows take longer or there is too much state, the
combinations that there are of all sets of inputs are counted, and the best tree for them is looked
for. What a change has brought is measured, and one that did not help is taken back.

Law: whatever is decided, the snapshots of what is emitted are the same. While nothing moves, most
looks end before anything is counted.

What is remembered between two looks are numbers of the state of the join. So it is saved with it,
and another process goes on with it. Since time is measured in it, a batch that is computed again
may decide otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, log2
from time import process_time
from typing import TYPE_CHECKING, Final
from zlib import crc32

from tidemill.engine.adaptations import Adaptation, Kind
from tidemill.model.time import END_OF_TIME
from tidemill.optimizer.hysteresis import POLICY, Kept, Offer, Policy, consider, judge, refuse
from tidemill.optimizer.running_trees import MOST_INPUTS, Running, Trees, compared
from tidemill.physical.joining.tree import Stage, flat, states, text
from tidemill.physical.joining.tree_counts import Measured, measured
from tidemill.physical.joining.tree_shape import table_name, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.model.time import Time
    from tidemill.physical.adaptable import Adaptable
    from tidemill.physical.joining.tree_plan import StageOrders
    from tidemill.physical.operator import State

__all__ = ["Adapting", "Spent", "adapted"]

_MARK: Final = "adapt "
"""So the numbers begin that are remembered here."""

_SECOND: Final = 1_000_000
_GRAIN: Final = 8
"""So many steps there are between a number and its double; half of them are a change."""

_LITTLE: Final = 0.1
"""What there are fewer of than this, for each row, does not matter."""

_SELDOM: Final = 8
"""So many looks may end before anything is counted, one after the other."""

_SLOWER: Final = 2
"""Rows take longer if they take so many times as long as in the period before."""

_PERIODS: Final = 2
"""The effect of a change is known after so many periods between looks."""

_NEAR: Final = 0.8
"""State is near its limit if it takes this share of it."""

_FIRST_CREDIT: Final = 3_000_000
"""Looks may take so many nanoseconds in advance."""

_MOST_CREDIT: Final = 50_000_000
"""And so many if none was taken for long."""


@dataclass(frozen=True, slots=True)
class Adapting:
    """How joins adapt.

    Attributes:
        every: After how many steps with rows it is looked for a better tree.
        acts: Whether trees are changed; otherwise it is said what would be.
        quota: Which share of the time of the join looks may take.
        most_bytes: How many bytes the state of a join may take in a partition.
        policy: How reluctant changes are.
        clock: What work is measured by, in seconds: that of the process, since others that are busy
            do not make a tree worse.
    """

    every: int = 16
    acts: bool = True
    quota: float = 0.01
    most_bytes: float = inf
    policy: Policy = POLICY
    clock: Callable[[], float] = field(default=process_time, compare=False, repr=False)

    def shared(self, partitions: int) -> Adapting:
        """How joins adapt in one of so many partitions."""
        return replace(self, most_bytes=self.most_bytes / partitions)

    def written(self) -> dict[str, float]:
        """It as JSON, for workers; a limit that is infinite is left out."""
        facts = {"every": self.every, "acts": int(self.acts), "quota": self.quota}
        return facts if self.most_bytes == inf else {**facts, "most_bytes": self.most_bytes}

    @classmethod
    def read(cls, written: Mapping[str, float]) -> Adapting:
        """What was written."""
        most = written.get("most_bytes", inf)
        return cls(int(written["every"]), bool(written["acts"]), written["quota"], most)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a step has taken.

    Attributes:
        rows: How many rows came.
        began: When it began.
        clock: What time it is, in seconds.
    """

    rows: int
    began: float
    clock: Callable[[], float]

    @property
    def nanoseconds(self) -> int:
        """For how long it has worked so far."""
        return round((self.clock() - self.began) * 1e9)


def adapted(
    join: Adaptable, state: State, time: Time, spent: Spent, adapting: Adapting
) -> list[Adaptation]:
    """Look whether another tree is better, if it is time to; go on in it if it is.

    Args:
        join: The join.
        state: Its state, which may become that of another tree.
        time: What all its inputs have passed.
        spent: What the step has taken that it has just done.
        adapting: How it adapts.
    """
    numbers = _Numbers(state)
    if not spent.rows or time == END_OF_TIME:
        return []
    worked = spent.nanoseconds
    numbers.add("spent", worked)
    numbers.add("rows", spent.rows)
    if numbers.add("steps", 1) < adapting.every:
        return []
    numbers.earn(adapting.quota)
    told = _Look(join, state, time, numbers, adapting).decided()
    if numbers["counted"] > 1:  # what is done for the first time takes longer
        numbers.add("credit", worked - spent.nanoseconds)
    return told


class _Numbers:
    """The numbers that are remembered between looks."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __getitem__(self, name: str) -> int:
        return self._state.numbers.get(_MARK + name, 0)

    def __setitem__(self, name: str, number: int) -> None:
        if number:
            self._state.numbers[_MARK + name] = number
        else:
            self._state.numbers.pop(_MARK + name, None)

    def add(self, name: str, number: int) -> int:
        """Add to a number; what it is then."""
        self[name] = self[name] + number
        return self[name]

    def of(self, kind: str) -> dict[str, int]:
        """The numbers of a kind."""
        mark = _MARK + kind
        every = self._state.numbers.items()
        return {name.removeprefix(mark): n for name, n in every if name.startswith(mark)}

    def put(self, name: str, number: int) -> None:
        """Remember a number, if it is 0 as well."""
        self._state.numbers[_MARK + name] = number

    def forget(self, kind: str) -> None:
        """Forget the numbers of a kind."""
        for name in self.of(kind):
            del self._state.numbers[_MARK + kind + name]

    def earn(self, quota: float) -> None:
        """Have a share of the time of a period for looks."""
        first = 0 if self["periods in all"] else _FIRST_CREDIT
        self.add("periods in all", 1)
        credit = self["credit"] + first + round(self["spent"] * quota)
        self["credit"] = min(credit, _MOST_CREDIT)

    @property
    def kept(self) -> Kept:
        """What hysteresis remembers."""
        return Kept(*(self[name] for name in Kept.__dataclass_fields__))

    def keep(self, kept: Kept) -> None:
        """Remember it."""
        for name in Kept.__dataclass_fields__:
            self[name] = getattr(kept, name)


class _Look:
    """A look at a join."""

    def __init__(
        self, join: Adaptable, state: State, time: Time, numbers: _Numbers, adapting: Adapting
    ) -> None:
        self._join, self._state, self._time = join, state, time
        self._numbers, self._adapting = numbers, adapting
        self._measured = measured(state)
        self._each = _each(numbers["spent"], numbers["rows"])
        self._each_before = _each(numbers["past spent"], numbers["past rows"])

    def decided(self) -> list[Adaptation]:
        """What is decided."""
        cause = self._cause()
        self._next_period()
        if cause is None or len(self._measured.came) > MOST_INPUTS:
            return []
        return self._compared(cause)

    def _cause(self) -> str | None:
        """Why it is worth to count; ``None`` if it is not."""
        numbers = self._numbers
        if numbers["changes"]:
            return "its effect" if numbers["periods"] + 1 >= _PERIODS else None
        if numbers["credit"] < -_MOST_CREDIT:
            return None
        if self._is_near_limit():
            return "state is near its limit"
        if self._each_before and self._each > _SLOWER * self._each_before:
            return "rows take longer"
        if numbers["periods in all"] == 1:  # windows may not be full
            self._has_moved()
            return None
        if numbers["credit"] < 0:
            return None
        if self._has_moved():
            numbers["skipped"] = 0
            return "rows or matches are other ones"
        if numbers["looks"] or numbers.add("skipped", 1) >= _SELDOM:
            numbers["skipped"] = 0
            return f"every {self._adapting.every * _SELDOM} steps"
        return None

    def _has_moved(self) -> bool:
        """Whether what was counted is not what it was at the last look that counted."""
        now, before = _seen(self._measured), self._numbers.of("seen ")
        if now.keys() == before.keys() and all(
            abs(number - before[name]) < _GRAIN / 2 for name, number in now.items()
        ):
            return False
        self._numbers.forget("seen ")
        for name, number in now.items():
            self._numbers.put(f"seen {name}", number)
        return True

    def _is_near_limit(self) -> bool:
        most = self._adapting.most_bytes
        return most < inf and self._state.bytes() > _NEAR * most

    def _next_period(self) -> None:
        """Begin another period between looks."""
        numbers = self._numbers
        for name in ("spent", "rows"):
            numbers[f"past {name}"], numbers[name] = numbers[name], 0
        numbers.add("past steps", numbers["steps"])
        numbers["steps"] = 0
        if numbers["changes"]:
            numbers.add("periods", 1)

    def _compared(self, cause: str) -> list[Adaptation]:
        """Count, compare, and go on in the tree that is chosen."""
        self._numbers.add("counted", 1)
        running = self._running()
        if running is None:
            return []
        found = compared(running)
        if self._numbers["changes"]:
            return self._judged(running, found)
        return self._considered(running, found, cause)

    def _running(self) -> Running | None:
        """What there is to know of the join; ``None`` if nothing has come since the last look."""
        now, numbers = self._measured, self._numbers
        passed = now.passed - numbers["passed"]
        came = [count - numbers[f"came {port}"] for port, count in enumerate(now.came)]
        if passed <= 0 or min(came) < 0 or not any(came):  # nothing has, or counts were halved
            passed, came = now.passed, list(now.came)
        numbers["passed"] = now.passed
        for port, count in enumerate(now.came):
            numbers[f"came {port}"] = count
        if passed <= 0 or not sum(came):
            return None
        steps, numbers["past steps"] = numbers["past steps"], 0
        return Running(
            now.tree,
            self._join.probed(self._state),
            tuple(count / passed for count in came),
            self._join.agreeing(self._state),
            steps / passed,
            self._most_rows(),
        )

    def _most_rows(self) -> float:
        most = self._adapting.most_bytes
        if most == inf:
            return inf
        rows = self._state.rows()
        return _NEAR * most * rows / max(self._state.bytes(), 1)

    def _considered(self, running: Running, found: Trees, cause: str) -> list[Adaptation]:
        """Take the best tree, if it is worth it."""
        numbers, best = self._numbers, found.best
        assert isinstance(best.tree, Stage), "two inputs or more are joined"
        orders = {s: own for s, own in best.orders.items() if len(s.children) > 2}  # noqa: PLR2004
        old_orders = {s: running.orders[s] for s in running.orders if len(s.children) > 2}  # noqa: PLR2004
        is_same = best.tree == running.tree and orders == old_orders
        number = 0 if is_same else _number(best.tree, orders)
        price = found.price
        offer = Offer(number, found.own, best.cpu, price, is_pressing=found.is_pressing)
        kept, is_taken = consider(numbers.kept, offer, self._time, self._adapting.policy)
        numbers.keep(kept)
        if not is_taken:
            return []
        told = Adaptation(
            Kind.CHANGED if self._adapting.acts else Kind.ADVISED,
            self._time,
            _named(running.tree, old_orders),
            _named(best.tree, orders),
            cause,
            found.own * _SECOND,
            best.cpu * _SECOND,
            price,
            self._each,
        )
        if not self._adapting.acts:  # it is not said again and again
            numbers.keep(refuse(kept, number, self._time, self._adapting.policy))
            return [told]
        self._change(best.tree, orders)
        numbers["changes"], numbers["periods"] = number, 0
        numbers["old"] = _tree_number(running.tree)
        numbers["before"] = self._each
        numbers["then"] = _per_row(found.own, running)
        return [told]

    def _judged(self, running: Running, found: Trees) -> list[Adaptation]:
        """Find out what a change has brought, and take it back if it was worse."""
        numbers = self._numbers
        old = _tree_of_number(numbers["old"], len(running.rates))
        would = compared(replace(running, tree=old, orders={}))
        # The old tree would take longer as well, if there is more to do than then.
        more = max(_per_row(would.own, running) / max(numbers["then"], 1), 1.0)
        rows = numbers["past rows"]
        after = _each(numbers["past spent"], rows)
        before = numbers["before"]
        number = numbers["changes"]
        kept, is_undone = judge(
            numbers.kept, number, before * more, after, self._time, self._adapting.policy
        )
        numbers.keep(kept)
        for name in ("changes", "periods", "old", "before", "then"):
            numbers[name] = 0
        told = Adaptation(
            Kind.KEPT,
            self._time,
            text(old),
            text(running.tree),
            "its effect",
            own=would.own * _SECOND,
            best=found.own * _SECOND,
            before=before,
            after=after,
        )
        if not is_undone:
            return [told]
        self._change(old, {})
        back = replace(told, kind=Kind.UNDONE, old=told.new, new=told.old, own=told.best)
        return [replace(back, best=told.own, price=would.price, cause="rows take longer")]

    def _change(self, tree: Stage, orders: StageOrders) -> None:
        self._join.adapt(self._state, tree, self._time, orders)
        for name in ("past spent", "past rows", "skipped"):
            self._numbers[name] = 0
        self._numbers.forget("seen ")


def _each(spent: int, rows: int) -> int:
    """For how many nanoseconds a row was worked."""
    return spent // rows if rows else 0


def _per_row(cpu: float, running: Running) -> int:
    """What a tree is expected to take for a row, in thousandths of a nanosecond."""
    return round(cpu / max(sum(running.rates), 1e-12) * 1e6)


def _seen(now: Measured) -> dict[str, int]:
    """What was counted, for a row that comes, as logarithms; too little does not matter."""
    came = max(sum(now.came), 1)
    every = {f"came {port}": count / came for port, count in enumerate(now.came)}
    there = max(sum(rows for mask, rows in now.rows.items() if mask.bit_count() == 1), 1)
    every |= {f"rows {mask}": rows / there for mask, rows in now.rows.items()}
    every |= {f"met {one} {other}": met.found / came for (one, other), met in now.met.items()}
    seen = {name: round(_GRAIN * log2(max(number, _LITTLE))) for name, number in every.items()}
    return {**seen, "rate": round(_GRAIN * log2(came / max(now.passed, 1)))}


def _named(tree: Stage, orders: StageOrders) -> str:
    """A tree with the orders of its stages of three and more parts, as it is read."""
    told = [",".join("".join(map(str, order)) for order in own) for own in orders.values()]
    return " ".join([text(tree), *told])


def _number(tree: Stage, orders: StageOrders) -> int:
    """A number for a tree and its orders, not 0."""
    return crc32(_named(tree, orders).encode()) or 1


def _tree_number(tree: Stage) -> int:
    """A number that says which tree it is: which combinations it remembers."""
    count = tree.mask.bit_count()
    return sum(stage.mask << (count * place) for place, stage in enumerate(states(tree)))


def _tree_of_number(number: int, inputs: int) -> Stage:
    """The tree that a number says."""
    names = [table_name(1 << port) for port in range(inputs)]
    while number:
        names.append(table_name(number & ((1 << inputs) - 1)))
        number >>= inputs
    tree = tree_of(names) if len(names) > inputs else flat(range(inputs))
    assert isinstance(tree, Stage), "two inputs or more are joined"
    return tree
