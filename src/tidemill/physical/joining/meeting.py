"""Meeting: which rows of the inputs of a join can match, and so must be in one partition."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Column, conjuncts, replace_columns, used_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical.traits import Passes

__all__ = ["meeting_keys", "passes_of"]


def meeting_keys(
    inputs: Sequence[Schema], names: Sequence[str], condition: Expr
) -> tuple[tuple[Expr, ...], ...]:
    """For each input, expressions over its columns; those at one place are equal where rows match.

    Args:
        inputs: The columns of the inputs.
        names: Names for all of them, those of the first input first.
        condition: What must be true, in these names.
    """
    owner = dict(zip(names, (port for port, s in enumerate(inputs) for _ in s), strict=True))
    own = dict(zip(names, (f.name for schema in inputs for f in schema), strict=True))
    classes: list[set[tuple[int, Expr]]] = []
    for part in conjuncts(condition):
        match part:
            case Call("=" | "is_not_distinct", (one, other)) if one.type == other.type:
                sides = [(_port(side, owner), _in_own_names(side, own)) for side in (one, other)]
                equal = {(port, side) for port, side in sides if port is not None}
                if len(equal) == len(sides):
                    known = [c for c in classes if c & equal]
                    classes = [c for c in classes if not c & equal] + [equal.union(*known)]
            case _:
                pass
    ports = range(len(inputs))
    places: list[tuple[Expr, ...]] = []
    for class_ in classes:
        by_port = [sorted((e for p, e in class_ if p == port), key=repr) for port in ports]
        places += product(*by_port)  # none, if an input has no part in it
    return tuple(tuple(place[port] for place in places) for port in ports)


def passes_of(inputs: Sequence[Schema], names: Sequence[str]) -> tuple[Passes, ...]:
    """For each input, under which name a column leaves a join."""
    left = iter(names)
    return tuple(
        {Column(field.name, field.type): frozenset({next(left)}) for field in schema}
        for schema in inputs
    )


def _port(expr: Expr, owner: dict[str, int]) -> int | None:
    """The input whose columns an expression reads, if it is one."""
    ports = {owner[name] for name in used_columns(expr)}
    return ports.pop() if len(ports) == 1 else None


def _in_own_names(expr: Expr, own: dict[str, str]) -> Expr:
    return replace_columns(expr, lambda c: Column(own[c.name], c.type))
