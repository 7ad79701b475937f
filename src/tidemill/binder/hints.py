"""HINT (…): what is said of a stream or relation, since it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.hints import NO_HINTS, Hints
from tidemill.errors import BindError, suggestion
from tidemill.lang.statements import Hint, HintKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.model.schema import Schema

__all__ = ["bind_hints"]


def bind_hints(hints: Sequence[Hint], schema: Schema, *, is_relation: bool) -> Hints:
    """What hints say.

    Args:
        hints: The hints; none is given twice.
        schema: The columns of what they are about.
        is_relation: Whether that is a relation.

    Raises:
        BindError: One is about a column that is not declared, or does not fit.
    """
    if not hints:
        return NO_HINTS
    said: dict[HintKind, float] = {}
    distinct: dict[str, float] = {}
    for hint in hints:
        if hint.kind is (HintKind.RATE if is_relation else HintKind.ROWS):
            raise _misfit(hint, is_relation=is_relation)
        if hint.column is None:
            said[hint.kind] = float(hint.value)
        else:
            distinct[_column(hint, schema)] = float(hint.value)
    return Hints(
        said.get(HintKind.RATE), said.get(HintKind.ROWS), said.get(HintKind.BYTES), distinct
    )


def _misfit(hint: Hint, *, is_relation: bool) -> BindError:
    if is_relation:
        return BindError(
            "rows of a relation do not come at a rate",
            span=hint.span,
            hint="write rows => 1000, how many there are",
        )
    return BindError(
        "a stream has no number of rows",
        span=hint.span,
        hint="write rate => 1000, how many come in a second",
    )


def _column(hint: Hint, schema: Schema) -> str:
    assert hint.column is not None, "it is about a column"
    wanted = hint.column.text.lower()
    for name in schema.names:
        if name.lower() == wanted:
            return name
    raise BindError(
        f'column "{hint.column.text}" of HINT is not declared',
        span=hint.column.span,
        hint=suggestion(hint.column.text, schema.names),
    )
