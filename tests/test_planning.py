"""The settings for experts: one class, checked, and short forms of ``connect``."""

from __future__ import annotations

import inspect

import pytest

import tidemill
from tidemill import Planning
from tidemill.optimizer.planning import PLANNING, Joins
from tidemill.planning import SETTINGS

STREAM = "CREATE STREAM s (x BIGINT, at BIGINT) SOURCE memory('s') ORDERED BY at"
JOIN = "SELECT a.x FROM s [RANGE 9] a, s [RANGE 9] b, s [RANGE 9] c WHERE a.x = b.x AND b.x = c.x"
OTHERS: dict[str, object] = {
    "optimize": False,
    "max_delay": None,
    "technique": "negative",
    "joins": "multiway",
    "negation": "pulled",
    "spread": "one",
    "lazy": 0.5,
    "constants": "constants.json",
}


def test_the_defaults_are_those_of_the_optimizer() -> None:
    assert Planning().for_optimizer() == PLANNING


def test_seconds_become_microseconds() -> None:
    made = Planning(joins="multiway", lazy=0.5, max_delay=2).for_optimizer()
    assert (made.joins, made.lazy, made.max_delay) == (Joins.MULTIWAY, 500_000, 2_000_000)
    assert Planning(max_delay=None).for_optimizer().max_delay is None


def test_every_setting_has_a_short_form() -> None:
    short = inspect.signature(tidemill.connect).parameters
    assert set(SETTINGS) == set(OTHERS) <= set(short)


@pytest.mark.parametrize("settings", [{}, {"technique": "direct"}, {"joins": "multiway"}])
def test_a_short_form_is_the_same(settings: dict[str, str]) -> None:
    texts = set()
    for session in (
        tidemill.connect(**settings),  # type: ignore[arg-type]
        tidemill.connect(planning=Planning(**settings)),  # type: ignore[arg-type]
    ):
        session.sql(STREAM)
        texts.add(session.query(JOIN).explain("physical"))
    assert len(texts) == 1


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_is_given_twice(setting: str) -> None:
    value = OTHERS[setting]
    with pytest.raises(tidemill.PlanError) as caught:
        tidemill.connect(planning=Planning(), **{setting: value})  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"{setting} is given twice, by itself and in planning\n"
        f"hint: write planning=Planning({setting}={value!r}, …) only"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"technique": "dirct"}, 'there is no technique "dirct"\nhint: did you mean "direct"?'),
        (
            {"joins": "both"},
            'there is no kind of joins "both"\nhint: the choices are auto, binary, multiway',
        ),
        (
            {"negation": "push"},
            'there is no place of negation "push"\nhint: did you mean "pushed"?',
        ),
        (
            {"max_delay": -1},
            (
                "max_delay must be a number of seconds, not negative\n"
                "hint: write max_delay=60, or max_delay=None for ever"
            ),
        ),
        (
            {"lazy": float("nan")},
            "lazy must be a number of seconds, not negative\nhint: write lazy=0",
        ),
        ({"lazy": 1}, 'only joins of many inputs can be lazy\nhint: write joins="multiway"'),
        (
            {"negation": "pulled", "optimize": False},
            (
                "negation is moved by the optimizer\n"
                'hint: write negation="written", or optimize=True'
            ),
        ),
    ],
)
def test_what_does_not_fit_is_refused_both_ways(settings: dict[str, object], message: str) -> None:
    for make in (Planning, tidemill.connect):
        with pytest.raises(tidemill.PlanError) as caught:
            make(**settings)  # type: ignore[arg-type]
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "flink"}, 'there is no engine "flink"\nhint: the engines are local, spark'),
        ({"engine": None}, 'there is no engine "None"\nhint: the engines are local, spark'),
        (
            {"planning": "direct"},
            (
                "planning must be a Planning, not 'direct'\n"
                'hint: write planning=tidemill.Planning(technique="direct")'
            ),
        ),
        ({"optimize": "no"}, "optimize must be True or False\nhint: write optimize=True"),
        ({"lazy": None}, "lazy must be a number of seconds, not negative\nhint: write lazy=0"),
        (
            {"max_delay": "5"},
            (
                "max_delay must be a number of seconds, not negative\n"
                "hint: write max_delay=60, or max_delay=None for ever"
            ),
        ),
        (
            {"trigger": "soon"},
            "trigger must be a number of seconds, not negative\nhint: write trigger=0",
        ),
        ({"partitions": "2"}, "there must be at least one partition\nhint: write partitions=1"),
        ({"partitions": 1.5}, "there must be at least one partition\nhint: write partitions=1"),
        ({"stages": True}, "there must be at least one stage\nhint: write stages=1"),
    ],
)
def test_values_of_a_wrong_type_are_refused_at_once(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(tidemill.PlanError) as caught:
        tidemill.connect(**settings)  # type: ignore[arg-type]
    assert str(caught.value) == message
