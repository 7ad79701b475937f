"""Logical plans as JSON: a list of operators, inputs before what stands above them.

Law: ``read_plan(write_plan(p)) == p``; equal plans are written alike, whether or not their equal
parts are one node. Where a plan stands in a statement is left out.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from tidemill.algebra import plan as plans
from tidemill.algebra.codec import VERSION
from tidemill.algebra.codec.records import Record
from tidemill.algebra.codec.values import (
    AGGREGATES,
    EXPR,
    NAMED,
    PLAIN,
    SCHEMA,
    Codec,
    canonical,
    enum,
    many,
    optional,
)
from tidemill.algebra.tree import children

if TYPE_CHECKING:
    from tidemill.algebra.codec.values import Json
    from tidemill.algebra.plan import Plan

__all__ = ["meaning", "read_plan", "write_plan"]

_NAMES = many(PLAIN)

_SPECS = {
    record.kind: record
    for record in (
        Record("range", plans.TimeWindow, {"size": PLAIN, "slide": PLAIN}),
        Record(
            "rows",
            plans.RowWindow,
            {"rows": PLAIN, "slide": PLAIN, "partition_by": _NAMES, "unless": optional(EXPR)},
        ),
        Record("session", plans.SessionWindow, {"gap": PLAIN, "partition_by": _NAMES}),
        Record("unbounded", plans.Unbounded, {}),
    )
}
_SPEC_NAMES = {record.name: record for record in _SPECS.values()}

_SPEC: Codec[plans.WindowSpec] = Codec(
    lambda spec: {"window": _SPECS[type(spec)].name, **_SPECS[type(spec)].write(spec)},
    lambda written: _SPEC_NAMES[written["window"]].read(written),
)

_VALIDITY = Record("validity", plans.Validity, {"start": PLAIN, "end": PLAIN})
_PERIOD: Codec[plans.Validity] = Codec(_VALIDITY.write, _VALIDITY.read)

_MARKER = Record("changing", plans.Changing, {"name": PLAIN, "retroactive": PLAIN})
_CHANGING: Codec[plans.Changing] = Codec(_MARKER.write, _MARKER.read)

_ON: dict[str, Codec[Any]] = {"condition": EXPR, "names": _NAMES}

_NODES = {
    record.kind: record
    for record in (
        Record("Source", plans.Source, {"name": PLAIN, "schema": SCHEMA, "since": PLAIN}),
        Record(
            "Relation",
            plans.Relation,
            {"name": PLAIN, "schema": SCHEMA, "validity": optional(_PERIOD), "retroactive": PLAIN},
        ),
        Record(
            "Window",
            plans.Window,
            {"spec": _SPEC, "internal": PLAIN, "relation": optional(_CHANGING)},
        ),
        Record("Filter", plans.Filter, {"predicate": EXPR}),
        Record("Project", plans.Project, {"columns": NAMED}),
        Record("Distinct", plans.Distinct, {}),
        Record("Aggregate", plans.Aggregate, {"keys": NAMED, "aggregates": AGGREGATES}),
        Record("Istream", plans.Istream, {}),
        Record("Dstream", plans.Dstream, {}),
        Record("Rstream", plans.Rstream, {}),
        Record("Join", plans.Join, {"kind": enum(plans.JoinKind), **_ON}),
        Record("SemiJoin", plans.SemiJoin, _ON),
        Record("AntiJoin", plans.AntiJoin, _ON),
        Record("Union", plans.Union, {}),
        Record("MaxUnion", plans.MaxUnion, {}),
        Record("Difference", plans.Difference, {}),
        Record("StrictDifference", plans.StrictDifference, {}),
        Record("Intersect", plans.Intersect, {}),
    )
}
_NODE_NAMES = {record.name: record for record in _NODES.values()}

_PORTS = {1: ("input",), 2: ("left", "right")}


def write_plan(plan: Plan) -> Json:
    """The plan, for ``json``."""
    nodes: list[Json] = []
    numbers: dict[int, int] = {}
    equal: dict[str, int] = {}

    def visit(node: Plan) -> int:
        if id(node) not in numbers:
            below = [visit(child) for child in children(node)]
            record = _NODES[type(node)]
            written = {"operator": record.name, **record.write(node)}
            if below:
                written["inputs"] = below
            text = canonical(written)
            if text not in equal:
                equal[text] = len(nodes)
                nodes.append(written)
            numbers[id(node)] = equal[text]
        return numbers[id(node)]

    visit(plan)
    return {"version": VERSION, "operators": nodes}


def read_plan(written: Json) -> Plan:
    """The plan that was written; the last operator is the topmost."""
    nodes: list[Plan] = []
    for operator in written["operators"]:
        below = [nodes[number] for number in operator.get("inputs", ())]
        ports = dict(zip(_PORTS[len(below)], below, strict=True)) if below else {}
        nodes.append(_NODE_NAMES[operator["operator"]].read(operator, **ports))
    return nodes[-1]


def meaning(plan: Plan) -> str:
    """A short name for what a query asks; equal for equal plans, in every process and version."""
    return hashlib.sha256(canonical(write_plan(plan)).encode()).hexdigest()[:16]
