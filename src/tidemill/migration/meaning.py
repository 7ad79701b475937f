"""The meaning of a part of a physical plan: leaves, what is true of their rows, and the columns.

Filters, projections, joins and windows are told apart by what they do and not by where they stand.
Anything else is a leaf: an operator that means what it is, over inputs that mean something.

Law: two parts with the same ``text`` give the same rows at every instant, under the same names.

A column of a leaf is called ``number.name``: one stream may be there more than once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby, permutations, product
from math import factorial, prod
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.codec.values import EXPR, canonical
from tidemill.algebra.expr import Column, Expr, conjuncts, replace_columns
from tidemill.migration.conditions import Conditions
from tidemill.physical.means import Chosen, Combined, Computed, Timed, means_of
from tidemill.physical.plan import Apply, Exchange, Input, inputs, walk_physical
from tidemill.physical.traits import Emission

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidemill.physical.means import Means
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Meaning", "is_leaf", "meaning_in", "meanings_of", "numbered", "renumbered"]

_MANY_ORDERS = 720
"""With more orders of equal leaves than this, they are taken as they come."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a part gives.

    Attributes:
        leaves: What is combined, as texts; equal texts give the same rows.
        conditions: What is true, in columns of the leaves.
        columns: The columns that leave, in columns of the leaves.
        places: By which values rows have found their partition, in columns of the leaves; each
            of them says it. None: they may be anywhere. Without any values, all are in one.
    """

    leaves: tuple[str, ...]
    conditions: tuple[Expr, ...]
    columns: Mapping[str, Expr]
    places: frozenset[tuple[Expr, ...]]

    @property
    def text(self) -> str:
        """A text that two meanings have if they are the same, wherever their rows are."""
        return min(self._texts())[0]

    @property
    def placed_text(self) -> str:
        """The same with the partitions of rows."""
        return "\n".join(min(self._texts()))

    def orders_of(self, other: Meaning) -> Iterator[tuple[int, ...]]:
        """For each way in which the leaves are those of another one, the number of each there."""
        if Counter(self.leaves) != Counter(other.leaves):
            return
        at: dict[str, list[int]] = {}
        for number, leaf in enumerate(other.leaves):
            at.setdefault(leaf, []).append(number)
        own: dict[str, list[int]] = {}
        for number, leaf in enumerate(self.leaves):
            own.setdefault(leaf, []).append(number)
        ways = (_some(permutations(at[leaf]), len(at[leaf])) for leaf in own)
        for chosen in product(*ways):
            found = [0] * len(self.leaves)
            for numbers, others in zip(own.values(), chosen, strict=True):
                for number, that in zip(numbers, others, strict=True):
                    found[number] = that
            yield tuple(found)

    def _texts(self) -> Iterator[tuple[str, str]]:
        in_order = sorted(range(len(self.leaves)), key=lambda number: self.leaves[number])
        groups = [tuple(same) for _, same in groupby(in_order, key=lambda n: self.leaves[n])]
        many = prod(factorial(len(group)) for group in groups)
        ways = [permutations(group) if many <= _MANY_ORDERS else [group] for group in groups]
        leaves = "\n".join(self.leaves[number] for number in in_order)
        for chosen in product(*ways):
            order = [number for group in chosen for number in group]
            numbers = [0] * len(order)
            for new, old in enumerate(order):
                numbers[old] = new
            yield self._text(leaves, numbers)

    def _text(self, leaves: str, numbers: Sequence[int]) -> tuple[str, str]:
        known = Conditions(renumbered(part, numbers) for part in self.conditions)

        def written(expr: Expr) -> str:
            return canonical(EXPR.write(known.rewritten(renumbered(expr, numbers))))

        classes = sorted(sorted(column.name for column in class_) for class_ in known.classes)
        facts = sorted(canonical(EXPR.write(fact)) for fact in known.facts)
        columns = sorted((name, written(expr)) for name, expr in self.columns.items())
        places = sorted({tuple(map(written, place)) for place in self.places})
        return f"{leaves}\n{classes}\n{facts}\n{columns}", f"{places}"


def meanings_of(plan: PhysicalPlan) -> dict[str, Meaning]:
    """The meaning of each part of a plan, by fingerprint."""
    found: dict[str, Meaning] = {}
    for part in walk_physical([plan]):
        below = [found[child.fingerprint] for child in inputs(part)]
        match part:
            case Input(name, schema, epoch):
                columns = {f.name: Column(f"0.{f.name}", f.type) for f in schema}
                meaning = Meaning((f"input {name} {epoch}",), (), columns, frozenset())
            case Exchange(_, keys):
                place = tuple(meaning_in(key, below[0]) for key in keys)
                meaning = replace(below[0], places=frozenset({place}))
            case Apply():
                meaning = _applied(part, below)
            case _:
                assert_never(part)
        found[part.fingerprint] = meaning
    return found


def is_leaf(part: Apply, below: Sequence[Meaning]) -> bool:
    """Whether an operator means what it is, over inputs with these meanings."""
    return _told(part, below) is None


def meaning_in(expr: Expr, meaning: Meaning) -> Expr:
    """An expression over the columns that a part gives, in columns of the leaves."""
    return replace_columns(expr, lambda column: meaning.columns[column.name])


def numbered(expr: Expr, offset: int) -> Expr:
    """An expression over leaves that stand behind others."""

    def behind(column: Column) -> Column:
        number, name = column.name.split(".", 1)
        return Column(f"{int(number) + offset}.{name}", column.type)

    return replace_columns(expr, behind) if offset else expr


def renumbered(expr: Expr, numbers: Sequence[int]) -> Expr:
    """An expression over leaves that have other numbers."""

    def new(column: Column) -> Column:
        number, name = column.name.split(".", 1)
        return Column(f"{numbers[int(number)]}.{name}", column.type)

    return replace_columns(expr, new)


def _told(part: Apply, below: Sequence[Meaning]) -> Means | None:
    """What an operator does with its inputs; ``None`` if it means what it is."""
    means = means_of(part.operator)
    if part.traits.emits is Emission.WHEN_ENDED:
        return None  # what it gives lies behind, and so is not the same yet
    if isinstance(means, Timed) and len(below[0].leaves) > 1:
        return None  # the window of a combination is none of the windows of its parts
    return means


def _applied(part: Apply, below: Sequence[Meaning]) -> Meaning:
    match _told(part, below):
        case Chosen(condition):
            parts = tuple(meaning_in(one, below[0]) for one in conjuncts(condition))
            return replace(below[0], conditions=(*below[0].conditions, *parts))
        case Computed(columns):
            return replace(
                below[0], columns={c.name: meaning_in(c.expr, below[0]) for c in columns}
            )
        case Timed(text):
            (leaf,) = below[0].leaves
            return replace(below[0], leaves=(f"{leaf}; {text}",))
        case Combined(names, condition):
            return _combined(part, names, condition, below)
        case None:
            return _leaf(part, below)


def _combined(
    part: Apply, names: Sequence[Sequence[str]], condition: Expr, below: Sequence[Meaning]
) -> Meaning:
    leaves: tuple[str, ...] = ()
    conditions: list[Expr] = []
    columns: dict[str, Expr] = {}
    places: list[frozenset[tuple[Expr, ...]]] = []
    for port, (meaning, new) in enumerate(zip(below, names, strict=True)):
        offset = len(leaves)
        conditions += [numbered(one, offset) for one in meaning.conditions]
        own = part.inputs[port].schema.names
        for name, old in zip(new, own, strict=True):
            columns[name] = numbered(meaning.columns[old], offset)
        moved = (tuple(numbered(e, offset) for e in place) for place in meaning.places)
        places.append(frozenset(moved))
        leaves += meaning.leaves
    joined = Meaning(leaves, (), columns, frozenset())
    own_conditions = tuple(meaning_in(one, joined) for one in conjuncts(condition))
    met = reduce(frozenset.union, places)  # they meet, so what says it of one says it of all
    return Meaning(leaves, (*conditions, *own_conditions), columns, met)


def _leaf(part: Apply, below: Sequence[Meaning]) -> Meaning:
    """An operator that means what it is."""
    text = " | ".join(canonical(one.text) for one in below)
    columns: dict[str, Expr] = {f.name: Column(f"0.{f.name}", f.type) for f in part.schema}
    places: list[frozenset[tuple[Expr, ...]]] = []
    for meaning, passes in zip(below, part.traits.passes, strict=True):
        names = {meaning_in(expr, meaning): min(found) for expr, found in passes.items() if found}
        passed = (place for place in meaning.places if names.keys() >= set(place))
        places.append(
            frozenset(tuple(columns[names[value]] for value in place) for place in passed)
        )
    return Meaning((f"{part.own} ({text})",), (), columns, reduce(frozenset.intersection, places))


def _some(orders: Iterator[tuple[int, ...]], count: int) -> list[tuple[int, ...]]:
    """The orders of some equal leaves, or one if there are too many."""
    return list(orders) if factorial(count) <= _MANY_ORDERS else [next(orders)]
