"""Laws find what they are there for: with the mistake put back on purpose, they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import Phase, settings

from laws import test_late_queries, test_metrics, test_windows_over_derived_streams
from tidemill.engine.engine import Engine, Metrics
from tidemill.model.batch import Form
from tidemill.optimizer.physical.instants import Instants
from tidemill.physical import signed
from tidemill.physical.plan import Apply
from tidemill.physical.traits import Traits
from tidemill.runtime.metrics import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.physical.plan import PhysicalPlan

ARE_KEPT_BY = Instants._are_kept_by  # noqa: SLF001 — a mutant goes where nobody else does


def fails(law: Callable[..., None], **arguments: object) -> None:
    """Require that a law fails; its smallest counterexample is not looked for."""
    name = "_hypothesis_internal_use_settings"
    known = getattr(law, name, None)
    quick = settings(known, phases=[Phase.generate], database=None, max_examples=2000)
    with (
        patch.object(law, name, quick, create=True),
        pytest.raises((AssertionError, ExceptionGroup)),
    ):
        law(**arguments)


def test_signs_that_become_intervals_are_taken_for_instants() -> None:
    def as_before(self: Instants, part: PhysicalPlan) -> bool:
        match part:
            case Apply(signed.ToIntervals(), (below,)):
                return self.come_from(below)
            case Apply(signed.Join(), below):
                return any(self.come_from(input_) for input_ in below)
            case Apply(signed.ToSigned(), (below,)):
                return self.come_from(below)
            case _:
                return ARE_KEPT_BY(self, part)

    with patch.object(Instants, "_are_kept_by", as_before):
        law = test_windows_over_derived_streams
        fails(law.test_a_window_counts_the_elements_of_a_derived_stream, derived="join")


def test_a_late_query_shares_all_but_signed_operators() -> None:
    def as_before(traits: Traits) -> bool:
        return traits.gives is Form.SIGNED and bool(traits.tables)

    with patch.object(Traits, "remembers", property(as_before)):
        fails(test_late_queries.test_a_late_query_does_not_depend_on_its_neighbours)


def test_what_an_operator_has_done_is_lost_when_its_partition_is_opened_again() -> None:
    def latest_only(
        self: Collector, _batch: int, _done: object, now: Mapping[str, Mapping[str, Metrics]]
    ) -> None:
        self._now |= now
        for name in self._done:
            told = [figures[name] for figures in self._now.values() if name in figures]
            rows_in, rows_out = sum(m.rows_in for m in told), sum(m.rows_out for m in told)
            self._done[name] = Metrics(rows_in, rows_out)

    with (
        patch.object(Engine, "drain", Engine.measure),
        patch.object(Collector, "take", latest_only),
    ):
        fails(test_metrics.test_metrics_tell_what_was_done_and_what_is_held)


def test_a_batch_that_is_delivered_twice_is_counted_twice() -> None:
    take = Collector.take

    def forgetful(self: Collector, batch: int, *told: object) -> None:
        self._latest = dict.fromkeys(self._latest, -1)
        take(self, batch, *told)  # type: ignore[arg-type]

    with patch.object(Collector, "take", forgetful):
        fails(test_metrics.test_metrics_tell_what_was_done_and_what_is_held)
