"""Live input on a clock of its own: known service times give known responses."""

from __future__ import annotations

import doctest

import polars as pl
import pytest

from benchmarks.harness import live as module
from benchmarks.harness.live import Course, Served, live
from benchmarks.latency import queries
from benchmarks.latency.queries import Evenly


def _course(arrivals: list[float], seconds: list[float]) -> Course:
    """A server whose steps take so long; it answers every event."""
    times = iter(seconds)
    return live(arrivals, lambda a, b: Served(next(times), pl.Series(arrivals[a:b])))


def test_a_server_that_keeps_up_answers_in_the_time_it_takes() -> None:
    course = _course([0, 1, 2], [0.25, 0.5, 0.75])
    assert [step.began for step in course.steps] == [0, 1, 2]
    assert course.responses.to_list() == [0.25, 0.5, 0.75]
    assert course.busy == pytest.approx(1.5 / 2.75)


def test_what_arrives_while_it_works_is_its_next_step() -> None:
    course = _course([0, 1, 2, 3, 9], [2.5, 1, 0.5, 1])
    assert [(s.began, s.events, s.waited) for s in course.steps] == [
        (0, 1, 0),
        (2.5, 2, 1.5),
        (3.5, 1, 0.5),
        (9, 1, 0),
    ]
    assert course.responses.to_list() == [2.5, 2.5, 1.5, 1, 1]


def test_events_of_one_moment_are_one_step() -> None:
    assert [step.events for step in _course([1, 1, 1, 2], [0.5, 0.5]).steps] == [3, 1]


def test_responses_grow_without_bound_when_it_is_overloaded() -> None:
    arrivals = [float(second) for second in range(200)]

    def serve(first: int, after: int) -> Served:
        return Served(1.25 * (after - first), pl.Series(arrivals[first:after]))

    course = live(arrivals, serve)
    assert course.events == 200
    sizes = [step.events for step in course.steps[:-1]]  # then nothing more arrives
    assert sizes == sorted(sizes), "it is ever further behind"
    assert course.late(1) > 0.25 * 200 > course.late(0.5)
    assert course.busy == 1


def test_a_cost_of_every_step_is_shared_by_those_who_wait() -> None:
    arrivals = Evenly(0, 1000, rate=100)

    def serve(first: int, after: int) -> Served:
        return Served(0.1 + 0.001 * (after - first), pl.Series(arrivals[first:after]))

    course = live(arrivals, serve)
    assert {step.events for step in course.steps[5:-1]} <= {11, 12}, "0.1 / (1 - 0.001 · 100)"
    assert course.late(1) < 0.25


def test_a_result_may_answer_an_event_of_an_earlier_step() -> None:
    course = live(
        [0.0, 1.0], lambda a, _: Served(0.5, pl.Series([0.0] if a else [], dtype=pl.Float64))
    )
    assert course.responses.to_list() == [1.5]


def test_the_share_of_a_core_is_known_if_that_of_every_step_is() -> None:
    none = pl.Series([], dtype=pl.Float64)
    assert live([0.0, 1.0], lambda *_: Served(0.5, none, 0.2)).share == pytest.approx(0.4)
    assert live([0.0, 1.0], lambda a, _: Served(0.5, none, 0.2 if a else None)).share is None


def test_examples_run() -> None:
    assert doctest.testmod(module) == (0, 2)
    assert doctest.testmod(queries) == (0, 1)
