"""What does not change is not held back for ever: progress, and bounded state."""

from __future__ import annotations

import pytest

import tidemill
from local import element_batch
from plans import implement
from tidemill.algebra.snapshot import Element
from tidemill.engine.engine import Flow
from tidemill.model.time import Time
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.optimizer.physical.techniques import Technique
from tidemill.physical.fragments import build_graph
from tidemill.runtime.local.runner import LocalRunner

DELAY = 10
STEPS = 80
BOUND = 8 * (DELAY + 5)
"""A few tables, each with the rows of a window and of the delay."""

QUERIES = {
    "a count that stays the same": """
        SELECT s.k, q.n FROM s [RANGE 5], (SELECT COUNT(*) AS n FROM s [RANGE 5]) q""",
    "a last row that is not displaced": """
        SELECT s.k, q.k AS other FROM s [RANGE 5], (SELECT k FROM r [ROWS 1]) q""",
    "a session that is not over": """
        SELECT s.k, q.k AS other FROM s [RANGE 5], (SELECT k FROM r [SESSION 1000]) q""",
    "a distinct row that stays": """
        SELECT s.k, q.c FROM s [RANGE 5], (SELECT DISTINCT 1 AS c FROM s [RANGE 5]) q""",
    "an aggregate over an aggregate": """
        SELECT COUNT(*) AS c FROM (SELECT COUNT(*) AS n FROM s [RANGE 5]
                                   UNION ALL SELECT k FROM s [RANGE 3]) x""",
}


@pytest.mark.parametrize("technique", Technique)
@pytest.mark.parametrize("name", QUERIES)
def test_state_is_bounded_and_answers_go_on(name: str, technique: Technique) -> None:
    session = tidemill.connect()
    session.sql("CREATE STREAM s (k BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
    session.sql("CREATE STREAM r (k BIGINT, t BIGINT) SOURCE memory('r') ORDERED BY t")
    query = session.sql(QUERIES[name])
    assert isinstance(query, tidemill.Query)
    plan = implement(optimize(query.plan), max_delay=DELAY, technique=technique)
    runner = LocalRunner(build_graph({"q": plan}))
    latest = 0
    for time in range(STEPS):
        flows = {}
        for input_ in runner.graph.inputs:
            is_silent = input_.name == "r" and time > 0
            row = tuple(1 if column == "k" else time for column in input_.schema.names)
            batches = [] if is_silent else [element_batch(input_.schema, [Element(time, 0, row)])]
            flows[input_.name] = Flow(batches, Time(time))
        for batch in runner.step(flows)["q"]:
            # Without a change there is no message; how far time has come is another question.
            latest = max(latest, *batch["@end"].to_list()) if "@end" in batch.columns else STEPS
        state = sum(m.state_rows for stage in runner.engines for m in stage[0].measure().values())
        assert state <= BOUND, f"after {time} steps"
    assert latest >= STEPS - 1 - 3 * DELAY
    engines = [stage[0] for stage in runner.engines]
    assert min(t for e in engines for t in e.watermarks.values()) >= STEPS - 1 - 3 * DELAY
