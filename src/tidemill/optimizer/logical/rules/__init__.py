"""The rules, and the order they are applied in.

A phase in a tuple is repeated at every node until nothing changes. A phase that is one function
sees the whole plan, once.

Where an anti-join stands beside a join is a question of cost, not of better and worse. The rules
that move it are applied on demand (``rules_with``), and never both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

from tidemill.algebra.plan import Plan
from tidemill.optimizer.logical.context import Context
from tidemill.optimizer.logical.rules.drop_distinct_below import drop_distinct_below
from tidemill.optimizer.logical.rules.drop_distinct_of_unique import drop_distinct_of_unique
from tidemill.optimizer.logical.rules.drop_empty_input import drop_empty_input
from tidemill.optimizer.logical.rules.drop_identity_project import drop_identity_project
from tidemill.optimizer.logical.rules.drop_now_window import drop_now_window
from tidemill.optimizer.logical.rules.drop_redundant_semi_join import drop_redundant_semi_join
from tidemill.optimizer.logical.rules.drop_true_filter import drop_true_filter
from tidemill.optimizer.logical.rules.fold_constants import fold_constants
from tidemill.optimizer.logical.rules.merge_conditions import merge_conditions
from tidemill.optimizer.logical.rules.merge_filters import merge_filters
from tidemill.optimizer.logical.rules.merge_projects import merge_projects
from tidemill.optimizer.logical.rules.merge_windows_of_union import merge_windows_of_union
from tidemill.optimizer.logical.rules.prune_columns import prune_columns
from tidemill.optimizer.logical.rules.pull_anti_join_through_join import pull_anti_join_through_join
from tidemill.optimizer.logical.rules.push_aggregate_below_join import push_aggregate_below_join
from tidemill.optimizer.logical.rules.push_anti_join_below_join import push_anti_join_below_join
from tidemill.optimizer.logical.rules.push_condition_through_join import push_condition_through_join
from tidemill.optimizer.logical.rules.push_distinct_below_join import push_distinct_below_join
from tidemill.optimizer.logical.rules.push_distinct_below_union import push_distinct_below_union
from tidemill.optimizer.logical.rules.push_distinct_through_project import (
    push_distinct_through_project,
)
from tidemill.optimizer.logical.rules.push_filter_through_aggregate import (
    push_filter_through_aggregate,
)
from tidemill.optimizer.logical.rules.push_filter_through_distinct import (
    push_filter_through_distinct,
)
from tidemill.optimizer.logical.rules.push_filter_through_join import push_filter_through_join
from tidemill.optimizer.logical.rules.push_filter_through_project import push_filter_through_project
from tidemill.optimizer.logical.rules.push_filter_through_semi_join import (
    push_filter_through_semi_join,
)
from tidemill.optimizer.logical.rules.push_filter_through_union import push_filter_through_union
from tidemill.optimizer.logical.rules.push_filter_through_window import push_filter_through_window
from tidemill.optimizer.logical.rules.push_project_through_union import push_project_through_union
from tidemill.optimizer.logical.rules.push_project_through_window import push_project_through_window
from tidemill.optimizer.logical.rules.replace_empty import replace_empty
from tidemill.optimizer.logical.rules.replace_outer_join import replace_outer_join
from tidemill.optimizer.logical.rules.share_condition_across_join import share_condition_across_join

__all__ = [
    "CLEAN_UP",
    "DEPENDING",
    "PATTERN_RULES",
    "PUSH_DOWN",
    "RULES",
    "SAVING",
    "CostedRule",
    "Negation",
    "Phase",
    "Rule",
    "rules_with",
]

Rule: TypeAlias = Callable[[Plan, Context], Plan | None]
"""A node to a better one with the same snapshots, or ``None`` when there is nothing to do."""

Phase: TypeAlias = tuple[Rule, ...] | Rule

CostedRule: TypeAlias = Callable[[Plan, Context], Iterable[Plan]]
"""A node to others with the same snapshots, any of which may be better."""

Negation: TypeAlias = Literal["written", "pulled", "pushed"]
"""Where anti-joins stand beside inner joins: where the query has them, above, or below."""

PUSH_DOWN: tuple[Rule, ...] = (
    drop_now_window,
    fold_constants,  # a pushed predicate can meet the constant it was waiting for
    drop_true_filter,
    merge_filters,  # before the pushes: filters that go the same way go together
    merge_conditions,  # of filters that have met
    replace_empty,  # before FALSE is pushed: whatever is below is not needed
    drop_empty_input,
    replace_outer_join,  # while the filter is above the join: it passes more of an inner one
    push_filter_through_project,
    push_filter_through_window,
    push_filter_through_distinct,
    push_filter_through_union,
    push_filter_through_aggregate,
    push_filter_through_semi_join,
    push_filter_through_join,
    push_condition_through_join,  # after the filters that become conditions
    share_condition_across_join,  # what is shared is pushed further in the next walk
    # Before columns are pruned: a project between, or fewer columns of one side, are in the way.
    drop_redundant_semi_join,
    push_distinct_through_project,
    drop_distinct_of_unique,
    drop_distinct_below,
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

SAVING: tuple[CostedRule, ...] = (
    push_project_through_union,
    merge_windows_of_union,  # after it: projects below the union are in nobody's way
    push_project_through_window,
)
"""Rules that leave out an operator or columns, unless parts of the plan are shared.

The same rows flow as before, so they pay if the plan is expected to cost less at all.
"""

DEPENDING: tuple[CostedRule, ...] = (
    push_distinct_below_union,
    push_distinct_below_join,
    push_aggregate_below_join,
)
"""Rules that pay or do not, depending on how often rows have the same values.

They are asked only if that is known of every stream that the query reads: measured, or said.
"""

PATTERN_RULES: Mapping[Negation, tuple[Rule, ...]] = {
    "written": (),
    "pulled": (pull_anti_join_through_join,),
    "pushed": (push_anti_join_below_join,),
}
"""Rules that change how results expire (update pattern simplification, G-24)."""


def rules_with(negation: Negation) -> tuple[Phase, ...]:
    """The rules, with those that move negation."""
    # With the pushes: a filter between a join and an anti-join is in the way until it is pushed.
    return ((*PUSH_DOWN, *PATTERN_RULES[negation]), *RULES[1:])
