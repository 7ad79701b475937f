"""Paths: which conditions on an answer say something of the rows of a stream, and by which way.

A condition goes down from operator to operator, as far as it can be said of what stands below: of
a projection by what its columns are computed of, of an aggregate by its keys, of a join by the side
whose columns it reads, or by those that have to be equal to them. What cannot be said any more is
left out, so a row of a stream that does not meet what is left is no candidate, and one that meets
it may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.expr import (
    Call,
    Column,
    Expr,
    conjunction,
    conjuncts,
    replace_columns,
    used_columns,
)
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Intersect,
    Join,
    JoinKind,
    MaxUnion,
    Plan,
    Project,
    Relation,
    SemiJoin,
    Source,
    StrictDifference,
    Union,
)
from tidemill.algebra.tree import children

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.model.schema import Schema

__all__ = ["Path", "Place", "paths_of"]


@dataclass(frozen=True, slots=True)
class Place:
    """An operator on a path.

    Attributes:
        plan: The operator with all that stands below it.
        input: Which of its inputs the path goes on to; 0 of a leaf.
    """

    plan: Plan
    input: int = 0


@dataclass(frozen=True, slots=True)
class Path:
    """A way from the answer to a source or a relation.

    Attributes:
        places: The operators, from the answer down to the leaf.
        condition: What can be said of the rows of the leaf.
    """

    places: tuple[Place, ...]
    condition: Expr

    @property
    def leaf(self) -> Source | Relation:
        """Where it ends."""
        plan = self.places[-1].plan
        assert isinstance(plan, Source | Relation), "a path ends at a leaf"
        return plan


def paths_of(plan: Plan, condition: Expr) -> Iterator[Path]:
    """The ways to all leaves of whose rows the condition says something."""
    yield from _paths(plan, conjuncts(condition), ())


def _paths(plan: Plan, parts: tuple[Expr, ...], above: tuple[Place, ...]) -> Iterator[Path]:
    if not parts:
        return
    if isinstance(plan, Source | Relation):
        yield Path((*above, Place(plan)), conjunction(*parts))
        return
    for number, child in enumerate(children(plan)):
        said = _said_below(plan, number, parts)
        yield from _paths(child, said, (*above, Place(plan, number)))


def _said_below(plan: Plan, number: int, parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """What conditions on the rows of an operator say of those of one of its inputs."""
    match plan:
        case Project(_, columns) | Aggregate(_, columns):
            known = {column.name: column.expr for column in columns}
            return _replaced(parts, known)
        case Join():
            return _of_side(plan, number, parts)
        case SemiJoin() | AntiJoin() | Difference() | StrictDifference():
            return parts if number == 0 else ()
        case Union() | MaxUnion() | Intersect():
            below = children(plan)[number].schema
            return _replaced(parts, _renamed(plan.schema.names, below))
        case _:
            return parts


def _of_side(join: Join, number: int, parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    width = len(join.left.schema)
    own, other = join.names[:width], join.names[width:]
    side = join.left.schema if number == 0 else join.right.schema
    if number:
        own, other = other, own
    known: dict[str, Expr] = dict(_renamed(own, side))
    if join.kind is JoinKind.INNER:
        known |= _equal(join, known, frozenset(other))
    return _replaced(parts, known)


def _equal(join: Join, known: Mapping[str, Expr], other: frozenset[str]) -> dict[str, Expr]:
    """Columns of the other side that have to be equal to columns of this one."""
    found: dict[str, Expr] = {}
    for part in conjuncts(join.condition):
        match part:
            case Call("=", (Column(left), Column(right))):
                for mine, theirs in ((left, right), (right, left)):
                    if mine in known and theirs in other:
                        found[theirs] = known[mine]
            case _:
                pass
    return found


def _renamed(names: tuple[str, ...], schema: Schema) -> dict[str, Expr]:
    return {n: Column(one.name, one.type) for n, one in zip(names, schema, strict=True)}


def _replaced(parts: tuple[Expr, ...], known: Mapping[str, Expr]) -> tuple[Expr, ...]:
    usable = (part for part in parts if used_columns(part) <= known.keys())
    return tuple(replace_columns(part, lambda column: known[column.name]) for part in usable)
