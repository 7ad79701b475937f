"""Lines of what is missing: where candidates have ended, as a frame for people.

stream    the stream, or relation, of the candidate
id        its id there; NULL if it was not taken, or there is none
row       its columns; NULL if there is none
start     from when to
end       when it is there itself
operator  the operator at which it has ended; NULL if it is part of rows of the answer that do
not meet the condition, was not taken, or there is none
reason    what that means
via       the operators that it had passed before, from the stream upwards
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.explain import describe
from tidemill.algebra.plan import Project, Relation, Source
from tidemill.algebra.text import expr_text
from tidemill.model.batch import END, ID, START, TIME_TYPE, polars_schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.provenance.computing import asked_of
from tidemill.provenance.lines import field_name, field_names
from tidemill.provenance.missing import CANDIDATE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.provenance.computing import Elements
    from tidemill.provenance.missing import Candidates, Ended

__all__ = ["MISSING", "Refused", "missing_lines", "refused_rows"]

MISSING = ("stream", "id", "row", "start", "end", "operator", "reason", "via")

_REFUSED = "@refused"


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows that would be candidates, and were not taken.

    Attributes:
        rows: Their columns.
        reasons: Why each was not taken.
    """

    rows: pl.DataFrame
    reasons: pl.Series


def refused_rows(
    found: Sequence[Candidates], refused: Callable[[str], pl.DataFrame | None], compute: Elements
) -> dict[str, Refused]:
    """The rows that were not taken and would be candidates, by the path to their stream.

    Args:
        found: The candidates that there are.
        refused: Gives the rows of a stream that were not taken, with the reason in the column
            behind its own; ``None`` if there are none at hand.
        compute: What computes plans.
    """
    told: dict[str, Refused] = {}
    for one in found:
        leaf = one.path.leaf
        rows = refused(leaf.name) if isinstance(leaf, Source) else None
        if rows is None or rows.is_empty() or leaf.name in told:
            continue
        width = len(leaf.schema)
        place = pl.int_range(pl.len(), dtype=TIME_TYPE)
        always = [pl.lit(0, TIME_TYPE).alias(START), pl.lit(END_OF_TIME, TIME_TYPE).alias(END)]
        there = rows.select(leaf.schema.names).with_columns(*always, place.alias(ID))
        asked = asked_of(Relation(_REFUSED, leaf.schema), one.path.condition)
        meets = compute(asked, Time(0), Time(0), {_REFUSED: there.drop(ID)})
        names = list(leaf.schema.names)
        known = rows.select(*names, pl.nth(width).alias("@why"))
        once = meets.select(names).unique()
        both = known.join(once, on=names, how="semi", nulls_equal=True)
        if not both.is_empty():
            told[leaf.name] = Refused(both.select(names), both["@why"])
    return told


def missing_lines(found: Sequence[Candidates], refused: dict[str, Refused]) -> pl.DataFrame:
    """A line for each candidate, for each that was not taken, and for leaves that have none."""
    fields: dict[str, pl.DataType] = {}
    leaves = [(one.path.leaf.name, one.path.leaf.schema) for one in found]
    for (_, schema), names in zip(leaves, field_names(leaves), strict=True):
        types = polars_schema(schema)
        fields |= {new: types[old] for old, new in names.items()}
    frames = []
    untold = dict(refused)
    for one in found:
        frames += [_ended(one, ended, fields) for ended in one.ended]
        name = one.path.leaf.name
        if name in untold:
            frames.append(_refused(one, untold.pop(name), fields))
        elif one.rows.is_empty() and name not in refused:
            frames.append(_none(one, fields))
    whole = pl.concat(frames) if frames else _nothing(fields)
    return whole.sort("stream", "start", "id", nulls_last=False, maintain_order=True)


def _ended(found: Candidates, ended: Ended, fields: dict[str, pl.DataType]) -> pl.DataFrame:
    rows = found.rows.filter(pl.col(CANDIDATE).is_in(ended.ids.implode()))
    reason = ended.reason
    if found.left_out:
        reason += f" ({found.left_out:,} candidates that came before were not looked at)"
    operator = None if ended.operator is None else describe(ended.operator)
    return _lines(
        found,
        rows,
        fields,
        operator,
        pl.repeat(reason, rows.height, dtype=pl.String(), eager=True),
        _passed(found, ended.operator),
    )


def _refused(found: Candidates, refused: Refused, fields: dict[str, pl.DataType]) -> pl.DataFrame:
    unknown = [pl.lit(None, TIME_TYPE).alias(n) for n in (CANDIDATE, START, END)]
    rows = refused.rows.with_columns(unknown)
    told = "it was not taken: " + refused.reasons
    return _lines(found, rows, fields, None, told, [])


def _none(found: Candidates, fields: dict[str, pl.DataType]) -> pl.DataFrame:
    unknown = [pl.lit(None, TIME_TYPE).alias(n) for n in (CANDIDATE, START, END)]
    types = polars_schema(found.path.leaf.schema)
    empty = pl.DataFrame({name: [None] for name in types}, schema=types).with_columns(unknown)
    condition = expr_text(found.path.condition)
    reason = pl.Series([f"there is no row of which {condition} is true"])
    line = _lines(found, empty, fields, None, reason, [])
    return line.with_columns(pl.lit(None, line.schema["row"]).alias("row"))


def _lines(  # noqa: PLR0913, PLR0917 — what a line is made of
    found: Candidates,
    rows: pl.DataFrame,
    fields: dict[str, pl.DataType],
    operator: str | None,
    reasons: pl.Series,
    via: list[str],
) -> pl.DataFrame:
    leaf = found.path.leaf
    types = polars_schema(leaf.schema)
    own = {field_name(fields, leaf.name, name, type_): name for name, type_ in types.items()}
    row = [
        pl.col(own[name]).alias(name) if name in own else pl.lit(None, type_).alias(name)
        for name, type_ in fields.items()
    ]
    return rows.select(
        pl.lit(leaf.name).alias("stream"),
        pl.col(CANDIDATE).alias("id"),
        pl.struct(row).alias("row"),
        pl.col(START).alias("start"),
        pl.col(END).alias("end"),
        pl.lit(operator, pl.String).alias("operator"),
        reasons.alias("reason"),
        pl.lit(via, pl.List(pl.String)).alias("via"),
    )


def _passed(found: Candidates, operator: Plan | None) -> list[str]:
    """The operators below one, from the leaf upwards, but for the choice of columns."""
    plans = [place.plan for place in found.path.places[::-1]]
    number = next((i for i, plan in enumerate(plans) if plan is operator), len(plans))
    return [describe(plan) for plan in plans[1:number] if not isinstance(plan, Project)]


def _nothing(fields: dict[str, pl.DataType]) -> pl.DataFrame:
    types = {"row": pl.Struct(fields), "via": pl.List(pl.String())}
    texts = dict.fromkeys(("stream", "operator", "reason"), pl.String())
    return pl.DataFrame(schema={n: {**types, **texts}.get(n, TIME_TYPE) for n in MISSING})
