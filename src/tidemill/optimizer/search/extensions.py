"""All trees that join some inputs: those of the search of Z34, each of them once.

A tree of the first n inputs is extended by the next one: it becomes one more child of a stage, or
is joined to what a leaf or a stage gives. With m leaves and k stages that is m + 2k trees, and each
tree is made in one way only, as the next input can be taken out of it again.

>>> from tidemill.physical.joining.tree import text
>>> [text(tree) for tree in all_trees(3)]
['(0 1 2)', '((0 2) 1)', '(0 (1 2))', '((0 1) 2)']
>>> [sum(1 for _ in all_trees(count)) for count in range(1, 6)]
[1, 1, 4, 26, 236]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.physical.joining.tree import JoinTree, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["all_trees", "extensions"]


def all_trees(count: int) -> Iterator[JoinTree]:
    """All trees of the inputs from 0 on: 1, 1, 4, 26, 236, 2,752, 39,208 for 1 to 7 of them."""
    if count == 1:
        yield 0
        return
    for tree in all_trees(count - 1):
        yield from extensions(tree, count - 1)


def extensions(tree: JoinTree, new: int) -> Iterator[JoinTree]:
    """The trees that one more input makes of a tree; its number is greater than all in it."""
    if isinstance(tree, Stage):
        yield Stage((*tree.children, new))
        for child in tree.children:
            rest = [one for one in tree.children if one is not child]
            for extended in extensions(child, new):
                yield Stage((extended, *rest))
    yield Stage((tree, new))
