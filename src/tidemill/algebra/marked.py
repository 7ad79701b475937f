"""Streams and relations that are read with hidden columns: which row each row is, and its time.

They are told from others by their names, so that equal parts of plans read the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import transform_up
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

__all__ = ["ROW", "TIME", "is_marked", "marked", "plain_schema", "read_as", "unmarked"]

ROW, TIME = "@row", "@instant"
"""The hidden columns that the rows of sources are given: their ids, and their times."""

_MARKED = "@rows "
"""What stands before the name of a source or relation that is read with hidden columns."""


def marked(leaf: Source | Relation) -> Source | Relation:
    """A stream or relation with hidden columns behind its own: of a relation, which rows they are.

    >>> from tidemill.model.types import VARCHAR
    >>> marked(Relation("city", Schema((Field("name", VARCHAR),)))).schema.names
    ('name', '@row')
    """
    names = (ROW, TIME) if isinstance(leaf, Source) else (ROW,)
    hidden = (Field(name, BIGINT, nullable=False) for name in names)
    return replace(leaf, name=_MARKED + leaf.name, schema=Schema((*leaf.schema, *hidden)))


def is_marked(name: str) -> bool:
    """Whether what has this name in a plan is read with hidden columns."""
    return name.startswith(_MARKED)


def read_as(name: str) -> str:
    """The stream or relation that a leaf reads, with hidden columns or without them."""
    return name.removeprefix(_MARKED)


def plain_schema(schema: Schema) -> Schema:
    """The columns without hidden ones."""
    return Schema(tuple(one for one in schema if one.name not in (ROW, TIME)))


def unmarked(plan: Plan) -> Plan:
    """The plan as if nothing were read with hidden columns; for what depends on names and times."""

    def plain(node: Plan) -> Plan | None:
        if isinstance(node, Source | Relation) and is_marked(node.name):
            return replace(node, name=read_as(node.name))
        return None

    return transform_up(plan, plain)
