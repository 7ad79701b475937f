"""Lines: what a trace has found, as a frame for people.

Step by step there is a line for each row that explains another one:

    answer    the row of the answer that it helps to explain, by its number
    node      its own number, if it is explained by further lines; NULL for rows of streams
    of        the row that it explains: a ``node``; NULL for the row of the answer itself
    stream    the stream, or relation, that it is a row of; NULL if an operator has made it
    id        its id there
    operator  the operator that has made it; NULL for rows of streams
    row       its columns
    start     from when to
    end       when it counts
    via       the operators between it and the row that it explains, from that one downwards

Flattened, there are the rows of streams and relations only, each once for a row of the answer and a
way to it; ``via`` has all operators between.

A row is a struct. Rows of different streams are in one frame, so it has the columns of all of them,
and NULL in those that a row has not; where two have columns of one name and different types, these
are called after their streams, or operators, with a number if these are called alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.explain import describe
from tidemill.algebra.marked import ROW
from tidemill.model.batch import END, START, TIME_TYPE, polars_schema
from tidemill.provenance.trace import MARK, NODE, OF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.model.schema import Schema
    from tidemill.provenance.leaves import Ends, Leaf
    from tidemill.provenance.trace import Found, Made, Trace

__all__ = ["FLAT", "STEPS", "field_name", "field_names", "flattened", "stepwise"]

STEPS = ("answer", "node", "of", "stream", "id", "operator", "row", "start", "end", "via")
FLAT = ("answer", "stream", "id", "row", "start", "end", "via")

_ANSWER, _SHOWN = "@answer", "@shown"
_NO_LINE = pl.lit(None, pl.Int64).alias(_SHOWN)
"""The row of the answer, and the line, that a row helps to explain; NULL for the answer itself."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines that come from one leaf.

    Attributes:
        name: What its rows are called after.
        plan: What makes them.
        lines: Their lines, without ``row``.
        values: The columns of their rows, line by line.
    """

    name: str
    plan: Plan
    lines: pl.DataFrame
    values: pl.DataFrame


def stepwise(trace: Trace, rows: Callable[[Leaf], pl.DataFrame], ends: Ends) -> pl.DataFrame:
    """A line for each row that explains another one.

    Args:
        trace: What was found.
        rows: Gives the rows of a source or relation, with their ids in ``ROW``.
        ends: Nodes of the plan whose rows were not explained.
    """
    shown = _Shown(trace)
    parts = [_made_part(one, links, ends) for one, links in shown.made]
    more = (
        pl.col(_SHOWN).alias("of"),
        pl.lit(None, pl.Int64).alias("node"),
        pl.lit(None, pl.String).alias("operator"),
    )
    for found in trace.found:
        known = found.frame.join(shown.parents(), left_on=OF, right_on=NODE)
        once = _once(known, _ANSWER, _SHOWN, MARK)
        parts.append(_rows_part(found, once, rows, more, found.leaf.via))
    return _together(parts, STEPS)


def flattened(trace: Trace, rows: Callable[[Leaf], pl.DataFrame], ends: Ends) -> pl.DataFrame:
    """A line for each row of a stream or relation that a row of the answer was made of.

    Args:
        trace: What was found.
        rows: As of ``stepwise``.
        ends: Plans whose rows were not explained, which count as streams.
    """
    shown = _Shown(trace)
    answers = shown.parents().select(NODE, _ANSWER).unique()
    parts = [_end_part(one, links, ends) for one, links in shown.made if id(one.leaf.plan) in ends]
    for found in trace.found:
        known = found.frame.join(answers, left_on=OF, right_on=NODE)
        once = _once(known, _ANSWER, MARK)
        parts.append(_rows_part(found, once, rows, (), found.path))
    return _together(parts, FLAT)


class _Shown:
    """Which rows of operators have a line, and what rows that they were made of explain.

    None has one that is a row of the answer, with no operator between, nor one that stands for its
    partners only: what it was made of explains what it would have explained.

    Attributes:
        made: The rows of operators that have one, with their links.
    """

    def __init__(self, trace: Trace) -> None:
        self.made: list[tuple[Made, pl.DataFrame]] = []
        answers = trace.answers[NODE]
        self._parents = [trace.answers.select(NODE, _NO_LINE, pl.col(NODE).alias(_ANSWER))]
        for made in trace.made:
            links = made.links.join(self.parents(), left_on=OF, right_on=NODE)
            if made.leaf.has_partners or _is_answer(made, answers):
                parents = links.select(NODE, _SHOWN, _ANSWER)
            else:
                self.made.append((made, _once(links, _ANSWER, _SHOWN, NODE)))
                parents = links.select(NODE, pl.col(NODE).alias(_SHOWN), _ANSWER)
            self._parents.append(parents.unique())

    def parents(self) -> pl.DataFrame:
        """For each row with a number the line, and the row of the answer, that it helps explain."""
        return pl.concat(self._parents)


def _is_answer(made: Made, answers: pl.Series) -> bool:
    """Whether rows of an operator are those of the answer, with nothing between, one for one."""
    of = made.links[OF]
    is_top = not made.path and bool(of.is_in(answers.implode()).all())
    return is_top and of.n_unique() == made.links.height == made.frame.height


def _once(lines: pl.DataFrame, *key: str) -> pl.DataFrame:
    return lines.group_by(key).agg(pl.col(START).min(), pl.col(END).max())


def _made_part(made: Made, links: pl.DataFrame, ends: Ends) -> _Part:
    plan = made.leaf.plan
    names = plan.schema.names
    told = links.join(made.frame.select(NODE, *names), on=NODE)
    called = ends.get(id(plan))
    lines = told.select(
        pl.col(_ANSWER).alias("answer"),
        (pl.col(NODE) if called is None else pl.lit(None, pl.Int64)).alias("node"),
        pl.col(_SHOWN).alias("of"),
        pl.lit(called, pl.String).alias("stream"),
        pl.lit(None, pl.Int64).alias("id"),
        pl.lit(describe(plan) if called is None else None, pl.String).alias("operator"),
        *_spans(),
        _via(made.leaf.via, told.height),
    )
    name = describe(plan) if called is None else called
    return _Part(name, plan, lines, told.select(names))


def _end_part(made: Made, links: pl.DataFrame, ends: Ends) -> _Part:
    part = _made_part(made, _once(links, _ANSWER, NODE).with_columns(_NO_LINE), ends)
    lines = part.lines.drop("node", "of", "operator", "via")
    told = lines.with_columns(_via(made.path, lines.height))
    return _Part(part.name, part.plan, told.select(n for n in FLAT if n != "row"), part.values)


def _rows_part(
    found: Found,
    known: pl.DataFrame,
    rows: Callable[[Leaf], pl.DataFrame],
    more: tuple[pl.Expr, ...],
    via: tuple[str, ...],
) -> _Part:
    name, names = _name(found.leaf.plan), found.leaf.plan.schema.names
    ids = found.frame.select(pl.col(MARK).unique())
    read = rows(found.leaf).join(ids, left_on=ROW, right_on=MARK, how="semi").unique(ROW)
    told = known.join(read.select(ROW, *names), left_on=MARK, right_on=ROW, how="left")
    lines = told.select(
        pl.col(_ANSWER).alias("answer"),
        *more,
        pl.lit(name).alias("stream"),
        pl.col(MARK).alias("id"),
        *_spans(),
        _via(via, told.height),
    )
    return _Part(name, found.leaf.plan, lines, told.select(names))


def _name(plan: Plan) -> str:
    name = getattr(plan, "name", None)
    assert isinstance(name, str), "it is a source or a relation"
    return name


def _spans() -> tuple[pl.Expr, pl.Expr]:
    return pl.col(START).alias("start"), pl.col(END).alias("end")


def _via(operators: tuple[str, ...], height: int) -> pl.Series:
    told = pl.Series("via", [list(operators)], dtype=pl.List(pl.String))
    return told.new_from_index(0, height) if height else told.clear()


def _together(given: list[_Part], columns: tuple[str, ...]) -> pl.DataFrame:
    """All lines in one frame, in an order that is a function of the lines."""
    names = field_names([(part.name, part.plan.schema) for part in given])
    fields: dict[str, pl.DataType] = {}
    for part, renamed in zip(given, names, strict=True):
        types = polars_schema(part.plan.schema)
        fields |= {new: types[old] for old, new in renamed.items()}
    frames = []
    for part, renamed in zip(given, names, strict=True):
        old = {new: name for name, new in renamed.items()}
        row = [
            pl.col(old[name]).alias(name) if name in old else pl.lit(None, type_).alias(name)
            for name, type_ in fields.items()
        ]
        values = part.values.select(pl.struct(row).alias("row"))
        frames.append(part.lines.hstack(values).select(columns))
    if not frames:
        return _nothing(columns)
    whole = pl.concat(frames)
    order = [name for name in ("answer", "of", "stream", "start", "id", "node") if name in columns]
    return whole.sort(order, nulls_last=False, maintain_order=True)


def _nothing(columns: tuple[str, ...]) -> pl.DataFrame:
    types: dict[str, pl.DataType] = {
        "stream": pl.String(),
        "operator": pl.String(),
        "row": pl.Struct([]),
        "via": pl.List(pl.String()),
    }
    return pl.DataFrame(schema={name: types.get(name, TIME_TYPE) for name in columns})


def field_names(rows: Sequence[tuple[str, Schema]]) -> list[dict[str, str]]:
    """What the columns of rows are called in one struct that has those of all of them.

    Args:
        rows: For each kind of rows what they are called after, and their columns.
    """
    types: dict[str, set[pl.DataType]] = {}
    for _, schema in rows:
        for name, type_ in polars_schema(schema).items():
            types.setdefault(name, set()).add(type_)
    fields = {name: one for name, (one, *others) in types.items() if not others}
    found: list[dict[str, str]] = []
    for called, schema in rows:
        own: dict[str, str] = {}
        for name, type_ in polars_schema(schema).items():
            free = (
                n for n in _names(called, name) if n not in types or n in {name} & fields.keys()
            )
            own[name] = next(n for n in free if fields.setdefault(n, type_) == type_)
        found.append(own)
    return found


def field_name(
    fields: Mapping[str, pl.DataType], called: str, name: str, type_: pl.DataType
) -> str:
    """What ``field_names`` has called a column of rows, by the fields of the struct."""
    return next((n for n in _names(called, name, len(fields)) if fields.get(n) == type_), name)


def _names(called: str, name: str, most: int | None = None) -> Iterator[str]:
    """What a column may be called, the best first; a number tells operators of one text apart."""
    yield name
    yield f"{called}.{name}"
    numbers = count(2) if most is None else range(2, most + 2)
    yield from (f"{called} {number}.{name}" for number in numbers)
