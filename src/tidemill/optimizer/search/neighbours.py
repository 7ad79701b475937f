"""Trees that are one move away from a tree: what searches that improve a plan look at.

    merge       (a (b c))      ->  (a b c)           a state less
    pull out    (a b c)        ->  (a (b c))         a state more
    exchange    ((a b) c)      ->  ((a c) b)         a state for another: the join switch of Z35
    push down   ((a b) c d)    ->  ((a b c) d)       a state for another

Each tree of some inputs can be reached from each other one: by merges to one stage of all, and from
there by pulling out.

>>> from tidemill.physical.joining.tree import text
>>> tree = Stage((0, Stage((1, 2))))
>>> [text(one) for one in merges(tree)], [text(one) for one in pulls(Stage((0, 1, 2)))]
(['(0 1 2)'], ['((0 1) 2)', '((0 2) 1)', '(0 (1 2))'])
>>> [text(one) for one in exchanges(tree)]
['((0 2) 1)', '((0 1) 2)']
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import TYPE_CHECKING

from tidemill.physical.joining.tree import JoinTree, Stage, stages

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["exchanges", "merged", "merges", "neighbours", "pulled", "pulls", "pushes", "replaced"]

_TWO = 2


def neighbours(tree: JoinTree) -> Iterator[JoinTree]:
    """All trees that are one move away."""
    return chain(merges(tree), pulls(tree), exchanges(tree), pushes(tree))


def merges(tree: JoinTree) -> Iterator[JoinTree]:
    """For each state, the tree without it."""
    for parent, child in _links(tree):
        yield replaced(tree, parent, merged(parent, child))


def pulls(tree: JoinTree) -> Iterator[JoinTree]:
    """For each two children of a stage that has more, the tree in which they are joined below."""
    for stage in stages(tree):
        if len(stage.children) > _TWO:
            for pair in combinations(stage.children, _TWO):
                yield replaced(tree, stage, pulled(stage, *pair))


def exchanges(tree: JoinTree) -> Iterator[JoinTree]:
    """For each child of a stage and each one below another child, the tree with them exchanged."""
    for parent, child in _links(tree):
        for upper in parent.children:
            if upper is child:
                continue
            for lower in child.children:
                below = Stage((upper, *(one for one in child.children if one is not lower)))
                rest = (one for one in parent.children if one is not child and one is not upper)
                yield replaced(tree, parent, Stage((below, lower, *rest)))


def pushes(tree: JoinTree) -> Iterator[JoinTree]:
    """For each child of a stage of three or more, the trees where a stage beside it takes it in.

    And those where a stage of three or more gives a child to the stage above.
    """
    for parent, child in _links(tree):
        beside = [one for one in parent.children if one is not child]
        if len(beside) >= _TWO:
            for moved in beside:
                rest = (one for one in beside if one is not moved)
                yield replaced(tree, parent, Stage((Stage((*child.children, moved)), *rest)))
        if len(child.children) > _TWO:
            for moved in child.children:
                left = Stage(tuple(one for one in child.children if one is not moved))
                yield replaced(tree, parent, Stage((left, moved, *beside)))


def merged(parent: Stage, child: Stage) -> Stage:
    """A stage with the children of one of its children instead of that."""
    return Stage((*(one for one in parent.children if one is not child), *child.children))


def pulled(stage: Stage, one: JoinTree, other: JoinTree) -> Stage:
    """A stage with two of its children joined below it."""
    rest = (child for child in stage.children if child is not one and child is not other)
    return Stage((Stage((one, other)), *rest))


def replaced(tree: JoinTree, old: Stage, new: JoinTree) -> JoinTree:
    """The tree with another part of the same inputs; what has not changed is the same object."""
    if tree is old:
        return new
    assert isinstance(tree, Stage), "the part is in the tree"
    children = tuple(
        replaced(child, old, new) if isinstance(child, Stage) and child.mask & old.mask else child
        for child in tree.children
    )
    return Stage(children)


def _links(tree: JoinTree) -> Iterator[tuple[Stage, Stage]]:
    """Each stage with each of its children that is a stage."""
    for parent in stages(tree):
        for child in parent.children:
            if isinstance(child, Stage):
                yield parent, child
