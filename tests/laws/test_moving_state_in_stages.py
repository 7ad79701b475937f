"""Plans go over to others between batches in the stages of the pipeline on Spark, without Spark.

What a relation has brought is in the state that is moved, and does not come again, although it
would come on other channels.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, Inputs, R, S, T, inputs
from laws.moving import Star, plans_of, stars
from laws.pipeline import PIDS, Pipeline
from laws.test_stages import arrived, deployment, ended
from plans import physical
from tidemill.algebra.expr import Call, Column, Literal, Named
from tidemill.algebra.plan import Plan, Project, Relation, Source, TimeWindow, Window
from tidemill.algebra.snapshot import Element
from tidemill.migration.compare import compared
from tidemill.migration.moves import Refusal
from tidemill.model.types import BOOLEAN, VARCHAR
from tidemill.optimizer.planning import Planning
from tidemill.physical.fragments import build_graph
from tidemill.runtime.answers import Answer
from tidemill.runtime.spark.worker.deployment import Deployment
from tidemill.runtime.spark.worker.wire import Kind

if TYPE_CHECKING:
    from tidemill.physical.plan import PhysicalPlan


def deployed_with(base: Deployment, plan: PhysicalPlan, stages: int) -> Deployment:
    """The deployment of another plan of the same query."""
    return replace(base, graph=build_graph({"q": plan}), stages=stages)


def needed(plan: PhysicalPlan) -> int:
    return max(1, len(build_graph({"q": plan}).fragments) - 1)


def is_right(
    base: Deployment, plans: list[PhysicalPlan], star: Star, content: Inputs, *, reopen: bool
) -> bool:
    """Whether the answer is that of the reference if plans take over from each other in turn."""
    stages = max(map(needed, plans))
    answer, now = Answer(star.plan.schema), plans[0]
    instants = sorted({e.time for elements in content.streams.values() for e in elements})
    with TemporaryDirectory() as folder:
        pipeline = Pipeline(deployed_with(base, now, stages), Path(folder) / "cache")
        for number, time in enumerate([*instants, None]):
            deployed = pipeline.deployed
            came = ended(deployed)
            if time is not None:
                came = arrived(deployed, content, number, time)
            if not came:
                continue
            out = pipeline.step(number, came, reopen=reopen)
            answer.add(m.rows() for m in out if m.kind is Kind.ANSWER)
            after = plans[(number + 1) % len(plans)]
            moves = compared(now, after, base.relations, len(base.pids))
            if not isinstance(moves, Refusal):
                went = replace(deployed_with(base, after, stages), before={"q": now})
                pipeline.deployed, pipeline.stepped, now = went, went.version, after
                pipeline.open.clear()
    reference = content.reference()
    return all(
        Counter(answer.snapshot(time).rows()) == reference.snapshot(star.plan, time)
        for time in HORIZON
    )


@settings(max_examples=settings().max_examples // 2)
@given(
    star=stars(),
    content=inputs(),
    data=st.data(),
    partitions=st.integers(1, len(PIDS)),
    reopen=st.booleans(),
)
def test_plans_take_over_between_batches(
    *, star: Star, content: Inputs, data: st.DataObject, partitions: int, reopen: bool
) -> None:
    plans = data.draw(st.lists(plans_of(star), min_size=2, max_size=4))
    base = deployment(star.plan, content, partitions, max(map(needed, plans)))
    assert is_right(base, plans, star, content, reopen=reopen)


def test_a_relation_does_not_come_again() -> None:
    leaves: list[Plan] = []
    sources: tuple[Source | Relation, ...] = (S, T, R)
    for number, source in enumerate(sources):
        plan: Plan = source if source is R else Window(source, TimeWindow(9, 1))
        named = (Named(f"{f.name}{number}", Column(f.name, f.type)) for f in source.schema)
        leaves.append(Project(plan, tuple(named)))
    is_x = Call("=", (Column("b2", VARCHAR), Literal("x", VARCHAR)), BOOLEAN)
    star = Star(tuple(leaves), (is_x,), ("a0", "b1", "b2"))
    plans = [
        physical(star.tree((0, 1, 2), (0, 0), late), Planning(optimized=False))
        for late in ((0,), ())
    ]
    elements = (Element(1, 0, (1, "x")), Element(3, 1, (2, "y")))
    content = Inputs({"S": elements, "T": elements, "U": ()}, {"R": ((1, "x"), (2, "y")), "P": ()})
    base = deployment(star.plan, content, 2, max(map(needed, plans)))
    for reopen in (False, True):
        assert is_right(base, plans, star, content, reopen=reopen)
        with patch.object(Deployment, "fed_again", ()):
            assert not is_right(base, plans, star, content, reopen=reopen)
