"""Pull an anti-join above a join (negation pull-up, G-24).

    Join inner on a = c            AntiJoin on a = b
      AntiJoin on a = b     ->       Join inner on a = c
        left (a)                       left (a)
        right (b)                      other (c)
      other (c)                      right (b)

Condition: the join is inner; the anti-join stands on either side of it.
Equal because an anti-join keeps all copies of a left row or none, which depends on that row and the
right side alone: so it keeps all pairs the row is in, or none. A difference counts copies, and the
join multiplies them: it cannot be pulled.

It simplifies update patterns: when a row of an anti-join ends is not known (STRICT), and so of all
that stands above it. Afterwards the join is at most WEAK, if its inputs are. That pays where rows
often end early and the join does not multiply them; otherwise ``push_anti_join_below_join`` does,
so neither is among the rules that are always applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import AntiJoin, Join, JoinKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["pull_anti_join_through_join"]


def pull_anti_join_through_join(plan: Plan, _context: Context) -> Plan | None:
    """The anti-join above the join."""
    match plan:
        case Join(AntiJoin() as anti, other, JoinKind.INNER, condition, names):
            joined = Join(anti.left, other, JoinKind.INNER, condition, names)
            own, others, of_right = _names(anti, other)
            sides = (*own, *others)
        case Join(other, AntiJoin() as anti, JoinKind.INNER, condition, names):
            joined = Join(other, anti.left, JoinKind.INNER, condition, names)
            own, others, of_right = _names(anti, other)
            sides = (*others, *own)
        case _:
            return None
    return AntiJoin(joined, anti.right, anti.condition, (*sides, *of_right))


def _names(anti: AntiJoin, other: Plan) -> tuple[tuple[str, ...], ...]:
    """What the anti-join calls the columns of its left side, of the other, and of its right."""
    width = len(anti.left.schema)
    others = _fresh(other.schema.names, taken=anti.names)
    return anti.names[:width], others, anti.names[width:]


def _fresh(names: Iterable[str], taken: Iterable[str]) -> tuple[str, ...]:
    """The names, with numbers where they are taken."""
    used, fresh = {name.lower() for name in taken}, []
    for name in names:
        unused, number = name, 0
        while unused.lower() in used:
            number += 1
            unused = f"{name}_{number}"
        used.add(unused.lower())
        fresh.append(unused)
    return tuple(fresh)
