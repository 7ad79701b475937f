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
        message: For each exchange, partition and step; both where there are several partitions.
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
        "interval.Filter": OperatorCost(44.6, 0.00243, 0.0),
        "interval.Project": OperatorCost(34.6, 0.00058, 0.000587),
        "interval.Union": OperatorCost(19.5, 2.55e-05, 2.61e-05),
        "interval.Number": OperatorCost(46.2, 0.000922, 0.000976),
        "interval.Since": OperatorCost(31.9, 0.0, 0.0),
        "interval.Identify": OperatorCost(46.2, 0.000922, 0.000976),
        # Its rows were measured in batches of up to 300,000: those of a join can be very many.
        "interval.Shorten": OperatorCost(60.7, 0.00113, 0.00327),
        "interval.Split": OperatorCost(648.0, 0.0, 0.022),
        "interval.Coalesce": OperatorCost(807.0, 0.259, 0.309),
        "interval.Granularity": OperatorCost(134.0, 0.00602, 0.00614),
        "interval.Changes": OperatorCost(332.0, 0.0502, 0.0536),
        "signed.ToSigned": OperatorCost(147.0, 0.0, 0.00288),
        "signed.ToIntervals": OperatorCost(1310.0, 0.265, 0.327),
        "signed.Hold": OperatorCost(127.0, 0.0183, 0.0186),
        "interval.Stretch": OperatorCost(227.0, 0.00134, 0.00137),
        "signed.Stretch": OperatorCost(403.0, 0.0668, 0.0682),
        "interval.TimeWindow": OperatorCost(73.3, 0.00316, 0.00326),
        "interval.RowWindow": OperatorCost(2210.0, 0.247, 0.272),
        "signed.RowWindow": OperatorCost(848.0, 0.53, 0.0),
        "interval.SessionWindow": OperatorCost(1350.0, 0.0402, 0.482),
        "signed.SessionWindow": OperatorCost(1480.0, 0.116, 0.174),
        "interval.Join": OperatorCost(430.0, 0.152, 0.000415),
        "signed.Join": OperatorCost(4300.0, 0.768, 0.0),
        "interval.MultiJoin": OperatorCost(954.0, 0.0, 0.0778),
        "interval.JoinTree": OperatorCost(179.0, 0.0493, 0.07),
        "signed.MultiJoin": OperatorCost(6840.0, 0.0, 0.219),
        "interval.Aggregate": OperatorCost(1390.0, 0.0, 0.298),
        "signed.Aggregate": OperatorCost(1630.0, 0.194, 0.0716),
        "interval.Combine": OperatorCost(132.0, 0.0611, 0.0),
        "interval.Counting": OperatorCost(1730.0, 0.737, 0.0),
        "signed.Counting": OperatorCost(1440.0, 0.148, 0.26),
        "interval.Distinct": OperatorCost(1410.0, 0.0, 0.54),
    },
    values=OperatorCost(1990.0, 1.88, 0.0),
    compared=0.0284,
    scanned=0.00531,
    exchange_row=0.568,
    message=387.0,
    stage=102.0,
    batch=0.0,
)
"""What was measured where this version was made: 2 cores, Python 3.11, one thread of Polars."""
