"""Spans: where the nodes of a syntax tree stand in the text.

Positions live in a node's ``meta`` and so take no part in equality; copies keep them. As in
sqlglot, the end is inclusive there. The parser records the whole extent of every node it builds,
except of binary operators, whose extent is that of their operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tidemill.errors import Span

if TYPE_CHECKING:
    from sqlglot import exp

    N = TypeVar("N", bound=exp.Expr)

__all__ = ["record", "record_value", "span_of", "value_span"]


def span_of(node: exp.Expr) -> Span | None:
    """The text of a node, or None if the node comes from no text."""
    if (own := _recorded(node, "")) is not None:
        return own
    start, end = None, None
    for inner in node.walk(prune=lambda each: _recorded(each, "") is not None):
        if (span := _recorded(inner, "")) is not None:
            start = span.start if start is None else min(start, span.start)
            end = span.end if end is None else max(end, span.end)
    return None if start is None or end is None else Span(start, end)


def value_span(node: exp.Expr, key: str) -> Span | None:
    """The text of one part of a node that is no node itself.

    Parts are ``size``, ``slide`` and ``internal`` of a WindowClause, ``name`` of a function call
    and ``kind`` of a StreamOperator.
    """
    return _recorded(node, f"{key}_")


def record(node: N, span: Span) -> N:
    """Note where a node stands; answers with the node."""
    return record_value(node, "", span)


def record_value(node: N, key: str, span: Span) -> N:
    """Note where a part of a node stands; answers with the node."""
    prefix = f"{key}_" if key else ""
    node.meta[f"{prefix}start"] = span.start
    node.meta[f"{prefix}end"] = span.end - 1
    return node


def _recorded(node: exp.Expr, prefix: str) -> Span | None:
    start, end = node.meta_get(f"{prefix}start"), node.meta_get(f"{prefix}end")
    return None if start is None or end is None else Span(start, end + 1)
