"""What EXPLAIN shows is what runs: one planner for sessions, runtimes and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
import pytest

import tidemill
from laws.test_nexmark import QUERIES
from nexmark import DECLARATIONS
from scenario import scenarios
from tidemill.algebra.expr import TRUE
from tidemill.algebra.plan import Source
from tidemill.lang.statements import ExplainMode
from tidemill.model.batch import Form
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT
from tidemill.optimizer import planner
from tidemill.optimizer.explain.planned import explain_json, explain_planned
from tidemill.optimizer.phases import PHASES, Draft
from tidemill.optimizer.physical.check import check_plan
from tidemill.physical import interval, signed
from tidemill.physical.codec.plans import plan_version, read_physical
from tidemill.physical.plan import Apply, Exchange, Input, rebuilt
from tidemill.runtime.local import job as local_job

if TYPE_CHECKING:
    from tidemill.physical.fragments import Graph
    from tidemill.physical.plan import PhysicalPlan

FILES = sorted((Path(__file__).parents[1] / "scenarios").glob("*.scenario"))
STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t"
COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"


class Started(Exception):  # noqa: N818 — it is no error
    """The plans are about to run."""


def run_plans(session: tidemill.Session) -> dict[str, PhysicalPlan]:
    """The plans that the local engine would run, as it is about to."""
    found: dict[str, PhysicalPlan] = {}

    def begin(graph: Graph, **_: object) -> None:
        found.update(graph.plans)
        raise Started

    with patch.object(local_job, "LocalRunner", begin), pytest.raises(Started):
        session.run()
    return found


def assert_explained(session: tidemill.Session, texts: dict[str, str]) -> None:
    run = run_plans(session)
    for name, text in texts.items():
        planned = session.planned(name)
        assert plan_version(run[name]) == planned.version
        for mode in ("LOGICAL", "PHYSICAL", "STAGES", "TRACE"):
            shown = session.sql(f"EXPLAIN {mode} {name}")
            assert shown == session.sql(f"EXPLAIN {mode} {text}"), "as it would be registered"
        written = json.loads(str(session.sql(f"EXPLAIN PHYSICAL FORMAT JSON {name}")))
        assert read_physical(written["physical"]) == run[name]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_scenarios_run_as_explained(path: Path) -> None:
    found = scenarios(path)
    session, texts = found[0].session, {}
    for scenario in found:
        query = session.sql(scenario.query)
        assert isinstance(query, tidemill.Query)
        texts[query.name] = scenario.query
    assert_explained(session, texts)


def test_the_auction_queries_run_as_explained() -> None:
    session = tidemill.connect()
    session.sql(DECLARATIONS)
    texts = {}
    for name, text in QUERIES.items():
        session.sql(f"CREATE QUERY {name} AS {text}")
        texts[name] = text
    assert_explained(session, texts)


def test_explain_sees_the_sink_of_a_statement() -> None:
    session = tidemill.connect()
    session.sql(STREAM)
    create = f"CREATE QUERY q INTO csv('out', form => 'changes') AS {COUNTS}"
    plain = session.sql(f"EXPLAIN PHYSICAL {COUNTS}")
    shown = session.sql(f"EXPLAIN PHYSICAL {create}")
    files = session.sql(f"EXPLAIN PHYSICAL CREATE QUERY q INTO csv('out') AS {COUNTS}")
    assert str(plain).startswith("signed.")
    assert shown == plain, "changes leave when they are due"
    assert str(files).startswith("interval."), "results leave when their ends are known"
    session.sql(create)
    assert session.sql("EXPLAIN PHYSICAL q") == shown


def test_explain_sees_the_sink_that_a_query_has_now(tmp_path: Path) -> None:
    session = tidemill.connect()
    session.put("s", pl.DataFrame({"k": [1], "v": [1], "t": [1]}))
    session.sql(STREAM)
    session.sql(f"CREATE QUERY q INTO parquet('{tmp_path}/a', form => 'changes') AS {COUNTS}")
    session.run()
    session.sql("DROP QUERY q")
    created = f"CREATE QUERY q INTO parquet('{tmp_path}/b') AS {COUNTS}"
    wanted = session.sql(f"EXPLAIN PHYSICAL {created}")
    session.sql(created)
    assert session.sql("EXPLAIN PHYSICAL q") == wanted
    with pytest.raises(tidemill.RunError, match="has not been run"):
        session.sql("EXPLAIN ANALYZE q")


def test_the_trace_has_logical_and_physical_steps() -> None:
    session = tidemill.connect()
    session.sql(STREAM)
    text = str(session.sql(f"EXPLAIN TRACE {COUNTS.replace('GROUP', 'WHERE v > 1 GROUP')}"))
    assert text.startswith("push_filter_through_window\n  Filter v > 1\n")
    assert "\n\npush_exchanges\n  - " in text
    steps = json.loads(str(session.sql(f"EXPLAIN TRACE FORMAT JSON {COUNTS}")))["trace"]
    assert "push_exchanges" in [step.get("phase") for step in steps]


def test_only_queries_are_explained_by_name() -> None:
    session = tidemill.connect()
    session.sql(STREAM)
    with pytest.raises(tidemill.BindError, match='"s" is not a query'):
        session.sql("EXPLAIN s")
    with pytest.raises(tidemill.BindError, match="nothing"):
        session.sql("EXPLAIN nothing")


def test_analyze_shows_what_was_measured() -> None:
    session = tidemill.connect()
    session.put("s", pl.DataFrame({"k": [1, 1, 2], "v": [1, 2, 3], "t": [1, 2, 3]}))
    session.sql(f"{STREAM}; CREATE QUERY q AS {COUNTS}")
    session.sql("CREATE QUERY plain AS SELECT * FROM s")  # which has no operator
    for name in ("q", "plain"):
        with pytest.raises(tidemill.RunError, match="has not been run"):
            session.sql(f"EXPLAIN ANALYZE {name}")
    session.run()
    assert session.sql("EXPLAIN ANALYZE plain") == session.sql("EXPLAIN PHYSICAL plain")
    lines = str(session.sql("EXPLAIN ANALYZE q")).splitlines()
    plain = str(session.sql("EXPLAIN PHYSICAL q")).splitlines()
    assert [line.partition("  | ")[0] for line in lines] == plain
    assert "  | 3 in, 8 out, " in lines[1], "each change withdraws a row and brings another"
    assert lines[1].endswith(" s, watermark end")
    written = json.loads(str(session.sql("EXPLAIN ANALYZE FORMAT JSON q")))
    figures = written["analyzed"]["parts"][-2]["figures"]
    assert (figures["rows_in"], figures["rows_out"], figures["state_rows"]) == (3, 8, 0)
    metrics = session.metrics()
    assert (3, 8) in metrics.select("rows_in", "rows_out").rows()


# The check


def test_a_query_runs_on_with_its_plan_though_none_could_be_made_today() -> None:
    session = tidemill.connect()
    session.sql(STREAM)
    query = session.query(COUNTS)
    made = planner.plan(query.plan)
    with patch.object(planner, "plan", side_effect=tidemill.PlanError("a mistake")):
        again = planner.resume(query.plan, made.physical, made.target)
    assert (again.version, again.bound) == (made.version, made.bound)
    for mode in ExplainMode:
        assert explain_json(mode, again)
        assert isinstance(explain_planned(mode, again), str)


def test_an_answer_in_another_form_or_with_too_many_stages_is_found() -> None:
    session = tidemill.connect()
    session.sql(f"{STREAM}; CREATE QUERY q INTO csv('out') AS {COUNTS}")
    made = session.planned("q")
    check_plan(made.bound, made.logical, made.physical, Form.INTERVAL, 1)
    with pytest.raises(tidemill.PlanError, match="an answer in signed form is wanted"):
        check_plan(made.bound, made.logical, made.physical, Form.SIGNED, None)
    with pytest.raises(tidemill.PlanError, match="a plan of 1 stages does not fit into 0"):
        check_plan(made.bound, made.logical, made.physical, None, 0)


def test_forms_that_do_not_meet_are_found() -> None:
    schema = Schema((Field("k", BIGINT),))
    source = Source("s", schema)
    rows = Apply(signed.ToSigned(schema), (Input("s", schema),))
    for wrong in (
        Apply(interval.TimeWindow(schema, 5), (rows,)),
        Apply(interval.Union(schema, ("k",)), (rows, Input("s", schema))),
        Apply(interval.Filter(schema, TRUE), (rows, rows)),
    ):
        with pytest.raises(tidemill.PlanError, match="cannot run: interval"):
            check_plan(source, source, wrong, None, None)


def test_rows_that_do_not_meet_are_found() -> None:
    session = tidemill.connect()
    session.sql(STREAM)

    def without_exchanges(draft: Draft) -> Draft:
        def skipped(part: PhysicalPlan) -> PhysicalPlan:
            return part.input if isinstance(part, Exchange) else part

        return draft.changed("skip", *rebuilt(draft.physical, skipped))

    phases = (*PHASES[:-1], without_exchanges, PHASES[-1])
    for text in (
        COUNTS,
        "SELECT DISTINCT k FROM s [RANGE 10]",
        "SELECT a.v FROM s [RANGE 10] a, s [RANGE 10] b WHERE a.k = b.k",
        "SELECT k FROM s [PARTITION BY k ROWS 2]",
        "SELECT k FROM s [RANGE 10] EXCEPT ALL SELECT v FROM s [RANGE 10]",
    ):
        with (
            patch.object(planner, "PHASES", phases),
            pytest.raises(tidemill.PlanError, match="the planner made a plan that cannot run"),
        ):
            session.sql(f"EXPLAIN {text}")
