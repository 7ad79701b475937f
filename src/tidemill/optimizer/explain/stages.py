"""The text of a graph: what is done in which stage, and where rows go from there.

Stage 0 is done where rows come in, each later one in every partition. A line is an operator, or an
arrow with a channel that leaves the stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.text import expr_text
from tidemill.optimizer.explain.physical import describe
from tidemill.physical.fragments import Route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.codec.values import Json
    from tidemill.physical.fragments import Channel, Fragment, Graph

__all__ = ["explain_stages", "stages_json"]


def explain_stages(graph: Graph) -> str:
    """The stages of a graph as text."""
    readers = {name: f.stage for f in reversed(graph.fragments) for name in f.reads}
    return "\n".join(line for f in graph.fragments for line in _stage(f, readers))


def stages_json(graph: Graph) -> Json:
    """The stages of a graph for ``json``."""
    readers = {name: f.stage for f in reversed(graph.fragments) for name in f.reads}
    return [
        {
            "stage": fragment.stage,
            "operators": [
                {"fingerprint": node.name, "text": describe(node.apply), "reads": node.reads}
                for node in fragment.nodes
            ],
            "sends": [
                {
                    "rows": channel.source,
                    "to": readers.get(channel.name, "answer"),
                    "route": channel.route.name,
                    "keys": [expr_text(key) for key in channel.keys],
                }
                for channel in fragment.writes
            ],
        }
        for fragment in graph.fragments
    ]


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
