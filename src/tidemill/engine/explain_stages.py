"""The text of a graph: what is done in which stage, and where rows go from there.

Stage 0 is done where rows come in, each later one in every partition. A line is an operator, or an
arrow with a channel that leaves the stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.text import expr_text
from tidemill.engine.fragments import Route
from tidemill.optimizer.explain_physical import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.engine.fragments import Channel, Fragment, Graph

__all__ = ["explain_stages"]


def explain_stages(graph: Graph) -> str:
    """The stages of a graph as text."""
    readers = {name: f.stage for f in reversed(graph.fragments) for name in f.reads}
    return "\n".join(line for f in graph.fragments for line in _stage(f, readers))


def _stage(fragment: Fragment, readers: dict[str, int]) -> Iterator[str]:
    place = "where rows come in" if fragment.stage == 0 else "in every partition"
    yield f"stage {fragment.stage}, {place}"
    for node in fragment.nodes:
        yield f"  {describe(node.apply)}"
    for channel in fragment.writes:
        yield f"  -> {_way(channel, readers)}"


def _way(channel: Channel, readers: dict[str, int]) -> str:
    match channel.route:
        case Route.QUERY:
            return "answer"
        case Route.STAY:
            return f"stage {readers[channel.name]}, same partition"
        case Route.HASH if channel.keys:
            return f"stage {readers[channel.name]}, by {', '.join(map(expr_text, channel.keys))}"
        case Route.HASH:
            return f"stage {readers[channel.name]}, all into one partition"
