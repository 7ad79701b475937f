"""Records: dataclasses as JSON objects, by a table that says how each field is written.

A field that has its default is left out. A record is known by the name that the table gives it,
not by its class, so that a class can be renamed or moved.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.codec.values import Codec, Json

__all__ = ["Record"]


@dataclass(frozen=True, slots=True)
class Record:
    """How one class is written.

    Attributes:
        name: What it is called.
        kind: The class.
        fields: How each field is written that describes it; others are made of these.
    """

    name: str
    kind: type[Any]
    fields: Mapping[str, Codec[Any]]
    _described: tuple[tuple[str, object, bool, Codec[Any]], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = [one for one in fields(self.kind) if one.init and one.name in self.fields]
        missing = self.fields.keys() - {one.name for one in given}
        assert not missing, f"{self.name} has no {missing}"
        described = ((f.name, f.default, f.compare, self.fields[f.name]) for f in given)
        object.__setattr__(self, "_described", tuple(described))

    def write(self, value: object, *, identity: bool = False) -> dict[str, Json]:
        """The fields of a value that do not have their defaults.

        Args:
            value: What is written.
            identity: Whether only fields are wanted that tell it from others (``compare``).
        """
        written: dict[str, Json] = {}
        for name, default, is_compared, codec in self._described:
            given = getattr(value, name)
            if (is_compared or not identity) and (default is MISSING or given != default):
                written[name] = codec.write(given)
        return written

    def read(self, written: Mapping[str, Json], **given: object) -> Any:  # noqa: ANN401
        """The value that was written.

        Args:
            written: Its fields, and perhaps others.
            given: Fields that stand elsewhere.
        """
        known = {n: codec.read(written[n]) for n, codec in self.fields.items() if n in written}
        return self.kind(**known, **given)
