"""Join graphs to search in: drawn by Hypothesis or by a seed, of a shape or of any."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tidemill.optimizer.search.join_graph import JoinGraph

if TYPE_CHECKING:
    from random import Random

__all__ = ["SHAPES", "Shape", "acyclic", "chain_of", "drawn", "graphs", "stars"]

SHAPES = ("chain", "star", "clique", "cycle", "tree")

RATES = st.sampled_from([0.5, 1.0, 2.0, 5.0, 20.0, 100.0])
WINDOWS = st.sampled_from([0.5, 1.0, 3.0, 10.0])
SHARES = st.sampled_from([0.001, 0.01, 0.05, 0.2, 0.5, 1.0])


@dataclass(frozen=True, slots=True)
class Shape:
    """The edges of a shape over inputs that are numbered anyhow."""

    name: str
    inputs: tuple[int, ...]

    def edges(self, chosen: Random) -> set[tuple[int, int]]:
        """Its edges; where the shape is a tree, any one."""
        order, count = self.inputs, len(self.inputs)
        match self.name:
            case "chain":
                pairs = list(pairwise(order))
            case "star":
                pairs = [(order[0], other) for other in order[1:]]
            case "clique":
                pairs = list(combinations(order, 2))
            case "cycle":
                pairs = [(order[i - 1], order[i]) for i in range(0 if count > 2 else 1, count)]
            case _:
                pairs = [(order[chosen.randrange(i)], order[i]) for i in range(1, count)]
        return {(min(pair), max(pair)) for pair in pairs}


def drawn(
    chosen: Random, count: int, shape: str, *, window: float = 1.0, share: tuple[float, float]
) -> JoinGraph:
    """A graph as Zhu draws it: rates from 1 to 100, one window, selectivities within bounds."""
    order = list(range(count))
    chosen.shuffle(order)
    rates = tuple(chosen.uniform(1, 100) for _ in order)
    if shape == "class":
        values = {number: 1 / chosen.uniform(*share) for number in order}
        return JoinGraph(rates, (window,) * count, {}, classes=(values,))
    edges = sorted(Shape(shape, tuple(order)).edges(chosen))
    return JoinGraph(rates, (window,) * count, {edge: chosen.uniform(*share) for edge in edges})


def chain_of(order: tuple[int, ...], *, rows: float = 100.0, share: float = 0.1) -> JoinGraph:
    """A chain that is listed in some order; all else is alike, as where nothing is known."""
    edges = {(min(pair), max(pair)): share for pair in pairwise(order)}
    return JoinGraph((rows,) * len(order), (1.0,) * len(order), edges)


@st.composite
def acyclic(draw: st.DrawFn, least: int = 1, most: int = 8) -> JoinGraph:
    """A graph whose conditions form a tree."""
    count = draw(st.integers(least, most))
    edges = {}
    for number in range(1, count):
        edges[draw(st.integers(0, number - 1)), number] = draw(SHARES)
    return _with_inputs(draw, count, edges)


@st.composite
def stars(draw: st.DrawFn, least: int = 2, most: int = 5) -> JoinGraph:
    """A graph of one input that is linked to all others."""
    count = draw(st.integers(least, most))
    hub = draw(st.integers(0, count - 1))
    others = [number for number in range(count) if number != hub]
    return _with_inputs(draw, count, {(min(hub, i), max(hub, i)): draw(SHARES) for i in others})


@st.composite
def graphs(draw: st.DrawFn, least: int = 1, most: int = 5) -> JoinGraph:
    """Any graph: with cycles, or in pieces, with relations that stand."""
    count = draw(st.integers(least, most))
    pairs = list(combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return _with_inputs(draw, count, {edge: draw(SHARES) for edge in edges}, standing=True)


def _with_inputs(
    draw: st.DrawFn, count: int, edges: dict[tuple[int, int], float], *, standing: bool = False
) -> JoinGraph:
    rates = tuple(draw(RATES) for _ in range(count))
    windows = tuple(draw(WINDOWS) for _ in range(count))
    stood: tuple[float, ...] = ()
    if standing and draw(st.booleans()):
        stood = tuple(draw(st.sampled_from([0.0, 7.0, 300.0])) for _ in range(count))
    classes: list[dict[int, float]] = []
    if standing and count > 1 and draw(st.booleans()):
        member = st.integers(0, count - 1)
        values = st.dictionaries(member, st.sampled_from([1.0, 4.0, 60.0]), min_size=2)
        classes = draw(st.lists(values, min_size=1, max_size=2))
    keys: dict[tuple[int, int], float] = {}
    if standing and edges and draw(st.booleans()):
        found = draw(st.lists(st.sampled_from(sorted(edges)), unique=True))
        keys = {edge: max(edges[edge], draw(SHARES)) for edge in found}
    return JoinGraph(rates, windows, edges, stood, tuple(classes), keys)
