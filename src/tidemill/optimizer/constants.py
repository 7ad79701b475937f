"""Constants: what the operators of this engine cost, in microseconds.

An operator has a fixed cost in each step, whatever it has to do: a call of Polars takes some 100
microseconds, and most operators make several. Rows come on top, those that come and those that
leave, pairs that are compared, and rows of state that are looked at. ``DEFAULTS`` were measured by
``tidemill calibrate``, which measures them on another machine as well.

Law: ``read_constants(write_constants(c)) == c``; what is no such text is a ``PlanError``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from tidemill.errors import PlanError
from tidemill.physical.codec.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULTS", "Constants", "OperatorCost", "read_constants", "write_constants"]

_KIND: Final = "tidemill constants"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """What an operator costs, in microseconds.

    Attributes:
        step: In each step in which it is called.
        row_in: For each row that comes.
        row_out: For each row that leaves.
    """

    step: float
    row_in: float
    row_out: float


@dataclass(frozen=True, slots=True)
class Constants:
    """What everything costs, in microseconds.

    Attributes:
        operators: By the names of operators, as ``interval.Filter``.
        values: What an aggregate costs besides, for each argument whose values are remembered, as
            those of MIN and MAX.
        compared: For each pair of rows that is compared.
        scanned: For each row of state that is looked at.
        exchange_row: For each row that goes through an exchange.
        message: For each exchange, partition and step.
        stage: For each stage, partition and step.
        batch: For each step.
    """

    operators: Mapping[str, OperatorCost]
    values: OperatorCost
    compared: float
    scanned: float
    exchange_row: float
    message: float
    stage: float
    batch: float

    def __post_init__(self) -> None:
        known = {record.name for record in OPERATORS}
        assert self.operators.keys() == known, "each operator has its cost"


_PLAIN: Final = tuple(f.name for f in fields(Constants) if f.name not in ("operators", "values"))
_OF_OPERATOR: Final = tuple(field.name for field in fields(OperatorCost))


def write_constants(constants: Constants) -> str:
    """The constants as a text that people can read and change."""
    operators = {
        name: {part: getattr(cost, part) for part in _OF_OPERATOR}
        for name, cost in sorted(constants.operators.items())
    }
    plain = {name: getattr(constants, name) for name in _PLAIN}
    values = {part: getattr(constants.values, part) for part in _OF_OPERATOR}
    written = {"kind": _KIND, "version": _VERSION, "unit": "microseconds", **plain}
    return json.dumps({**written, "values": values, "operators": operators}, indent=2) + "\n"


def read_constants(text: str, where: str) -> Constants:
    """The constants of a text; operators that it does not name have their defaults.

    Args:
        text: The text.
        where: What it is called in a message.

    Raises:
        PlanError: It is no text of constants, or one of them is none.
    """
    try:
        written = json.loads(text)
    except ValueError:
        raise _damaged(where, "it is not JSON") from None
    if not isinstance(written, dict) or written.get("kind") != _KIND:
        raise _damaged(where, f'it does not say "kind": "{_KIND}"')
    if written.get("version") != _VERSION:
        raise _damaged(where, f"it is of version {written.get('version')}, not {_VERSION}")
    plain = {name: _number(written, name, where) for name in _PLAIN}
    values = _cost(written.get("values"), "values", where)
    return Constants(_operators(written.get("operators"), where), values, **plain)


def _operators(written: object, where: str) -> dict[str, OperatorCost]:
    if not isinstance(written, dict):
        raise _damaged(where, 'it has no "operators"')
    unknown = sorted(written.keys() - DEFAULTS.operators.keys())
    if unknown:
        raise _damaged(where, f'there is no operator "{unknown[0]}"')
    costs = dict(DEFAULTS.operators)
    return costs | {name: _cost(cost, name, where) for name, cost in written.items()}


def _cost(written: object, name: str, where: str) -> OperatorCost:
    if not isinstance(written, dict):
        raise _damaged(where, f'"{name}" has no costs')
    return OperatorCost(**{part: _number(written, part, where) for part in _OF_OPERATOR})


def _number(written: Mapping[str, Any], name: str, where: str) -> float:
    value = written.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _damaged(where, f'"{name}" is not a number')
    if not (isfinite(value) and value >= 0):
        raise _damaged(where, f'"{name}" is {value}; a cost is neither negative nor endless')
    return float(value)


def _damaged(where: str, why: str) -> PlanError:
    return PlanError(
        f"{where} does not hold the constants of the cost model: {why}",
        hint="tidemill calibrate --output FILE writes such a file",
    )


DEFAULTS: Final = Constants(
    {
        "interval.Filter": OperatorCost(100.0, 0.02, 0.02),
        "interval.Project": OperatorCost(100.0, 0.02, 0.02),
        "interval.Union": OperatorCost(100.0, 0.02, 0.02),
        "interval.Number": OperatorCost(100.0, 0.02, 0.02),
        "interval.Since": OperatorCost(100.0, 0.02, 0.02),
        "interval.Split": OperatorCost(2000.0, 0.2, 0.2),
        "interval.Coalesce": OperatorCost(2000.0, 0.2, 0.2),
        "interval.Granularity": OperatorCost(100.0, 0.02, 0.02),
        "interval.Changes": OperatorCost(2000.0, 0.2, 0.2),
        "signed.ToSigned": OperatorCost(100.0, 0.02, 0.02),
        "signed.ToIntervals": OperatorCost(2000.0, 0.2, 0.2),
        "signed.Hold": OperatorCost(2000.0, 0.2, 0.2),
        "interval.Stretch": OperatorCost(100.0, 0.02, 0.02),
        "signed.Stretch": OperatorCost(2000.0, 0.2, 0.2),
        "interval.TimeWindow": OperatorCost(100.0, 0.02, 0.02),
        "interval.RowWindow": OperatorCost(2000.0, 0.2, 0.2),
        "signed.RowWindow": OperatorCost(2000.0, 0.2, 0.2),
        "interval.SessionWindow": OperatorCost(2000.0, 0.2, 0.2),
        "signed.SessionWindow": OperatorCost(2000.0, 0.2, 0.2),
        "interval.Join": OperatorCost(2000.0, 0.2, 0.2),
        "signed.Join": OperatorCost(2000.0, 0.2, 0.2),
        "interval.MultiJoin": OperatorCost(2000.0, 0.2, 0.2),
        "signed.MultiJoin": OperatorCost(2000.0, 0.2, 0.2),
        "interval.Aggregate": OperatorCost(2000.0, 0.2, 0.2),
        "signed.Aggregate": OperatorCost(2000.0, 0.2, 0.2),
        "interval.Combine": OperatorCost(2000.0, 0.2, 0.2),
        "interval.Counting": OperatorCost(2000.0, 0.2, 0.2),
        "signed.Counting": OperatorCost(2000.0, 0.2, 0.2),
        "interval.Distinct": OperatorCost(2000.0, 0.2, 0.2),
    },
    values=OperatorCost(2000.0, 1.0, 1.0),
    compared=0.02,
    scanned=0.05,
    exchange_row=0.1,
    message=100.0,
    stage=20.0,
    batch=50.0,
)
"""What was measured where this version was made."""
