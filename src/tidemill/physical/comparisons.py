"""Comparisons: conditions that compare one term with constants, told by their shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidemill.algebra.expr import Call, Expr, Literal
from tidemill.model.types import Kind

if TYPE_CHECKING:
    from tidemill.model.types import DataType

__all__ = ["NOT_NULL", "NULL", "Comparison", "comparison_of"]

NULL, NOT_NULL = "null", "not null"
"""The signs of IS NULL and IS NOT NULL."""

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on one term: how it compares it, and with what; IS NULL with nothing.

    Attributes:
        term: The term.
        sign: ``NULL``, ``NOT_NULL``, ``<``, ``<=``, ``>``, ``>=``, ``<>``, or ``=`` for one of the
            constants.
        constants: What it is compared with, none of them NULL, all of the type of the term.
    """

    term: Expr
    sign: str
    constants: tuple[Literal, ...] = ()


def comparison_of(condition: Expr) -> Comparison | None:
    """A condition as a comparison; ``None`` if it is none, or its values have no order.

    It is true of the same rows; where it is not, it may be unknown or false.
    """
    found: Comparison | None
    match condition:
        case Call("is_null", (term,)):
            found = Comparison(term, NULL)
        case Call("not", (Call("is_null", (term,)),)):
            found = Comparison(term, NOT_NULL)
        case Call("is_not_distinct", (term, Literal() as constant)) if not constant.is_null:
            found = Comparison(term, "=", (constant,))
        case Call("in", (term, *items)) if all(isinstance(item, Literal) for item in items):
            # What is not found among constants and NULL is unknown: it is not true either.
            known = (item for item in items if isinstance(item, Literal) and not item.is_null)
            found = Comparison(term, "=", tuple(known))
        case Call(sign, (term, Literal() as constant)) if sign in _MIRRORED:
            found = None if constant.is_null else Comparison(term, sign, (constant,))
        case Call(sign, (Literal() as constant, term)) if sign in _MIRRORED:
            found = None if constant.is_null else Comparison(term, _MIRRORED[sign], (constant,))
        case _:
            return None
    if found is None or isinstance(found.term, Literal) or not _has_order(found.term.type):
        return None
    return found if all(one.type == found.term.type for one in found.constants) else None


def _has_order(type_: DataType) -> bool:
    return type_.kind not in (Kind.BOOLEAN, Kind.NULL)
