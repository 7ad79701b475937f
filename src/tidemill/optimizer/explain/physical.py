"""The text of a physical plan: one line an operator.

Each line says the form and the operator with its parameters; how the rows that leave it expire (the
update pattern, G-21), and why they have their form; and what tables it remembers and how they are
laid out (G-23): by arrival, first in first out; by arrival and expiry, those together that expire
together; or by key. Exchanges say where rows meet.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.expr import AggregateCall, Call, Case, Cast, Column, Literal, Named
from tidemill.algebra.plan import NamedAggregate
from tidemill.algebra.text import aggregate_text, expr_text, name_text
from tidemill.model.time import time_text
from tidemill.physical.codec.operators import operator_name
from tidemill.physical.codec.plans import write_physical
from tidemill.physical.forms import form_of
from tidemill.physical.plan import (
    Apply,
    Exchange,
    Input,
    PhysicalPlan,
    inputs,
    walk_physical,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.algebra.codec.values import Json
    from tidemill.optimizer.physical.labels import Labels

__all__ = ["NO_FIGURES", "Figures", "describe", "explain_physical", "physical_json"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of an operator: what it has done so far, and what it remembers now.

    Attributes:
        rows_in: How many elements came.
        rows_out: How many left.
        seconds: How long that took, over all partitions.
        state_rows: How many rows are remembered.
        state_bytes: How many bytes they take.
        watermark: How far time has come; ``None`` if there is none yet.
    """

    rows_in: int
    rows_out: int
    seconds: float
    state_rows: int
    state_bytes: int
    watermark: int | None

    def text(self) -> str:
        """What people see at the end of a line."""
        state = f", {self.state_rows:,} rows in {self.state_bytes:,} bytes" * bool(self.state_rows)
        mark = "" if self.watermark is None else f", watermark {time_text(self.watermark)}"
        seconds = f"{self.seconds:.3f} s"
        return f"  | {self.rows_in:,} in, {self.rows_out:,} out, {seconds}{state}{mark}"


NO_FIGURES: Mapping[str, Figures] = MappingProxyType({})


def explain_physical(
    plan: PhysicalPlan, labels: Labels, figures: Mapping[str, Figures] = NO_FIGURES
) -> str:
    """The plan as text; a part used in several places is shown once, with a number.

    Args:
        plan: The plan.
        labels: What is known of its parts.
        figures: What was measured of them, by fingerprint.
    """
    patterns, reasons = labels.patterns, labels.reasons
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
        measured = figures[name].text() if name in figures else ""
        yield f"{indent}{label}{describe(part)}{expiry}{_state(part)}{measured}"
        for below in inputs(part):
            yield from lines(below, depth + 1)

    return "\n".join(lines(plan, 0))


def physical_json(
    plan: PhysicalPlan, labels: Labels, figures: Mapping[str, Figures] = NO_FIGURES
) -> Json:
    """The plan for ``json``, as it is written, each part with what is known about it."""
    written = write_physical(plan)
    for part, shown in zip(walk_physical([plan]), written["parts"], strict=True):
        name = part.fingerprint
        shown["fingerprint"], shown["form"] = name, form_of(part).value
        if name in labels.patterns:
            shown["expiry"], shown["reason"] = labels.patterns[name].name, labels.reasons[name]
        if name in figures:
            shown["figures"] = asdict(figures[name])
        if isinstance(part, Apply):
            shown["emits"] = part.traits.emits.value
            shown["state"] = [asdict(table) for table in part.traits.tables]
    return written


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
            name = operator_name(operator).partition(".")[2]
            return f"{form_of(part).value}.{name}{_parameters(operator)}"
        case _:
            assert_never(part)


def _state(part: PhysicalPlan) -> str:
    layouts: dict[str, list[str]] = {}
    for table in part.traits.tables if isinstance(part, Apply) else ():
        layouts.setdefault(table.layout, []).append(table.name)
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
