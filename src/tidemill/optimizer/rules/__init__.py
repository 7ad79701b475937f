"""The rules, and the order they are applied in.

A phase in a tuple is repeated at every node until nothing changes. A phase that is one function
sees the whole plan, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tidemill.algebra.plan import Plan
from tidemill.optimizer.context import Context
from tidemill.optimizer.prune_columns import prune_columns
from tidemill.optimizer.rules.drop_identity_project import drop_identity_project
from tidemill.optimizer.rules.drop_now_window import drop_now_window
from tidemill.optimizer.rules.drop_true_filter import drop_true_filter
from tidemill.optimizer.rules.fold_constants import fold_constants
from tidemill.optimizer.rules.merge_filters import merge_filters
from tidemill.optimizer.rules.merge_projects import merge_projects
from tidemill.optimizer.rules.push_condition_through_join import push_condition_through_join
from tidemill.optimizer.rules.push_filter_through_aggregate import push_filter_through_aggregate
from tidemill.optimizer.rules.push_filter_through_distinct import push_filter_through_distinct
from tidemill.optimizer.rules.push_filter_through_join import push_filter_through_join
from tidemill.optimizer.rules.push_filter_through_project import push_filter_through_project
from tidemill.optimizer.rules.push_filter_through_semi_join import push_filter_through_semi_join
from tidemill.optimizer.rules.push_filter_through_union import push_filter_through_union
from tidemill.optimizer.rules.push_filter_through_window import push_filter_through_window

__all__ = ["CLEAN_UP", "PUSH_DOWN", "RULES", "Phase", "Rule"]

Rule: TypeAlias = Callable[[Plan, Context], Plan | None]
"""A node to a better one with the same snapshots, or ``None`` when there is nothing to do."""

Phase: TypeAlias = tuple[Rule, ...] | Rule

PUSH_DOWN: tuple[Rule, ...] = (
    drop_now_window,
    fold_constants,  # a pushed predicate can meet the constant it was waiting for
    drop_true_filter,
    merge_filters,  # before the pushes: filters that go the same way go together
    push_filter_through_project,
    push_filter_through_window,
    push_filter_through_distinct,
    push_filter_through_union,
    push_filter_through_aggregate,
    push_filter_through_semi_join,
    push_filter_through_join,
    push_condition_through_join,  # after the filters that become conditions
)

CLEAN_UP: tuple[Rule, ...] = (
    merge_projects,
    fold_constants,  # merging puts constants into expressions
    drop_identity_project,
)

RULES: tuple[Phase, ...] = (
    PUSH_DOWN,
    CLEAN_UP,  # the pushes leave projects side by side
    prune_columns,  # after the pushes: what a filter below reads is not needed above it
    CLEAN_UP,  # a project that has lost columns may do nothing any more
)
