"""Physical plans as JSON: a list of parts, inputs before what stands above them.

    {"version": 1, "parts": [{"input": "bid", "schema": […]}, {"operator": …, "inputs": [0]}, …],
     "queries": {"hot": 1}}

Law: what is read has the parts, fingerprints and fields of what was written.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.codec import VERSION
from tidemill.algebra.codec.values import EXPR, SCHEMA, canonical, many
from tidemill.errors import RunError
from tidemill.physical.codec.operators import read_operator, write_operator
from tidemill.physical.plan import Apply, Exchange, Input, inputs, walk_physical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.codec.values import Json
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["plan_version", "read_physical", "read_plans", "write_physical", "write_plans"]

_KEYS = many(EXPR)

_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, AssertionError, RecursionError)
"""What goes wrong if a plan is not what was written."""


def write_plans(queries: Mapping[str, PhysicalPlan]) -> Json:
    """The plans of some queries, for ``json``; what they share is written once."""
    numbers: dict[str, int] = {}
    parts: list[Json] = []
    for part in walk_physical(queries.values()):
        numbers[part.fingerprint] = len(parts)
        parts.append(_write_part(part, [numbers[below.fingerprint] for below in inputs(part)]))
    tops = {query: numbers[plan.fingerprint] for query, plan in queries.items()}
    return {"version": VERSION, "parts": parts, "queries": tops}


def read_plans(written: Json) -> dict[str, PhysicalPlan]:
    """The plans that were written, by query.

    Raises:
        RunError: They are of another version, or damaged.
    """
    try:
        if written["version"] != VERSION:
            raise RunError(
                f"a plan was written in version {written['version']}, and this one reads {VERSION}",
                hint="go on with the version of Tidemill that wrote it",
            )
        parts: list[PhysicalPlan] = []
        for part in written["parts"]:
            parts.append(_read_part(part, parts))
        return {query: parts[number] for query, number in written["queries"].items()}
    except _DAMAGE as error:
        raise RunError(
            f"a written plan cannot be read: {error!r}",
            hint="it is damaged, or was written by a later version of Tidemill",
        ) from error


def write_physical(plan: PhysicalPlan) -> Json:
    """One plan, for ``json``; its topmost part is the last one."""
    written = write_plans({"": plan})
    del written["queries"]
    return written


def read_physical(written: Json) -> PhysicalPlan:
    """The plan that was written by itself.

    Raises:
        RunError: It is of another version, or damaged.
    """
    is_plan = isinstance(written, dict)
    return read_plans({**written, "queries": {"": -1}} if is_plan else written)[""]


def plan_version(plan: PhysicalPlan) -> str:
    """A short name for a plan with everything that is written of it, also how joins probe."""
    return hashlib.sha256(canonical(write_physical(plan)).encode()).hexdigest()[:16]


def _write_part(part: PhysicalPlan, below: list[int]) -> Json:
    match part:
        case Input(name, schema):
            written = {"input": name, "schema": SCHEMA.write(schema)}
        case Exchange(_, keys):
            return {"exchange": below[0], "keys": _KEYS.write(keys)}
        case Apply(operator):
            written = {**write_operator(operator), "on": below}
        case _:
            assert_never(part)
    return {**written, "epoch": part.epoch} if part.epoch else written


def _read_part(written: Json, parts: list[PhysicalPlan]) -> PhysicalPlan:
    if "operator" in written:
        below = tuple(parts[number] for number in written["on"])
        return Apply(read_operator(written), below, written.get("epoch", 0))
    if "exchange" in written:
        moved = parts[written["exchange"]]
        return Exchange(moved, _KEYS.read(written["keys"]), moved.schema)
    return Input(written["input"], SCHEMA.read(written["schema"]), written.get("epoch", 0))
