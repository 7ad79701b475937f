"""Estimates of joins of many inputs in a tree of stages, each of which remembers what it takes.

Law: a tree of stages is as expensive as the operators that its stages would be, but for what leaves
one operator for another: rows that a stage makes for the next one are taken in there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.optimizer.estimates.combinations import combined, parts_of, probed
from tidemill.optimizer.estimates.flow import Work
from tidemill.optimizer.estimates.joins import named
from tidemill.optimizer.estimates.rows import common_lag, kept
from tidemill.physical.joining.tree import Stage, bits, stages
from tidemill.physical.joining.tree_shape import table_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.optimizer.estimates.flow import Flow
    from tidemill.physical import interval
    from tidemill.physical.joining.tree import JoinTree

__all__ = ["join_tree"]


def join_tree(operator: interval.JoinTree, inputs: Sequence[Flow]) -> Work:
    """Combinations, when the last of their elements comes."""
    flows = named(operator.names, operator.inputs, inputs)
    parts, lag = parts_of(flows, operator.condition), common_lag(flows)
    rounds = flows[0].pace.steps
    made = {1 << port: kept(flow, parts.entry(port)) for port, flow in enumerate(flows)}
    sizes = {1 << port: flow.kept(lag) for port, flow in enumerate(flows)}
    compared = looked = 0.0
    for stage in stages(operator.tree):
        groups = [tuple(bits(mask)) for mask in stage.masks]
        below = [made[mask] for mask in stage.masks]
        there = [sizes[mask] for mask in stage.masks]
        more = probed(parts, groups, below, there, operator.orders_of(stage), rounds)
        compared, looked = compared + more[0], looked + more[1]
        made[stage.mask] = combined(parts, groups, below)
        sizes[stage.mask] = made[stage.mask].kept(lag)
    out, inner = made.pop(operator.tree.mask), [mask for mask in made if mask.bit_count() > 1]
    return Work(
        out,
        sum(flow.passed for flow in inputs),
        {table_name(mask): sizes[mask] for mask in made},
        compared,
        looked,
        rounds=sum(_steps(operator.tree)),
        inner=sum(made[mask].passed for mask in inner),
    )


def _steps(tree: JoinTree, above: int = 0) -> Iterator[int]:
    """For each input, how many steps its rows probe until they are combinations of all."""
    if isinstance(tree, Stage):
        for child in tree.children:
            yield from _steps(child, above + len(tree.children) - 1)
    else:
        yield above
