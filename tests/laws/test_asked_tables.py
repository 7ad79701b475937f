"""A table that is asked once has what its query answered, whatever streams have kept.

Drawn are queries that are changed, stopped and paused while they run, as for ``test_tables.py``;
for how long the table and the streams keep their rows; and whether a batch of the table was done
between looking at it and reading it. What is not there is refused, never left out.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import Phase, find, given, reject, settings
from hypothesis import strategies as st

from laws.asking import Keeping, asked, asked_of_all, kept_by_batch
from laws.catalogue import PAIR, SOURCES, S
from laws.living import END
from laws.strategies import conformed
from laws.test_changes import FAR, scenes
from laws.test_delivered import asked as changed
from laws.test_one_time import bag, wanted
from laws.test_tables import living, view
from tidemill.algebra.plan import Relation, TimeWindow, Union, Window
from tidemill.catalog.entries import Kept, QueryEntry
from tidemill.control.asked_tables import KeptTables
from tidemill.errors import PlanError, RunError
from tidemill.model.time import Time
from tidemill.runtime.one_time import NotKeptError, NotKnownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

    from laws.arrivals import Step
    from laws.test_changes import Scene
    from laws.test_tables import TableQuery
    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Row
    from tidemill.control.asked import Asked
    from tidemill.history.table_view import TableView

    Harm: TypeAlias = Callable[[TableView], TableView]

ANSWER = Relation("@q", PAIR)
BESIDE = conformed(Window(S, TimeWindow(3)), PAIR)
"""What a question asks of a stream beside the table."""


@dataclass
class Story:
    """A table and streams that keep their past, batch by batch.

    Attributes:
        query: The table.
        keeping: The streams.
        harm: What a mutant does to what is looked at.
        looked: What was looked at, before the last batch or after it.
        told: What was answered of an instant, at whatever boundary.
    """

    query: TableQuery
    keeping: Keeping
    harm: Harm
    looked: TableView | None = None
    told: dict[tuple[bool, int], Counter[Row]] = field(default_factory=dict)

    def step(self, step: Step, *, meanwhile: bool) -> None:
        """Let a batch come, perhaps after the table was looked at."""
        before = self._now()
        self.query.step(step)
        self.keeping.step(step)
        self.looked = before if meanwhile else self._now()

    def _now(self) -> TableView | None:
        return None if self.query.table is None else self.harm(view(self.query.table))

    def here(self) -> Asked:
        """What can be asked."""
        query, now = self.query, self._now()
        plan, record = query.record.current.plan, query.record
        entry = QueryEntry("q", plan, "", frozenset(), record=record, keep=query.keep)
        views = {} if self.looked is None else {"q": self.looked}
        assert now is not None, "a batch has come"
        tables = KeptTables(views, lambda _table, time: now.at(time).rows)
        return replace(asked(self.keeping.past(), entry), tables=tables)

    def wrong(self, scene: Scene, *, beside: bool) -> str:
        """What is wrong with what can be asked now, if anything is."""
        if self.query.table is None:
            return ""
        here, plan = self.here(), Union(ANSWER, BESIDE) if beside else ANSWER
        known = Time(0) if self.looked is None else view(self.query.table).known
        known = known if self.looked is None else min(known, self.looked.known)
        if beside:
            known = min(known, self.keeping.watermarks["S"])
        for time in range(FAR):
            try:
                found = self._found(here, plan, time)
            except NotKnownError:
                if time < known:
                    return f"{time} is known"
                continue
            except NotKeptError as error:
                is_kept = time >= view(self.query.table).since and not beside
                if is_kept or all(keep is None for keep in self.keeping.keeps.values()):
                    return f"{time} is kept: {error}"
                continue
            except RunError as error:
                if time >= min(part.since for part in self.query.record.parts):
                    return f"at {time}: {error}"
                continue
            except AssertionError as error:
                return f"at {time}: {error}"
            there = self._there(scene, time, beside=beside)
            if found != there:
                return f"at {time}: {found}, and not {there}"
            if self.told.setdefault((beside, time), found) != found:
                return f"at {time}: {found}, and {self.told[beside, time]} before"
        return ""

    @staticmethod
    def _found(here: Asked, plan: Plan, time: int) -> Counter[Row]:
        question = asked_of_all(plan, ["q"])
        try:
            here.require_known(question, Time(time))
            return Counter(bag(here.frame(question, Time(time))))
        except PlanError as error:
            if "stay for ever" not in str(error):
                raise
            reject()  # a window over rows that never end has no finite answer

    def _there(self, scene: Scene, time: int, *, beside: bool) -> Counter[Row]:
        """What the parts of the query answer, by the reference."""
        record, reference = self.query.record, scene.content.reference()
        there: Counter[Row] = Counter()
        for part in record.parts:
            if part.since <= time < part.until:
                one = record.instance(part.instance)
                plan = one.begun(record.version(one.version).plan)
                there += Counter(wanted(reference.snapshot(plan, time)))
        return there + Counter(wanted(reference.snapshot(BESIDE, time))) if beside else there


def whats_wrong(data: st.DataObject, scene: Scene, harm: Harm) -> str:
    """What is wrong with a table at any time, if anything is."""
    query = living(scene, data)
    lengths = st.none() if data.draw(st.booleans()) else st.sampled_from([None, 0, 3, 8])
    keeps = {one.name: data.draw(lengths) for one in SOURCES}
    story = Story(query, kept_by_batch(scene.content, scene.arrival, keeps, 0), harm)
    for step in [*scene.arrival.steps, END, END]:
        if step is not END and data.draw(st.booleans()):
            with suppress(RunError):  # it is refused
                query.record = changed(data, query, scene).record
        story.step(step, meanwhile=data.draw(st.booleans()))
        for beside in (False, True):
            if wrong := story.wrong(scene, beside=beside):
                return wrong
    return ""


def as_it_is(found: TableView) -> TableView:
    return found


@given(data=st.data(), scene=scenes(versions=2))
def test_a_table_that_is_asked_once_has_what_the_parts_of_its_query_answer(
    data: st.DataObject, scene: Scene
) -> None:
    assert not whats_wrong(data, scene, as_it_is)


# What is wrong is found


def _early(found: TableView) -> TableView:
    """Takes an instant for known that is not."""
    return replace(found, state=replace(found.state, known=Time(found.known + 1)))


def _without_since(found: TableView) -> TableView:
    """Takes all for kept."""
    return replace(found, keep=Kept(), state=replace(found.state, since=Time(0)))


def _forgetful(found: TableView) -> TableView:
    """Leaves out the last rows."""
    return replace(found, state=replace(found.state, pieces=found.state.pieces[:-1]))


@pytest.mark.parametrize(
    "harm", [_early, pytest.param(_without_since, marks=pytest.mark.soak), _forgetful]
)
def test_the_law_finds_what_is_wrong(harm: Harm) -> None:
    @st.composite
    def wrongs(draw: DrawFn) -> str:
        return whats_wrong(draw(st.data()), draw(scenes(versions=2)), harm)

    find(
        wrongs(),
        bool,
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )
