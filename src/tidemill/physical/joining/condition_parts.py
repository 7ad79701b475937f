"""The condition of a join of many inputs, taken apart by the inputs that its parts read.

Law: a combination of rows meets the condition if and only if its rows have equal values in each
class, none of them NULL, and it meets the rest.

Equalities hold together: of a = b and b = c follows a = c. So expressions of one input each that
must be equal form classes, and any two inputs that have a part in a class can be looked up by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import TRUE, Call, Expr, conjunction, conjuncts, used_columns
from tidemill.model.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["ConditionParts", "EqualClass", "member", "spans"]

EqualClass: TypeAlias = dict[Expr, int]
"""Expressions that must be equal and not NULL, each with the input that it reads."""


class ConditionParts:
    """A condition taken apart.

    Args:
        names: The columns of each input.
        condition: What must be true of a combination of rows.

    Attributes:
        classes: Expressions of one input each that must be equal.
        rest: What else must be true.
    """

    __slots__ = ("_names", "_owners", "_rests", "classes", "rest")

    def __init__(self, names: Sequence[Collection[str]], condition: Expr) -> None:
        self._names = [frozenset(own) for own in names]
        self._owners = {name: port for port, own in enumerate(self._names) for name in own}
        self.classes: list[EqualClass] = []
        self.rest: list[Expr] = []
        for part in conjuncts(condition):
            match part:
                case Call("=", (one, other)) if one.type == other.type and (
                    len(self.reads(one)) == len(self.reads(other)) == 1
                ):
                    self._equate(one, other)
                case _:
                    self.rest.append(part)
        self._rests: list[list[tuple[Expr, frozenset[int]]]] = [[] for _ in self._names]
        for part in self.rest:
            reads = self.reads(part)
            for port in reads:
                self._rests[port].append((part, reads))

    def reads(self, expr: Expr) -> frozenset[int]:
        """The inputs that an expression reads."""
        return frozenset(self._owners[name] for name in used_columns(expr))

    def names(self, *ports: int) -> frozenset[str]:
        """The columns of some inputs."""
        return frozenset[str]().union(*(self._names[port] for port in ports))

    def entry(self, port: int) -> Expr:
        """What the rows of an input must meet by themselves, besides having their keys."""
        alone = [part for part in self.rest if self.reads(part) <= {port}]
        for equal in self.classes:
            own = [expr for expr, owner in equal.items() if owner == port]
            # Only NULL is not equal to itself.
            others = own[1:] if spans(equal) or len(own) > 1 else own
            alone += [Call("=", (own[0], other), BOOLEAN) for other in others]
        return conjunction(*alone)

    def due(self, prefix: Collection[int], *own: int) -> Expr:
        """What of the rest can be told when inputs come together after others, and not before."""
        rest = {part: reads for port in own for part, reads in self._rests[port]}
        if not rest:
            return TRUE
        known = {*own, *prefix}
        return conjunction(
            *(part for part, reads in rest.items() if reads <= known and not reads <= {*own})
        )

    def members(self, port: int) -> dict[int, Expr]:
        """For each class in which an input has a part, by its number, the first such part."""
        found = ((n, member(equal, port)) for n, equal in enumerate(self.classes))
        return {number: key for number, key in found if key is not None}

    def keys(self, port: int) -> dict[Expr, bool]:
        """What rows of an input may be looked up by, and whether NULL finds nothing."""
        spanning = [equal for equal in self.classes if spans(equal)]
        found = {key: True for equal in spanning if (key := member(equal, port)) is not None}
        for part in self.rest:
            match part:
                case Call("=" | "is_not_distinct" as function, (one, other)) if (
                    one.type == other.type
                ):
                    for key, met in ((one, other), (other, one)):
                        others = self.reads(met)
                        if self.reads(key) == {port} and others and port not in others:
                            found[key] = found.get(key, False) or function == "="
                case _:
                    pass
        return found

    def _equate(self, one: Expr, other: Expr) -> None:
        touched = [equal for equal in self.classes if one in equal or other in equal]
        self.classes = [equal for equal in self.classes if equal not in touched]
        merged: EqualClass = {expr: port for equal in touched for expr, port in equal.items()}
        for expr in (one, other):
            (merged[expr],) = self.reads(expr)
        self.classes.append(merged)


def spans(equal: EqualClass) -> bool:
    """Whether a class has expressions of several inputs."""
    return len(set(equal.values())) > 1


def member(equal: EqualClass, port: int) -> Expr | None:
    """An expression of a class that reads an input, if there is one."""
    return next((expr for expr, owner in equal.items() if owner == port), None)
