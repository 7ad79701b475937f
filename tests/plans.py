"""Physical plans for tests, made by the planner with one setting or another."""

from benchmarks.harness.plans import implement, physical

__all__ = ["implement", "physical"]
