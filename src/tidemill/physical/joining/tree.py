"""The join tree: in which stages inputs are joined, each stage joining two or more.

Inner joins are symmetric, so a tree is the same in whatever order the children of a stage are
given: they stand in the order of their least inputs, and equal trees are equal values. A set of
inputs is a bit mask, since searches look at very many of them.

>>> tree = Stage((2, Stage((1, 0))))
>>> text(tree), text(flat(range(3)))
('((0 1) 2)', '(0 1 2)')
>>> [text(stage) for stage in stages(tree)]
['(0 1)', '((0 1) 2)']
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "JoinTree",
    "Stage",
    "bits",
    "flat",
    "leaves",
    "left_deep",
    "mask_of",
    "stages",
    "states",
    "text",
]


@dataclass(frozen=True, slots=True)
class Stage:
    """A join of two or more children.

    Attributes:
        children: Inputs and other stages, in the order of their least inputs.
        mask: Its inputs, as a bit mask.
    """

    children: tuple[JoinTree, ...]
    mask: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert len(self.children) > 1, "a stage joins two children or more"
        masks = [mask_of(child) for child in self.children]
        mask = 0
        for one in masks:
            assert not mask & one, "each input is in a tree once"
            mask |= one
        ordered = tuple(sorted(self.children, key=_least))
        object.__setattr__(self, "children", ordered)
        object.__setattr__(self, "mask", mask)

    def __hash__(self) -> int:
        return hash(self.mask)  # no two stages of a tree have the same inputs

    def __str__(self) -> str:
        """The tree as it is read."""
        return text(self)

    @property
    def masks(self) -> tuple[int, ...]:
        """The inputs of each child."""
        return tuple(mask_of(child) for child in self.children)


JoinTree: TypeAlias = int | Stage
"""A leaf is the number of an input."""


def mask_of(tree: JoinTree) -> int:
    """The inputs of a tree as a bit mask."""
    return 1 << tree if isinstance(tree, int) else tree.mask


def _least(tree: JoinTree) -> int:
    mask = mask_of(tree)
    return mask & -mask


def bits(mask: int) -> Iterator[int]:
    """The inputs in a bit mask, in their order.

    >>> list(bits(0b1101))
    [0, 2, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def leaves(tree: JoinTree) -> tuple[int, ...]:
    """The inputs of a tree, in the order of their numbers."""
    return tuple(bits(mask_of(tree)))


def stages(tree: JoinTree) -> Iterator[Stage]:
    """All stages of a tree, each after those below it."""
    if isinstance(tree, Stage):
        for child in tree.children:
            yield from stages(child)
        yield tree


def states(tree: JoinTree) -> list[Stage]:
    """The stages whose results are kept for another: all but the topmost."""
    return list(stages(tree))[:-1]


def flat(inputs: Iterable[JoinTree]) -> JoinTree:
    """One stage of all that is given: what the literature calls an mjoin; one alone is itself."""
    children = tuple(inputs)
    return Stage(children) if len(children) > 1 else children[0]


def left_deep(order: Iterable[JoinTree]) -> JoinTree:
    """Stages of two, each joining one more.

    >>> text(left_deep([2, 0, 1]))
    '((0 2) 1)'
    """
    first, *others = order
    tree = first
    for other in others:
        tree = Stage((tree, other))
    return tree


def text(tree: JoinTree) -> str:
    """A tree as it is read: a stage in parentheses, with its children."""
    if isinstance(tree, int):
        return str(tree)
    return f"({' '.join(text(child) for child in tree.children)})"
