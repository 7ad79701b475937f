"""Templates: the plan of alike queries, made once for all of them.

Queries are alike if they differ in constants only. The first one of a kind is planned as any other;
with the second one a template is made: the phases plan it with parameters for its constants
(``algebra/parameters.py``). From then on a plan is the template with constants put in.

Law: what is planned with templates is what is planned without: the same operators with the same
fingerprints, the same labels, decisions and steps. Where a phase looks at the value of a constant,
there is no template, and each query is planned by itself.

Templates are of one session, and forgotten when there are many, or when other things are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from tidemill.algebra.parameters import (
    ValueWantedError,
    constants_in,
    key_of,
    parameterized,
    places_of,
    with_constants,
)
from tidemill.errors import PlanError
from tidemill.optimizer.logical.rewrite import Step
from tidemill.physical.plan import Apply, Exchange, Input, over, walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tidemill.algebra.expr import Literal
    from tidemill.algebra.parameters import Constant
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.phases import Draft
    from tidemill.optimizer.planning import Planning
    from tidemill.physical.operator import Operator
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Templates"]

_MOST = 1_000
"""So many kinds of queries are remembered."""


@dataclass(frozen=True, slots=True)
class _Template:
    """The draft of a query without its constants.

    Attributes:
        draft: The draft, with parameters.
        parts: The parts of its plan, inputs before what stands above them.
        places: The fields of operators that have parameters, by fingerprint.
    """

    draft: Draft
    parts: tuple[PhysicalPlan, ...]
    places: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class Templates:
    """The templates of a session.

    Attributes:
        made: How many plans were made from a template.
    """

    made: int = 0
    _known: dict[Hashable, _Template | None] = field(default_factory=dict)
    _seen: set[Hashable] = field(default_factory=set)
    _of: object = None

    def prepared(self, draft: Draft, prepare: Callable[[Draft], Draft]) -> Draft:
        """What phases make of a query.

        Args:
            draft: The query, as bound.
            prepare: The phases. They read of the target what ``Target.shape`` says.

        Raises:
            PlanError: It cannot be planned.
        """
        known = (draft.context.statistics, draft.planning.constants)
        if self._of != known or len(self._seen) > _MOST:
            self._of = known
            self._known, self._seen = {}, set()
        query = parameterized(draft.bound)
        if not query.constants:
            return prepare(draft)
        key = (key_of(query.plan), draft.target.shape, _settings(draft.planning))
        try:
            template = self._template(key, query.plan, draft, prepare)
            if template is not None:
                found = _filled(template, draft, query.constants, prepare)
                self.made += 1
                return found
        except (ValueWantedError, PlanError, TypeError):
            pass  # no template can be made, or what is wrong is found in the query itself
        return prepare(draft)

    def _template(
        self, key: Hashable, query: Plan, draft: Draft, prepare: Callable[[Draft], Draft]
    ) -> _Template | None:
        """The template of a kind of queries, from the second one on; ``None`` if there is none."""
        if key in self._known:
            return self._known[key]
        if key not in self._seen:
            self._seen.add(key)
            return None
        self._known[key] = None  # unless one can be made
        made = prepare(replace(draft, bound=query, logical=query))
        if next(constants_in(query), None) is None and not _appeared(made):
            parts = tuple(walk_physical([made.physical]))
            self._known[key] = _Template(made, parts, _places(parts))
        return self._known[key]


def _settings(planning: Planning) -> tuple[object, ...]:
    """All settings but the constants."""
    named = (one.name for one in fields(planning) if one.name != "constants")
    return tuple(getattr(planning, name) for name in named)


def _appeared(draft: Draft) -> tuple[Literal, ...]:
    """Constants that phases have made: one may be a parameter's, and nobody would have seen it."""
    afters = [step.after for step in draft.steps if isinstance(step, Step)]
    parts = [*afters, draft.logical, *walk_physical([draft.physical])]
    return tuple(found for part in parts for found in constants_in(part))


def _places(parts: Sequence[PhysicalPlan]) -> dict[str, tuple[str, ...]]:
    """The fields of operators that have parameters."""
    found = {}
    for part in parts:
        if isinstance(part, Apply):
            own = places_of(part.operator)
            if own:
                found[part.fingerprint] = own
    return found


def _filled(
    template: _Template,
    draft: Draft,
    constants: Sequence[Constant],
    prepare: Callable[[Draft], Draft],
) -> Draft:
    """The draft of a query whose constants are known."""
    made = template.draft
    assert made.placed is not None, "it is implemented"
    new: dict[str, PhysicalPlan] = {}
    for part in template.parts:
        new[part.fingerprint] = _part(part, new, template.places, constants)
    names = {old: part.fingerprint for old, part in new.items()}
    return replace(
        draft,
        logical=with_constants(made.logical, constants),
        placed=replace(made.placed, plan=new[made.physical.fingerprint]),
        labels=made.labels.moved(names),
        decisions=made.decisions,
        earlier=lambda: prepare(draft).steps,
    )


def _part(
    part: PhysicalPlan,
    new: Mapping[str, PhysicalPlan],
    places: Mapping[str, tuple[str, ...]],
    constants: Sequence[Constant],
) -> PhysicalPlan:
    """A part of a template with constants, over inputs that have them."""
    match part:
        case Input():
            return part
        case Exchange(input_, keys, schema):
            below = new[input_.fingerprint]
            keys_now = with_constants(keys, constants)
            return (
                part if below is input_ and keys_now is keys else Exchange(below, keys_now, schema)
            )
        case Apply(operator, inputs):
            below_now = tuple(new[one.fingerprint] for one in inputs)
            own = places.get(part.fingerprint, ())
            if not own:
                return over(part, below_now)
            return Apply(_operator(operator, own, constants), below_now, part.epoch)


def _operator(operator: Operator, names: Sequence[str], constants: Sequence[Constant]) -> Operator:
    changed = {name: with_constants(getattr(operator, name), constants) for name in names}
    filled: Operator = replace(operator, **changed)  # type: ignore[type-var]  # a dataclass
    return filled
