"""From expressions of the language to expressions of DuckDB.

Most functions have the name and the meaning they have in DuckDB. Where Tidemill departs from it on
purpose, the departure is written out here in SQL:

- a division by zero is NULL; ``/`` is a division of DOUBLEs;
- a CAST that fails is NULL, and so is a function without a value (``try``);
- ``||`` takes values of any type;
- CEIL, FLOOR and TRUNC of an integer are integers; SIGN is an INTEGER; SUM of integers a BIGINT;
- MEDIAN is a DOUBLE; ``date_diff('week', …)`` counts Mondays; ``epoch_ms`` rounds down;
- dates are in the years 1 to 9999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.lang.windows import StreamOperator

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "APPROXIMATE",
    "MACROS",
    "duckdb_type",
    "has_aggregate",
    "has_query",
    "rebuilt",
    "translate",
]

_AGGREGATES = frozenset(
    {
        *("count", "sum", "avg", "mean", "min", "max", "median", "bool_and", "bool_or"),
        *("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"),
    }
)
APPROXIMATE = frozenset(
    {
        *("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "epoch"),
        *("sqrt", "cbrt", "exp", "ln", "log10", "log2", "power", "pow", "sin", "cos", "tan"),
        *("asin", "acos", "atan", "atan2", "pi", "degrees", "radians"),
    }
)
"""The functions whose last bits differ from one library to the next."""

MACROS = (
    """CREATE MACRO sum_of(x INTEGER) AS sum(x)::BIGINT,
                     (x BIGINT) AS sum(x)::BIGINT,
                     (x) AS sum(x)""",
    """CREATE MACRO sum_of_distinct(x INTEGER) AS sum(DISTINCT x)::BIGINT,
                              (x BIGINT) AS sum(DISTINCT x)::BIGINT,
                              (x) AS sum(DISTINCT x)""",
    "CREATE MACRO whole_ceil(x INTEGER) AS x, (x BIGINT) AS x, (x) AS ceil(x)",
    "CREATE MACRO whole_floor(x INTEGER) AS x, (x BIGINT) AS x, (x) AS floor(x)",
    "CREATE MACRO whole_trunc(x INTEGER) AS x, (x BIGINT) AS x, (x) AS trunc(x)",
    """CREATE MACRO mondays(a, b) AS
         ((epoch(date_trunc('week', b)) - epoch(date_trunc('week', a))) / 604800)::BIGINT""",
    "CREATE MACRO in_years(x) AS CASE WHEN year(x) BETWEEN 1 AND 9999 THEN x END",
)
"""What is asked of DuckDB by type, and what is longer than a call."""

_RENAMED = {
    "ceil": "whole_ceil",
    "ceiling": "whole_ceil",
    "floor": "whole_floor",
    "trunc": "whole_trunc",
    "iff": "if",
    "datepart": "date_part",
}
_WITHOUT_A_VALUE = frozenset({"lpad", "rpad", "chr", "round"})
_TYPES = {
    "TINYINT": "INT",
    "SMALLINT": "INT",
    "FLOAT": "DOUBLE",
    "CHAR": "VARCHAR",
    "TEXT": "VARCHAR",
    "TIMESTAMPNTZ": "TIMESTAMP",
    "DATETIME": "TIMESTAMP",
}


def rebuilt(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The node with changed children; the node itself is left alone."""

    def changed(value: object) -> object:
        if isinstance(value, list):
            return [changed(item) for item in value]
        return change(value) if isinstance(value, exp.Expr) else value

    return type(node)(**{key: changed(value) for key, value in node.args.items()})


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate outside of its subqueries."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Anonymous) and node.name.lower() in _AGGREGATES:
        return True
    return any(has_aggregate(child) for child in node.iter_expressions())


def has_query(node: exp.Expr) -> bool:
    """Whether there is a subquery in an expression."""
    return node.find(exp.Query, StreamOperator) is not None


def translate(node: exp.Expr, inner: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The expression in DuckDB's words; ``inner`` translates what is inside of it."""
    match node:
        case exp.Div():
            return exp.Paren(
                this=exp.Div(
                    this=_cast(inner(node.this), "DOUBLE"),
                    expression=_not_zero(_cast(inner(node.expression), "DOUBLE")),
                )
            )
        case exp.Mod() | exp.IntDiv():
            kind = type(node)
            quotient = kind(this=inner(node.this), expression=_not_zero(inner(node.expression)))
            return exp.Paren(this=quotient)
        case exp.DPipe():
            left, right = _cast(inner(node.this), "TEXT"), _cast(inner(node.expression), "TEXT")
            return exp.DPipe(this=left, expression=right)
        case exp.Cast() | exp.TryCast():
            return exp.TryCast(this=inner(node.this), to=duckdb_type(node.args["to"]))
        case exp.Interval():
            # In DuckDB, INTERVAL '1.5' HOUR drops the fraction, and the text '1.5 HOUR' does not.
            return _cast(_text(f"{node.this.name} {node.text('unit')}"), "INTERVAL")
        case exp.Extract():
            return _call("date_part", _text(node.this.name.lower()), inner(node.expression))
        case exp.Filter(this=exp.Anonymous() as call) if call.name.lower() == "sum":
            return _sum(inner(call.expressions[0]), inner(node.expression.this))
        case exp.Anonymous():
            return _function(node.name.lower(), [inner(each) for each in node.expressions])
        case _:
            return rebuilt(node, inner)


def duckdb_type(node: exp.DataType) -> exp.DataType:
    """The type a name means; the smaller integers and floats are not told apart."""
    name = node.this.name
    return exp.DataType(this=exp.DType[_TYPES[name]]) if name in _TYPES else node.copy()


def _function(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    match name, arguments:
        case "mod", [a, b]:
            return _call("mod", a, _not_zero(b))
        case "position", [search, text]:
            return _call("strpos", text, search)
        case "sign", [x]:
            return _cast(_call("sign", x), "INT")
        case "sum", [x]:
            return _sum(x)
        case "median", [exp.Distinct() as distinct]:
            doubles = [_cast(each, "DOUBLE") for each in distinct.expressions]
            return _call("median", exp.Distinct(expressions=doubles))
        case "median", [x]:
            return _call("median", _cast(x, "DOUBLE"))
        case "epoch_ms", [x]:
            thousandth = exp.Div(this=_call("epoch_us", x), expression=_number(1000))
            return _cast(_call("floor", thousandth), "BIGINT")
        case (("date_diff" | "datediff"), [exp.Literal(this="week"), start, end]):
            return _call("mondays", start, end)
        case "make_date", _:
            return _call("in_years", _call("try", _call(name, *arguments)))
        case "make_timestamp", [x]:
            return _call("in_years", _call("try", _call(name, x)))
        case "add_days", [x, days]:
            return _call("in_years", exp.Add(this=x, expression=_cast(days, "INT")))
        case "add_months", [x, months]:
            return _shifted(x, _call("to_months", _cast(months, "INT")))
        case "add_microseconds", [x, microseconds]:
            return _shifted(x, _call("to_microseconds", microseconds))
        case _ if name in _WITHOUT_A_VALUE:
            return _call("try", _call(name, *arguments))
        case _:
            return _call(_RENAMED.get(name, name), *arguments)


def _sum(x: exp.Expr, condition: exp.Expr | None = None) -> exp.Expr:
    """Macros take neither DISTINCT nor FILTER; what is left out of a sum is NULL."""
    name = "sum_of_distinct" if isinstance(x, exp.Distinct) else "sum_of"
    value = x.expressions[0] if isinstance(x, exp.Distinct) else x
    if condition is not None:
        value = exp.Case(ifs=[exp.If(this=condition, true=value)])
    return _call(name, value)


def _shifted(x: exp.Expr, interval: exp.Expr) -> exp.Expr:
    return _call("in_years", exp.Add(this=_cast(x, "TIMESTAMP"), expression=interval))


def _not_zero(node: exp.Expr) -> exp.Expr:
    return _call("nullif", node, _number(0))


def _cast(node: exp.Expr, name: str) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType(this=exp.DType[name]))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)
