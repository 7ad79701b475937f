"""What goes wrong when state is moved in a wrong way: the traps of Zhu's thesis, one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias
from unittest.mock import patch

import pytest

from laws.arrivals import Arrival
from laws.catalogue import S, T, U
from laws.moving import Moving, Star, emitted_while_moving
from laws.test_engine import snapshot
from laws.test_moving_state import SCHEMAS
from plans import physical
from tidemill.algebra.expr import Call, Column, Literal, Named
from tidemill.algebra.plan import Filter, Join, JoinKind, Plan, Project, TimeWindow, Window
from tidemill.algebra.snapshot import Element, Reference
from tidemill.engine.handover import Handover
from tidemill.migration import ports
from tidemill.migration.compare import compared
from tidemill.migration.moves import Handed, Refusal
from tidemill.model.time import Time
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR
from tidemill.optimizer.planning import Planning
from tidemill.physical import interval
from tidemill.physical.plan import Exchange, rebuilt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from laws.arrivals import Step
    from tidemill.algebra.expr import Expr
    from tidemill.algebra.snapshot import Row
    from tidemill.migration.moves import Standing
    from tidemill.migration.ports import Above, Port
    from tidemill.model.batch import Batch
    from tidemill.physical.plan import PhysicalPlan

GIVEN, TIMES, TAKEN = Handover._given, Handover._times, ports._taken  # noqa: SLF001 — mutants
COMPUTED = ports._computed  # noqa: SLF001 — likewise
IS_X = Call("=", (Column("b1", VARCHAR), Literal("x", VARCHAR)), BOOLEAN)


def star(size: int, *conditions: Expr) -> Star:
    """S, T and U with windows of a size; ``a0``, ``a1`` and ``c2`` are equal."""
    leaves = tuple(
        Project(
            Window(source, TimeWindow(size, 1)),
            tuple(Named(f"{f.name}{number}", Column(f.name, f.type)) for f in source.schema),
        )
        for number, source in enumerate((S, T, U))
    )
    return Star(leaves, conditions, ("a0", "b0", "a1", "c2"))


def tree(of: Star, shape: Sequence[int], late: Iterable[int] = ()) -> PhysicalPlan:
    """A tree of joins of two, as it is: ``0, 0`` is ((S T) U), and ``1, 0`` is (S (T U))."""
    return physical(of.tree((0, 1, 2), shape, late), Planning(optimized=False))


Given: TypeAlias = "dict[str, tuple[list[tuple[int, Row]], int]]"
"""By stream the rows of a step with their instants, and how far it has come after them."""


@dataclass(frozen=True)
class Life:
    """A move from one plan to another after the first step.

    Attributes:
        query: What both mean.
        old: The plan that runs.
        new: The one that takes over.
        steps: What comes in each step.
    """

    query: Plan
    old: PhysicalPlan
    new: PhysicalPlan
    steps: tuple[Given, ...]

    def is_right(self) -> bool:
        """Whether the answer is that of the reference; the plan must have taken over."""
        steps: list[Step] = []
        every: dict[str, list[Element]] = {name: [] for name in SCHEMAS}
        for given in self.steps:
            step: Step = {}
            for name, (rows, watermark) in given.items():
                first = len(every[name])
                new = tuple(Element(t, first + i, row) for i, (t, row) in enumerate(rows))
                every[name] += new
                step[name] = (new, watermark)
            steps.append(step)
        moving = Moving(self.old, 2, reload=True)
        out = emitted_while_moving(moving, {0: [self.new]}, SCHEMAS, {}, Arrival(tuple(steps)))
        assert (moving.moved, moving.refused) == (1, [])
        reference = Reference({name: tuple(found) for name, found in every.items()}, {})
        return all(
            snapshot(out, self.query.schema, time) == reference.snapshot(self.query, time)
            for time in range(20)
        )


def met() -> Life:
    """T and U meet before the move, and S comes behind it."""
    of = star(9)
    before: Given = {
        "S": ([], 2),
        "T": ([(1, (1, "x"))], 2),
        "U": ([(1, (1,))], 2),
    }
    after: Given = {
        "S": ([(3, (1, "y"))], 5),
        "T": ([], 5),
        "U": ([], 5),
    }
    return Life(of.plan, tree(of, (0, 0)), tree(of, (1, 0)), (before, after))


def apart() -> Life:
    """Z52: with windows of 2, a3 has let b1 be forgotten below, and c2 is still to come."""
    of = star(2)
    before: Given = {
        "S": ([(1, (1, "a1")), (3, (1, "a3"))], 3),
        "T": ([(1, (1, "b1")), (3, (1, "b3"))], 3),
        "U": ([], 0),
    }
    after: Given = {
        "S": ([], 5),
        "T": ([], 5),
        "U": ([(2, (1,))], 5),
    }
    return Life(of.plan, tree(of, (0, 0)), tree(of, (1, 0)), (before, after))


def pushed() -> Life:
    """A condition on T that the old plan looks at in the end, and the new one where T comes in."""
    found = met()
    of = star(9, IS_X)
    before: Given = {**found.steps[0], "T": ([(1, (1, "x")), (1, (1, "y"))], 2)}
    old, new = tree(of, (0, 0), (0,)), tree(of, (0, 0))
    return Life(of.plan, old, new, (before, found.steps[1]))


@pytest.mark.parametrize("life", [met, apart, pushed])
def test_nothing_is_lost_or_doubled(life: object) -> None:
    assert callable(life)
    assert life().is_right()


def test_what_is_not_matched_is_left_empty() -> None:
    with patch.object(Handover, "_standing", lambda *_: iter(())):
        assert not met().is_right()


def test_what_stands_is_taken_twice() -> None:
    def twice(self: Handover, source: Handed | Standing, time: Time) -> Iterator[Batch]:
        yield from GIVEN(self, source, time)
        if not isinstance(source, Handed):
            yield from GIVEN(self, source, time)

    with patch.object(Handover, "_given", twice):
        assert not met().is_right()


def test_what_is_remembered_is_asked_for_at_a_later_time() -> None:
    def later(self: Handover, source: Handed | Standing, time: Time) -> Iterator[Batch]:
        return GIVEN(self, source, Time(time + 8))

    with patch.object(Handover, "_given", later):
        assert not met().is_right()


def test_operators_are_not_held() -> None:
    def any_of(self: Handover, sources: Iterable[Handed | Standing]) -> Iterator[Time | None]:
        yield max(time for time in TIMES(self, sources) if time is not None)

    def at_once(self: Moving) -> None:
        assert self._pending is not None
        plan, moves, _ = self._pending
        self._change(plan, moves, {})
        self.plan, self._pending, self.moved = plan, None, 1

    with patch.object(Moving, "_go_on", at_once):
        with pytest.raises(AssertionError, match="equally far"):
            apart().is_right()
        with patch.object(Handover, "_times", any_of):
            assert not apart().is_right()


def test_what_a_new_condition_leaves_out_is_taken() -> None:
    def unfiltered(
        new: Port, old: Port, numbers: Sequence[int], above: Sequence[Above], *, anywhere: bool
    ) -> Handed | str:
        taken = TAKEN(new, old, numbers, above, anywhere=anywhere)
        if isinstance(taken, str):
            return taken
        kept = (one for one in taken.through if not isinstance(one, interval.Filter))
        return replace(taken, through=tuple(kept))

    with patch.object(ports, "_taken", unfiltered):
        assert not pushed().is_right()


def test_columns_that_are_not_there_are_not_made_up() -> None:
    """Z46: σ(b1 = 'x') and then Π without b1 below the join; both above it in the other plan."""
    both = tuple(Named(field.name, Column(field.name, field.type)) for field in S.schema)
    left, right = (Project(Window(source, TimeWindow(9, 1)), both) for source in (S, T))
    narrow = Project(
        Filter(right, Call("=", (Column("b", VARCHAR), Literal("x", VARCHAR)), BOOLEAN)),
        (Named("a", Column("a", BIGINT)),),
    )
    equal = Call("=", (Column("a", BIGINT), Column("a1", BIGINT)), BOOLEAN)
    below: Plan = Join(left, narrow, JoinKind.INNER, equal, ("a", "b", "a1"))
    joined = Join(left, right, JoinKind.INNER, equal, ("a", "b", "a1", "b1"))
    names = (("a", BIGINT), ("b", VARCHAR), ("a1", BIGINT))
    columns = tuple(Named(name, Column(name, type_)) for name, type_ in names)
    above = Project(Filter(joined, IS_X), columns)
    old, new = (physical(plan, Planning(optimized=False)) for plan in (below, above))
    found = compared(old, new, ())
    assert isinstance(found, Refusal)
    assert found.why.endswith('has no column for "b", and none can be made up'), found
    assert not isinstance(compared(new, old, ()), Refusal), "the other way is possible"

    def stuffed(expr: Expr, names: dict[Expr, Column]) -> Expr | None:
        return COMPUTED(expr, names) or Literal(None, expr.type)

    before: Given = {
        "S": ([], 2),
        "T": ([(1, (1, "x"))], 2),
        "U": ([], 2),
    }
    after: Given = {
        "S": ([(3, (1, "y"))], 5),
        "T": ([], 5),
        "U": ([], 5),
    }
    life = Life(below, old, new, (before, after))
    with patch.object(ports, "_computed", stuffed):
        assert not life.is_right()


def test_what_is_in_other_partitions_stays_there() -> None:
    life = met()

    def elsewhere(part: PhysicalPlan) -> PhysicalPlan:
        if not isinstance(part, Exchange):
            return part
        return Exchange(part.input, (), part.schema)

    moved, _ = rebuilt(life.new, elsewhere)
    found = compared(life.old, moved, (), 2)
    assert isinstance(found, Refusal)
    assert "other partitions" in found.why
    assert not isinstance(compared(life.old, moved, (), 1), Refusal), "there is only one"


def test_plans_that_mean_something_else_are_refused() -> None:
    one, other = star(9), star(9, IS_X)
    found = compared(tree(one, (0, 0)), tree(other, (0, 0)), ())
    assert isinstance(found, Refusal)
    assert "cannot be compared" in found.why
