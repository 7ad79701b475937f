"""Joins with non-retroactive relations (G-16): below the window of the stream they are joined to.

    quote [RANGE 5 MINUTES] q, company c        Window range=5m
    WHERE q.sym = c.sym                           Join inner on q.sym = c.sym
                                                    Source quote
                                                    Relation company

A result has the row of the relation that was valid at the time of the stream's row, and keeps it
for as long as the stream's row stays in the window. This needs a stream whose results have the time
of one row and leave at a time that is known: one with a time window, or with none (G-24).

Where only conditions on values are in between, a relation can be moved to its stream: an inner join
and a filter commute with a time window, since it changes when a row is valid, never its values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tidemill.algebra.annotations import is_chronon
from tidemill.algebra.expr import Expr, conjunction, conjuncts, used_columns
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Changing,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Istream,
    Join,
    JoinKind,
    Plan,
    Project,
    Relation,
    RowWindow,
    Rstream,
    SessionWindow,
    Source,
    StrictDifference,
    Validity,
    Window,
    WindowSpec,
)
from tidemill.algebra.tree import children, once_per_node, walk, with_children
from tidemill.binder.joins import Item, Joined, Tree
from tidemill.errors import BindError
from tidemill.lang.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["attach", "check_non_retroactive", "is_relation"]

_TAKEN_BACK: Final = (
    "which takes results back when later rows come, and the row that made them may have changed "
    "by then"
)
_KEPT_ON: Final = "in which rows stay for as long as others come, also those without a partner"
_NO_TIME: Final = "whose results do not have the time of one row"
_PARTNERS: Final[dict[type[Plan | WindowSpec], tuple[str, str]]] = {
    RowWindow: ("a window of ROWS", _TAKEN_BACK),
    SessionWindow: ("a window of SESSION", _KEPT_ON),
    Aggregate: ("an aggregate", _TAKEN_BACK),
    Difference: ("EXCEPT", _TAKEN_BACK),
    StrictDifference: ("EXCEPT", _TAKEN_BACK),
    AntiJoin: ("NOT IN, ALL or NOT EXISTS", _TAKEN_BACK),
    Join: ("a join of several streams", _NO_TIME),
    Distinct: ("DISTINCT", _NO_TIME),
}
_HINT: Final = "or declare the relation without NON RETROACTIVE"


def attach(tree: Tree, pool: list[Expr]) -> Tree:
    """The tree with each non-retroactive relation below the window of its stream.

    Args:
        tree: A part of FROM.
        pool: The conditions of WHERE; those that speak of such a relation are taken out.

    Raises:
        BindError: A relation has no stream it can go to.
    """
    if not any(_is_bound_to_time(item) for item in _items(tree)) or isinstance(tree, Item):
        return tree
    if tree.kind is JoinKind.INNER:
        return _attach_inner(tree, pool)
    left, right = attach(tree.left, []), attach(tree.right, [])
    if tree.kind is JoinKind.LEFT and _is_bound_to_time(right) and _reads_stream(left):
        assert isinstance(right, Item), "only an item is a relation of that kind"
        return _below(left, [right], list(conjuncts(tree.condition)), JoinKind.LEFT)
    return Joined(left, right, tree.kind, tree.condition)


def check_non_retroactive(plan: Plan) -> None:
    """Refuse a plan in which a change of such a relation would reach results made before it.

    Raises:
        BindError: There is one.
    """
    for node in walk(plan):
        relation = _open(node)
        if relation is not None and not is_relation(node):
            name = _relation_name(relation)
            raise BindError(
                f'"{name}" is non-retroactive, but here its changes would reach results '
                "made before",
                span=relation.span,
                hint=f"join it in FROM to one stream with a time window, {_HINT}",
            )


def _attach_inner(tree: Joined, pool: list[Expr]) -> Tree:
    """All items between which there are inner joins only, each relation with its stream."""
    leaves, parts = _flattened(tree)
    leaves = [attach(leaf, []) for leaf in leaves]
    relations = {i for i, leaf in enumerate(leaves) if _is_bound_to_time(leaf)}
    streams = {i for i, leaf in enumerate(leaves) if _reads_stream(leaf)}
    if not streams:
        return tree
    named = {name for i in relations for name in leaves[i].names}
    parts += [part for part in pool if not used_columns(part).isdisjoint(named)]
    pool[:] = [part for part in pool if used_columns(part).isdisjoint(named)]
    links = [_mentioned(part, leaves) for part in parts]
    partners: dict[int, list[Item]] = {}
    for i in sorted(relations):
        leaf = leaves[i]
        assert isinstance(leaf, Item), "only an item is a relation of that kind"
        partners.setdefault(_partner(i, relations, streams, links, leaf), []).append(leaf)
    for i, found in partners.items():
        leaves[i] = _below(leaves[i], found, parts, JoinKind.INNER)
    return _joined([leaf for i, leaf in enumerate(leaves) if i not in relations], parts)


def _partner(
    relation: int, relations: set[int], streams: set[int], links: list[set[int]], item: Item
) -> int:
    """The stream a relation is compared with, directly or by way of others of its kind."""
    group = {relation}
    while more := {i for link in links if link & group for i in link & relations} - group:
        group |= more
    found = {i for link in links if link & group for i in link & streams} or streams
    if len(found) == 1:
        return found.pop()
    raise BindError(
        f'"{_name(item)}" is non-retroactive and can be joined to one stream only, '
        "at whose time its rows are looked up",
        span=span_of(item.node),
        hint=f"join it to one of the streams in a subquery, {_HINT}",
    )


def _below(stream: Tree, relations: list[Item], parts: list[Expr], kind: JoinKind) -> Item:
    """A stream and its relations as one item; takes from the parts the conditions it can apply."""
    if not isinstance(stream, Item):
        raise _refused(relations[0], Join)
    found = _without_window(stream.plan)
    if found is None:
        raise _refused(relations[0], _obstacle(stream.plan))
    for relation in relations:
        _check_unmixed(relation)
    plan, window = found
    names = stream.names
    rest = list(relations)
    while rest:
        # One that is compared with what is there comes before one that is not.
        chosen = next((r for r in rest if _compared(r, names, parts)), rest[0])
        rest.remove(chosen)
        names += chosen.names
        here = [part for part in parts if used_columns(part) <= set(names)]
        parts[:] = [part for part in parts if not any(part is other for other in here)]
        plan = Join(plan, chosen.plan, kind, conjunction(*here), names)
    return replace(
        stream, plan=plan if window is None else replace(window, input=plan), names=names
    )


def _without_window(plan: Plan) -> tuple[Plan, Window | None] | None:
    """What stands below the time window of a plan, and the window, which would do as well on top.

    The window is ``None`` if all rows live for one instant, the answer if there is no such window.
    """
    if is_chronon(plan):
        return plan, None
    match plan:
        case Window(_, RowWindow() | SessionWindow()):
            return None
        case Window(input_):
            return input_, plan
        case Filter() | Project():
            found = _without_window(plan.input)
            return None if found is None else (with_children(plan, (found[0],)), found[1])
        case _:
            return None


def _check_unmixed(item: Item) -> None:
    """Refuse a subquery in which a retroactive relation would become a non-retroactive one."""
    for node in walk(item.plan):
        match node:
            case Relation(name, validity=Validity(), retroactive=True):
                pass
            case Window(relation=Changing(name, retroactive=True)):
                pass
            case _:
                continue
        raise BindError(
            f'"{_name(item)}" is non-retroactive, but "{name}" in the subquery is not',
            span=span_of(item.node),
            hint="name both in the FROM clause that names the stream",
        )


def _obstacle(plan: Plan) -> type[Plan | WindowSpec]:
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return type(plan.spec if isinstance(plan, Window) else plan)


def _refused(item: Item, partner: type[Plan | WindowSpec]) -> BindError:
    what, why = _PARTNERS.get(partner, ("a subquery of this kind", _NO_TIME))
    return BindError(
        f'"{_name(item)}" is non-retroactive and cannot be joined to {what}, {why}',
        span=span_of(item.node),
        hint=f"join it to one stream with a time window or without a window, {_HINT}",
    )


def _name(item: Item) -> str:
    relation = _open(item.plan)
    assert relation is not None, "the item is a non-retroactive relation"
    return _relation_name(relation)


def _relation_name(relation: Relation | Window) -> str:
    if isinstance(relation, Relation):
        return relation.name
    assert relation.relation is not None, "the window makes a relation"
    return relation.relation.name


def _compared(relation: Item, names: tuple[str, ...], parts: Sequence[Expr]) -> bool:
    return any(
        used_columns(part) <= {*names, *relation.names}
        and not used_columns(part).isdisjoint(relation.names)
        and not used_columns(part).isdisjoint(names)
        for part in parts
    )


def _joined(leaves: list[Tree], parts: list[Expr]) -> Tree:
    """Inner joins of the leaves, from left to right, with the conditions as low as they can be."""
    tree = leaves[0]
    rest = list(parts)
    for leaf in leaves[1:]:
        names = {*tree.names, *leaf.names}
        here = [part for part in rest if used_columns(part) <= names]
        rest = [part for part in rest if not used_columns(part) <= names]
        tree = Joined(tree, leaf, JoinKind.INNER, conjunction(*here))
    assert not rest, "conditions of FROM speak of its items"
    return tree


def _flattened(tree: Tree) -> tuple[list[Tree], list[Expr]]:
    """The parts between which there are inner joins, and the conditions of these joins."""
    if isinstance(tree, Item) or tree.kind is not JoinKind.INNER:
        return [tree], []
    (left, above), (right, below) = _flattened(tree.left), _flattened(tree.right)
    return left + right, [*above, *below, *conjuncts(tree.condition)]


def _mentioned(part: Expr, leaves: Sequence[Tree]) -> set[int]:
    used = used_columns(part)
    return {i for i, leaf in enumerate(leaves) if not used.isdisjoint(leaf.names)}


def _items(tree: Tree) -> Iterator[Item]:
    if isinstance(tree, Item):
        yield tree
    else:
        yield from _items(tree.left)
        yield from _items(tree.right)


def _is_bound_to_time(tree: Tree) -> bool:
    """Whether it is a non-retroactive relation, or made of such and of constant ones."""
    return isinstance(tree, Item) and is_relation(tree.plan) and _open(tree.plan) is not None


def _reads_stream(tree: Tree) -> bool:
    return any(not is_relation(item.plan) for item in _items(tree))


@once_per_node
def is_relation(plan: Plan) -> bool:
    """Whether it is made of relations only."""
    match plan:
        case Source() | Istream() | Dstream() | Rstream():
            return False
        case Window(relation=Changing()):
            return True
        case _:
            return all(map(is_relation, children(plan)))


@once_per_node
def _open(plan: Plan) -> Relation | Window | None:
    """The non-retroactive relation on whose present rows the plan's answer depends.

    What lives for one instant, and what is under a window, has the relation of its own instant.
    """
    match plan:
        case Relation(retroactive=retroactive):
            return None if retroactive else plan
        case Window(relation=Changing(retroactive=False)):
            return plan
        case Window():
            return None
        case _ if is_chronon(plan):
            return None
        case _:
            found = (_open(child) for child in children(plan))
            return next((one for one in found if one is not None), None)
