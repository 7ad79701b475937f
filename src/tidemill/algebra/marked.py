"""Streams and relations that are read with hidden columns: which row each row is, and its time.

They have the names of those that are read without: whatever depends on what is read is the same. A
hidden column tells them apart, as no column that people name is called so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import overload

from tidemill.algebra.plan import Relation, Source
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT

__all__ = ["ROW", "TIME", "is_marked", "marked", "plain_schema"]

ROW, TIME = "@row", "@instant"
"""The hidden columns that the rows of sources are given: their ids, and their times."""


@overload
def marked(leaf: Source) -> Source: ...


@overload
def marked(leaf: Relation) -> Relation: ...


def marked(leaf: Source | Relation) -> Source | Relation:
    """A stream or relation with hidden columns behind its own: of a relation, which rows they are.

    >>> from tidemill.model.types import VARCHAR
    >>> marked(Relation("city", Schema((Field("name", VARCHAR),)))).schema.names
    ('name', '@row')
    """
    names = (ROW, TIME) if isinstance(leaf, Source) else (ROW,)
    hidden = (Field(name, BIGINT, nullable=False) for name in names)
    return replace(leaf, schema=Schema((*leaf.schema, *hidden)))


def is_marked(leaf: Source | Relation) -> bool:
    """Whether it is read with hidden columns."""
    return ROW in leaf.schema.names


def plain_schema(schema: Schema) -> Schema:
    """The columns without hidden ones."""
    return Schema(tuple(one for one in schema if one.name not in (ROW, TIME)))
