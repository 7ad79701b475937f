"""Join of many interval streams in a tree of stages that can change while it runs.

Law:    snapshot(out, t) == snapshot(in 1, t) ⋈ … ⋈ snapshot(in n, t), for every t; whatever the
        tree, and however it was changed between two steps. A change emits nothing.
State:  a table for each part of the tree but the topmost: the inputs, and the combinations that
        stages above are made of. A row is there until the watermark has reached its end. What
        cannot match is never remembered. The names of the tables are the tree (``tree_shape.py``),
        so a state goes on in the tree in which it was saved. Besides, what has been counted, and
        the orders of probing that were chosen.
Order:  none promised; chronon if one of the inputs is. A combination leaves when its last element
        has come, so nothing is held back.

One stage of all inputs remembers no combination and makes them again and again (Z06); stages of two
make each once and remember it. What lies in between does both. An element that comes is remembered
and meets the other parts of its stage; what it finds is remembered and goes on to the next stage.
So each combination is found once, by the last of its elements, in each part that it belongs to.

There is one watermark for all inputs, so a part that was not remembered can be made of those below
it: what had to be forgotten of them is over in the part as well (Z42).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, Form, empty_batch, interval_columns
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.joining.meeting import meeting_keys, passes_of
from tidemill.physical.joining.partners import Living
from tidemill.physical.joining.probe import probe
from tidemill.physical.joining.side import numbered_inside
from tidemill.physical.joining.tree import JoinTree as Tree
from tidemill.physical.joining.tree import Stage, stages, states
from tidemill.physical.joining.tree_agreeing import agreeing
from tidemill.physical.joining.tree_counts import count_came, count_met, pass_time
from tidemill.physical.joining.tree_plan import TreePlan, is_order, order_numbers
from tidemill.physical.joining.tree_shape import mask_named, table_name, table_names, tree_of
from tidemill.physical.operator import State
from tidemill.physical.state.damaged import DamagedError
from tidemill.physical.traits import Expiry, Instants, Traits, state_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tidemill.algebra.expr import Expr
    from tidemill.model.batch import Batch
    from tidemill.physical.joining.tree_plan import StageOrders, TreeProbe
    from tidemill.physical.state.table import Table

__all__ = ["JoinTree", "shape"]

_NAMES_USED = "names used"
"""The number of a state that no segment of a table that was dropped had, nor a later one."""


@dataclass(frozen=True, slots=True)
class JoinTree:
    """Combinations of one row of each input for which the condition is true.

    State does not depend on ``tree``, ``orders`` and ``orderly``: if they change, it is kept, as
    the operator counts as the same.

    Attributes:
        inputs: The columns of each input; there are two at least.
        names: Names for the columns of all, in the order of the inputs.
        condition: What must be true, in these names.
        tree: In which stages inputs are joined at first.
        orders: For each input, the others in the order in which its elements would like to meet
            them; a stage keeps to it as far as they are parts of it. Without any, they are met in
            the order of their numbers.
        orderly: For each input, whether elements end in the order of their starts; those that do
            not are laid out by expiry. Without any, all do.
        schema: The columns of the output: those of all inputs under ``names``.
    """

    inputs: tuple[Schema, ...]
    names: tuple[str, ...]
    condition: Expr
    tree: Stage = field(compare=False)
    orders: tuple[tuple[int, ...], ...] = field(default=(), repr=False, compare=False)
    orderly: tuple[bool, ...] = field(default=(), repr=False, compare=False)
    schema: Schema = field(init=False, repr=False, compare=False)
    _plan: TreePlan = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ports = list(range(len(self.inputs)))
        assert len(self.orders) in (0, len(ports)), "each input has an order or none"
        assert all(sorted((p, *order)) == ports for p, order in enumerate(self.orders)), (
            "every input would meet each of the others once"
        )
        assert len(self.orderly) in (0, len(ports)), "each input is orderly or not"
        both = zip(self.names, (f for schema in self.inputs for f in schema), strict=True)
        fields = tuple(Field(name, f.type, f.nullable) for name, f in both)
        inside, condition = numbered_inside(self.names, fields, self.condition)
        plan = TreePlan(self.inputs, inside, condition, self.orders, self.orderly)
        assert self.tree.mask == plan.everything, "a tree joins all inputs"
        object.__setattr__(self, "schema", Schema(fields))
        object.__setattr__(self, "_plan", plan)

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=tuple(Form.INTERVAL for _ in self.inputs),
            gives=Form.INTERVAL,
            meets=meeting_keys(self.inputs, self.names, self.condition),
            passes=passes_of(self.inputs, self.names),
            expiry=Expiry.JOINED,
            instants=Instants.JOINED,
            gains=True,
            tables=state_tables(self.new_state()),
            counts=True,
            hands_over=True,
            adapts=True,
        )

    def new_state(self) -> State:
        """No element of any input, in the tree that is the first."""
        return State(self._shaped(table_names(self.tree)), shaped=self._shaped)

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the elements; emit their combinations with what others have brought."""
        elements = self._entry(port, batch)
        if elements.is_empty():
            return
        count_came(state, port, elements.height)
        for found in self._passed_on(state, self._plan.probes(state), 1 << port, elements):
            yield self._given(found)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Forget what no later element can meet."""
        # Ends are exclusive: an element ending at the watermark does not meet one starting there.
        for table in state.tables.values():
            table.purge(END, time)
        pass_time(state, time)
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """A combination starts no earlier than its last element, which has not come."""
        return END_OF_TIME

    def orders_of(self, stage: Stage) -> tuple[tuple[int, ...], ...]:
        """For each child of a stage, the numbers of the others in the order it probes at first."""
        return self._plan.orders_of(stage)

    def adapt(
        self, state: State, tree: Tree, time: Time, orders: StageOrders | None = None
    ) -> None:
        """Go on in another tree.

        Tables of parts that both trees have are kept, and those of other parts of the new one are
        made of those below them.

        Args:
            state: The state, which becomes that of the new tree.
            tree: The new tree.
            time: What all inputs have passed.
            orders: For stages of the new tree, the order in which each child probes the others.
        """
        assert isinstance(tree, Stage), "a tree joins all inputs"
        assert tree.mask == self._plan.everything, "a tree joins all inputs"
        old, names = state.tables, table_names(tree)
        dropped = (old[name].next_name for name in old.keys() - set(names))
        first = max(dropped, default=0)
        first = max(first, state.numbers.get(_NAMES_USED, 0))
        made = [name for name in names if name not in old]
        state.tables = {n: old[n] if n in old else self._table(n, first) for n in names}
        kept = {name: n for name, n in state.numbers.items() if not is_order(name)}
        state.numbers = kept | ({_NAMES_USED: first} if first else {})
        state.numbers |= order_numbers(tree, orders or {})
        for name in set(names) - set(made):
            state.tables[name].purge(END, time)
        for stage in states(tree):
            if (name := table_name(stage.mask)) in made:
                for found in self._joined(state, stage, time):
                    state.tables[name].insert(found)

    def agreeing(self, state: State) -> Mapping[int, float]:
        """How many combinations of what is remembered agree on what all inputs must agree on.

        By the inputs joined in them as a bit mask; of very many inputs, only those of one and all.
        """
        keys = self._plan.probing.shared_keys()
        return agreeing([(state.tables[table_name(1 << p)], keys[p]) for p in range(len(keys))])

    def probed(self, state: State) -> StageOrders:
        """The orders in which the children of each stage probe the others now."""
        probes = self._plan.probes(state)
        return {
            stage: tuple(tuple(map(stage.masks.index, probes[m].others)) for m in stage.masks)
            for stage in stages(tree_of(state.tables))
        }

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        """The elements of an input that can still matter."""
        table = state.tables[table_name(1 << port)]
        elements = table.all().filter(_ends_after(time))
        names = self.inputs[port].names
        inside = list(self._plan.probing.sides[port].columns)[: len(names)]
        batch = pick(elements, (*inside, START, END))
        batch.columns = interval_columns(self.inputs[port])
        return batch

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        """Take in elements of an input without emitting."""
        elements = self._entry(port, batch).filter(_ends_after(time))
        if elements.is_empty():
            return
        probes = self._plan.probes(state)
        for _ in self._passed_on(state, probes, 1 << port, elements, is_silent=True):
            pass

    def standing(self, state: State, time: Time) -> Batch:
        """What has been emitted that is there at or after a time."""
        every = list(self._joined(state, tree_of(state.tables), time))
        return self._given(pl.concat(every)) if every else empty_batch(self.schema)

    def _shaped(self, names: Collection[str]) -> dict[str, Table]:
        """Empty tables for the tree that some names say.

        Raises:
            DamagedError: They say no tree of all inputs.
        """
        tree = tree_of(names)
        if tree.mask != self._plan.everything:
            raise DamagedError(f"a tree of {tree.mask.bit_count()} inputs, not {len(self.inputs)}")
        return {name: self._table(name) for name in table_names(tree)}

    def _table(self, name: str, first_name: int = 0) -> Table:
        return self._plan.table(mask_named(name), first_name)

    def _entry(self, port: int, batch: Batch) -> pl.DataFrame:
        """The elements of a batch that can have partners."""
        probing = self._plan.probing
        elements = probing.sides[port].entry(batch)
        return elements.filter(*probing.entry[port]) if probing.entry[port] else elements

    def _passed_on(
        self,
        state: State,
        probes: Mapping[int, TreeProbe],
        mask: int,
        rows: pl.DataFrame,
        *,
        is_silent: bool = False,
    ) -> Iterator[pl.DataFrame]:
        """Remember rows of a part; what they make at the top of the tree.

        Args:
            state: The state.
            probes: How rows of each part meet others.
            mask: The inputs joined in the rows.
            rows: The rows.
            is_silent: Whether nothing is made at the top, and nothing counted.
        """
        own = probes[mask]
        state.tables[own.table].insert(rows)
        is_top = own.above == self._plan.everything
        if is_top and is_silent:
            return
        for found in self._met(state, own, rows, is_silent=is_silent):
            if found.is_empty():
                continue
            if is_top:
                yield found
            else:
                yield from self._passed_on(state, probes, own.above, found, is_silent=is_silent)

    def _met(
        self, state: State, own: TreeProbe, rows: pl.DataFrame, *, is_silent: bool
    ) -> Iterator[pl.DataFrame]:
        """What rows of a part find in the other parts of its stage."""
        tables = [state.tables[name] for name in own.tables]
        if any(table.is_empty() for table in tables):
            return
        earliest = rows[START].min()
        assert isinstance(earliest, int), "times are integers"
        partners = [Living(table, Time(earliest)) for table in tables]
        if is_silent:
            yield from probe(rows, own.steps, partners)
            return
        there, met = [table.rows() for table in tables], [0] * len(tables)
        yield from probe(rows, own.steps, partners, met)
        count_met(state, rows.height, own.mask, list(zip(own.others, there, strict=True)), met)

    def _joined(self, state: State, stage: Stage, time: Time) -> Iterator[pl.DataFrame]:
        """The combinations of a stage that are there at or after a time, from the parts below."""
        tables = {mask: state.tables[table_name(mask)] for mask in stage.masks}
        first, *others = sorted(stage.masks, key=lambda mask: tables[mask].rows())
        rows = tables[first].all().filter(_ends_after(time))
        partners = [Living(tables[other], time, is_late=True) for other in others]
        steps = self._plan.probe_of(first, others).steps
        return (found for found in probe(rows, steps, partners) if not found.is_empty())

    def _given(self, found: pl.DataFrame) -> Batch:
        """Combinations of all inputs as they leave."""
        out = pick(found, (*(f"@{i}" for i in range(len(self.schema))), START, END))
        out.columns = interval_columns(self.schema)
        return out


def shape(state: State) -> Stage:
    """The tree of a state."""
    return tree_of(state.tables)


def _ends_after(time: Time) -> pl.Expr:
    return pl.col(END) > time
