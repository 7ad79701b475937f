"""The shape of a join that is a tree of stages, as the names of the tables that it remembers.

There is a table for each part of the tree but the topmost, which is named by the inputs that are
joined in it. So the names are the tree: what was saved under some names is restored as their tree.

>>> from tidemill.physical.joining.tree import text
>>> names = table_names(Stage((Stage((0, 1)), 2)))
>>> names
('0', '1', '0+1', '2')
>>> text(tree_of(names))
'((0 1) 2)'
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tidemill.physical.joining.tree import JoinTree, Stage, bits, mask_of
from tidemill.physical.state.damaged import DamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["mask_named", "table_name", "table_names", "tree_of"]

_TREES = 1024
"""So many trees are kept that names say."""

_DIGITS = 4
"""A number of an input has no more."""


@lru_cache(maxsize=4 * _TREES)
def table_name(mask: int) -> str:
    """What the table with the combinations of some inputs is called.

    >>> table_name(0b1101)
    '0+2+3'
    """
    return "+".join(map(str, bits(mask)))


@lru_cache(maxsize=4 * _TREES)
def mask_named(name: str) -> int:
    """The inputs that a table is named by.

    Raises:
        DamagedError: It is not the name of such a table.
    """
    mask = 0
    for part in name.split("+"):
        mask |= 1 << int(part) if part.isdecimal() and len(part) <= _DIGITS else 0
    if not mask or table_name(mask) != name:
        raise DamagedError(f'"{name}" is not the name of a table of a tree of joins')
    return mask


def table_names(tree: JoinTree) -> tuple[str, ...]:
    """The tables of a tree."""
    return tuple(table_name(mask_of(part)) for part in _below(tree))


def _below(tree: JoinTree) -> Iterator[JoinTree]:
    """All parts of a tree but itself, each after those below it."""
    if isinstance(tree, Stage):
        for child in tree.children:
            yield from _below(child)
            yield child


def tree_of(names: Iterable[str]) -> Stage:
    """The tree whose tables have some names.

    Raises:
        DamagedError: There is none.
    """
    return _tree_of(tuple(names))


@lru_cache(maxsize=_TREES)
def _tree_of(names: tuple[str, ...]) -> Stage:
    masks = {mask_named(name) for name in names}
    inputs = sorted(mask for mask in masks if mask.bit_count() == 1)
    everything = (1 << len(inputs)) - 1
    wrong = DamagedError(f"the tables {', '.join(sorted(names))} are not those of a tree of joins")
    if len(inputs) < 2 or sum(inputs) != everything or everything in masks:  # noqa: PLR2004
        raise wrong
    tops: list[JoinTree] = list(range(len(inputs)))
    for mask in sorted({*masks - {*inputs}, everything}, key=int.bit_count):
        inside = [top for top in tops if not mask_of(top) & ~mask]
        if sum(map(mask_of, inside)) != mask:
            raise wrong
        tops = [*(top for top in tops if top not in inside), Stage(tuple(inside))]
    (tree,) = tops
    assert isinstance(tree, Stage), "two inputs or more are joined"
    return tree
