"""The text of a physical plan: one line an operator.

Each line says the form and the operator with its parameters; how the rows that leave it expire (the
update pattern, G-21), and why they have their form; and what tables it remembers and how they are
laid out (G-23): by arrival, first in first out; by arrival and expiry, those together that expire
together; or by key. Exchanges say where rows meet.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.expr import AggregateCall, Call, Case, Cast, Column, Literal, Named
from tidemill.algebra.plan import NamedAggregate
from tidemill.algebra.text import aggregate_text, expr_text, name_text
from tidemill.physical.forms import form_of
from tidemill.physical.plan import Apply, Exchange, Input, PhysicalPlan, inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.optimizer.physical.implement import Implemented

__all__ = ["describe", "explain_physical"]


def explain_physical(implemented: Implemented) -> str:
    """The plan as text; a part used in several places is shown once, with a number."""
    plan, patterns, reasons = implemented.plan, implemented.patterns, implemented.reasons
    uses: dict[str, int] = {}

    def count(part: PhysicalPlan) -> None:
        name = part.fingerprint
        uses[name] = uses.get(name, 0) + 1
        if uses[name] == 1:
            for below in inputs(part):
                count(below)

    count(plan)
    numbers: dict[str, int] = {}

    def lines(part: PhysicalPlan, depth: int) -> Iterator[str]:
        indent, name = "  " * depth, part.fingerprint
        if name in numbers:
            yield f"{indent}see [{numbers[name]}]"
            return
        label = ""
        if uses[name] > 1 and inputs(part):
            numbers[name] = len(numbers) + 1
            label = f"[{numbers[name]}] "
        labelled = name in patterns and not isinstance(part, Exchange)
        expiry = f"  {patterns[name].name.lower()}: {reasons[name]}" if labelled else ""
        yield f"{indent}{label}{describe(part)}{expiry}{_state(part)}"
        for below in inputs(part):
            yield from lines(below, depth + 1)

    return "\n".join(lines(plan, 0))


def describe(part: PhysicalPlan) -> str:
    """One part as text, without what stands below it."""
    match part:
        case Input(name):
            return f"Input {name_text(name)}"
        case Exchange(_, ()):
            return "Exchange to one partition"
        case Exchange(_, keys):
            return f"Exchange by {', '.join(map(expr_text, keys))}"
        case Apply(operator):
            return f"{form_of(part).value}.{type(operator).__name__}{_parameters(operator)}"
        case _:
            assert_never(part)


def _state(part: PhysicalPlan) -> str:
    tables = part.operator.new_state().tables if isinstance(part, Apply) else {}
    layouts: dict[str, list[str]] = {}
    for name, table in tables.items():
        layouts.setdefault(table.layout, []).append(name)
    kept = "; ".join(f"{', '.join(names)} by {layout}" for layout, names in layouts.items())
    return f"  remembers {kept}" if kept else ""


def _parameters(operator: object) -> str:
    assert is_dataclass(operator), "operators are dataclasses"
    shown = []
    for field in fields(operator):
        value = getattr(operator, field.name)
        if not field.repr or field.name in _SCHEMAS:
            continue
        text = _text(value)
        if text:
            shown.append(f"{field.name}={text}")
    return f"({', '.join(shown)})" if shown else ""


_SCHEMAS = frozenset(
    {
        "max_delay",
        "schema",
        "input_schema",
        "input",
        "inputs",
        "left",
        "right",
        "names",
        "right_names",
    }
)


def _text(value: object) -> str:
    match value:
        case Call() | Case() | Cast() | Column() | Literal():
            return expr_text(value)
        case Named(name, expr):
            text = expr_text(expr)
            return text if text == name_text(name) else f"{text} AS {name_text(name)}"
        case NamedAggregate(_, call) | (AggregateCall() as call):
            return aggregate_text(call)
        case tuple():
            return f"[{', '.join(map(_text, value))}]" if value else ""
        case None | False:
            return ""
        case _:
            return str(getattr(value, "value", value))
