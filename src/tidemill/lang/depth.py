"""Depth: how far a syntax tree nests, and how far it may.

The stages after parsing walk the tree by recursion. A chain of one operator (``a OR b OR c …``)
counts as one level, however long it is: it can be walked in a loop.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

__all__ = ["DEEPEST", "too_deep"]

# Python's stack has a thousand frames, and the generator needs three or four for a level.
DEEPEST: Final = 200


def too_deep(tree: exp.Expr) -> exp.Expr | None:
    """A node that stands deeper than it may, or None if there is none."""
    nodes = [(tree, 0)]
    while nodes:
        node, level = nodes.pop()
        if level > DEEPEST:
            return node
        nodes.extend(
            (child, level if _continues(node, child) else level + 1)
            for child in node.iter_expressions()
        )
    return None


def _continues(node: exp.Expr, child: exp.Expr) -> bool:
    if isinstance(node, exp.SetOperation):
        return isinstance(child, exp.SetOperation)
    return isinstance(node, exp.Binary) and type(child) is type(node)
