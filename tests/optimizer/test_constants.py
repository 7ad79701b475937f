"""Constants are read as they were written, and changing them changes no plan that is kept."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from tidemill.errors import PlanError
from tidemill.optimizer.constants import (
    DEFAULTS,
    Constants,
    OperatorCost,
    read_constants,
    write_constants,
)
from tidemill.physical.codec.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COSTS = st.floats(0, 1e9)
OPERATOR = st.builds(OperatorCost, COSTS, COSTS, COSTS)
CONSTANTS = st.builds(
    Constants,
    st.fixed_dictionaries({record.name: OPERATOR for record in OPERATORS}),
    values=OPERATOR,
    **{f.name: COSTS for f in fields(Constants) if f.name not in ("operators", "values")},
)


@given(constants=CONSTANTS)
def test_what_is_written_is_read(constants: Constants) -> None:
    assert read_constants(write_constants(constants), "a file") == constants


def test_every_operator_has_its_default() -> None:
    assert set(DEFAULTS.operators) == {record.name for record in OPERATORS}
    assert all(cost.step > 0 for cost in DEFAULTS.operators.values())


def test_an_operator_that_is_not_named_has_its_default() -> None:
    written = json.loads(write_constants(DEFAULTS))
    del written["operators"]["interval.Join"]
    written["operators"]["signed.Join"]["step"] = 7
    found = read_constants(json.dumps(written), "a file")
    assert found.operators["interval.Join"] == DEFAULTS.operators["interval.Join"]
    assert found.operators["signed.Join"].step == 7


def _without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda written: written.pop(name)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (_without("kind"), 'it does not say "kind": "tidemill constants"'),
        (lambda w: w.update(version=2), "it is of version 2, not 1"),
        (_without("operators"), 'it has no "operators"'),
        (_without("values"), '"values" has no costs'),
        (_without("batch"), '"batch" is not a number'),
        (lambda w: w.update(batch=True), '"batch" is not a number'),
        (lambda w: w.update(batch=-1), '"batch" is -1; a cost is neither negative nor endless'),
        (
            lambda w: w.update(batch=float("inf")),
            '"batch" is inf; a cost is neither negative nor endless',
        ),
        (lambda w: w["operators"].update({"interval.Sort": {}}), 'there is no operator "interval.'),
        (lambda w: w["operators"].update({"interval.Join": 3}), '"interval.Join" has no costs'),
        (lambda w: w["operators"]["signed.Join"].pop("step"), '"step" is not a number'),
    ],
)
def test_what_is_damaged_is_refused(damage: Callable[[dict[str, Any]], object], why: str) -> None:
    written = json.loads(write_constants(DEFAULTS))
    damage(written)
    with pytest.raises(PlanError) as caught:
        read_constants(json.dumps(written), '"my.json"')
    assert str(caught.value).startswith(
        f'"my.json" does not hold the constants of the cost model: {why}'
    )
    assert caught.value.hint == "tidemill calibrate --output FILE writes such a file"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"tidemill constants"'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match="does not hold the constants"):
        read_constants(text, "a file")


# The setting

STREAMS = "".join(
    f"CREATE STREAM {name} (x BIGINT, y BIGINT, at BIGINT) SOURCE memory('{name}') ORDERED BY at;"
    for name in "abc"
)
BADLY = (
    "SELECT a.x FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS], c [RANGE 9 SECONDS]"
    " WHERE a.x = c.x AND c.y = b.y"
)


def written_to(file: Path, constants: Constants) -> Path:
    file.write_text(write_constants(constants), encoding="utf-8")
    return file


def free() -> Constants:
    """Constants by which nothing costs anything: no order is better than the written one."""
    nothing = OperatorCost(0, 0, 0)
    plain = {f.name: 0.0 for f in fields(Constants) if f.name not in ("operators", "values")}
    return Constants(dict.fromkeys(DEFAULTS.operators, nothing), nothing, **plain)


def test_a_session_plans_with_the_constants_that_it_is_given(tmp_path: Path) -> None:
    texts = []
    for constants in (None, written_to(tmp_path / "c.json", free())):
        session = tidemill.connect(constants=constants)
        session.sql(STREAMS)
        texts.append(session.sql(f"EXPLAIN PHYSICAL {BADLY}"))
        assert session.query(BADLY).explain("cost")
    assert texts[0] != texts[1]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        tidemill.connect(constants=tmp_path / "none.json")
    assert "cannot be read from" in str(caught.value)
    assert "No such file" in str(caught.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="it is no text in UTF-8"):
        tidemill.connect(constants=str(tmp_path / "c.json"))


def test_the_path_of_a_file_is_a_text_or_a_path() -> None:
    with pytest.raises(PlanError, match="must be the path of a file"):
        tidemill.connect(constants=3)  # type: ignore[arg-type]


def test_other_constants_leave_the_plans_of_a_checkpoint(tmp_path: Path) -> None:
    """A query goes on with the order that was chosen for it; it is not even outdated."""
    place, rows = tmp_path / "place", tmp_path / "rows"
    rows.mkdir()
    csv = f"path => '{rows / '*.csv'}'"
    (rows / "1.csv").write_text("x,y,at\n1,1,1\n", encoding="utf-8")
    streams = STREAMS
    for name in "abc":
        streams = streams.replace(f"memory('{name}')", f"csv({csv})")
    versions, stays = [], []
    for constants in (None, written_to(tmp_path / "c.json", free())):
        with tidemill.connect(checkpoint=place, constants=constants) as session:
            session.sql(streams)
            session.sql(f"CREATE QUERY q AS {BADLY}")
            session.start()
            session.await_idle()
            versions.append(session.planned("q").version)
            stays.append(len(session.versions("q")))
            assert "outdated" not in str(session.sql("SHOW QUERIES"))
    assert versions[0] == versions[1]
    assert stays == [1, 1]
    fresh = tidemill.connect(constants=tmp_path / "c.json")
    fresh.sql(streams)
    fresh.sql(f"CREATE QUERY q AS {BADLY}")
    assert fresh.planned("q").version != versions[0], "it would be planned otherwise today"


def test_constants_are_no_part_of_what_a_checkpoint_is_made_for(tmp_path: Path) -> None:
    usual = tidemill.Planning()
    other = replace(usual, constants=written_to(tmp_path / "c.json", free()))
    assert usual.for_optimizer().facts() == other.for_optimizer().facts()
    assert usual.for_optimizer() != other.for_optimizer()
