"""A schema: the named, typed columns of a stream, in order; no name occurs twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.types import DataType

__all__ = ["Field", "Schema"]


@dataclass(frozen=True, slots=True)
class Field:
    """One column: its name, its type, and whether it may be NULL."""

    name: str
    type: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a stream.

    >>> from tidemill.model.types import BIGINT
    >>> Schema((Field("auction", BIGINT),))["auction"].type == BIGINT
    True
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        assert len(set(self.names)) == len(self.fields), f"names are unique: {self.names}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(field.name for field in self.fields)

    @property
    def types(self) -> tuple[DataType, ...]:
        """The types of the columns, in order."""
        return tuple(field.type for field in self.fields)

    def __getitem__(self, name: str) -> Field:
        return next(field for field in self.fields if field.name == name)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)
