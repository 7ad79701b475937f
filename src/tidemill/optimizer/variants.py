"""Variants: a query planned in several ways that its settings leave open, and which one is chosen.

Left open may be how plans represent the expiry of rows (``technique``), and where anti-joins stand
beside joins (``negation``). A query is planned in another way only where that can make a
difference. Anti-joins move where there are joins. Signs are needed where a row expires because of
input that is still to come and an operator above would wait for its end; the answer may wait if its
rows are given with their ends anyway.

Law: the first variant is chosen unless another one is expected to cost less than ``CLEARLY`` of it
and to answer no later; where limits are given, whatever keeps to them comes before what does not.
The same query is planned alike whenever the same is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

from tidemill.algebra.patterns import UpdatePattern, update_pattern
from tidemill.algebra.plan import AntiJoin, Filter, Join, Project
from tidemill.algebra.tree import children, walk
from tidemill.model.batch import Form
from tidemill.optimizer.decisions import Alternative, Decision
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Open

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.rules import Negation
    from tidemill.optimizer.planning import Planning

__all__ = ["CLEARLY", "Variant", "choose_variant", "variants"]

CLEARLY: Final = 0.8
"""The usual plan is kept unless another one is expected to cost less than this share of it."""

_SAME_DELAY: Final = 1.05
_TECHNIQUES: Final = (Technique.PATTERN, Technique.DIRECT)
_NEGATIONS: Final[tuple[Negation, ...]] = ("written", "pulled", "pushed")


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of planning a query.

    Attributes:
        planning: The settings.
        cpu: What it is expected to cost, in microseconds of work for a second of the streams.
        memory: How many bytes of state it is expected to hold.
        delay: How long after its start a row of the answer is expected to be known.
    """

    planning: Planning
    cpu: float
    memory: float
    delay: float

    @property
    def name(self) -> str:
        """What differs between variants."""
        return f"{self.planning.technique.value}, negation {self.planning.negation}"

    def lacks(self, planning: Planning) -> float:
        """How many times the limit it takes of what it exceeds most; 1 if it exceeds nothing."""
        cpu, memory = planning.cpu_limit, planning.memory_limit
        shares = (
            0.0 if cpu is None else self.cpu / cpu,
            0.0 if memory is None else self.memory / memory,
        )
        return max(1.0, *shares)


def variants(query: Plan, planning: Planning, answer: Form | None) -> tuple[Planning, ...]:
    """The ways in which a query can be planned; the usual one first.

    Args:
        query: What it means.
        planning: The settings, and what they leave open.
        answer: The form that the answer must have; ``None`` for either.
    """
    if not (planning.optimized and planning.left_open):
        return (planning,)
    nodes = list(walk(query))
    techniques: tuple[Technique, ...] = (planning.technique,)
    waits = answer is Form.INTERVAL and any(map(_reads_strict, nodes))
    if Open.TECHNIQUE in planning.left_open and waits:
        techniques = _TECHNIQUES
    negations: tuple[Negation, ...] = (planning.negation,)
    has_both = all(any(isinstance(node, kind) for node in nodes) for kind in (AntiJoin, Join))
    if Open.NEGATION in planning.left_open and has_both:
        negations = _NEGATIONS
    return tuple(
        replace(planning, technique=technique, negation=negation)
        for technique, negation in product(techniques, negations)
    )


def _reads_strict(node: Plan) -> bool:
    """Whether an operator that remembers rows reads some whose ends are not known in advance."""
    if isinstance(node, Project | Filter):
        return False
    return any(update_pattern(child) is UpdatePattern.STRICT for child in children(node))


def choose_variant(found: Sequence[Variant]) -> tuple[Variant, Decision]:
    """The variant to run, and why.

    Args:
        found: What was planned; the usual one first.
    """
    usual = found[0]
    limits = usual.planning
    best = usual
    for one in found[1:]:
        nearer = one.lacks(limits) < best.lacks(limits)
        is_no_later = one.delay <= usual.delay * _SAME_DELAY
        is_within = one.lacks(limits) <= best.lacks(limits)
        bar = CLEARLY * usual.cpu if best is usual else best.cpu
        if nearer or (is_within and is_no_later and one.cpu < bar):
            best = one
    if best is usual:
        why = "nothing is clearly cheaper that answers as soon"
    elif usual.lacks(limits) > best.lacks(limits):
        why = "nearer to the limits than the usual plan"
    else:
        why = "clearly cheaper than the usual plan, and no later"
    others = sorted((one for one in found if one is not best), key=lambda one: (one.cpu, one.name))
    return best, Decision(
        "form",
        best.name,
        best.cpu,
        tuple(Alternative(one.name, one.cpu, one.memory) for one in others),
        why,
        best.memory,
    )
