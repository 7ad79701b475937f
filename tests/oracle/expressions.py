"""Random expressions of every type, as text.

A template is an expression with holes: ``{BIGINT}`` is filled with an expression of that type,
``{few}`` with a small whole number and ``{text}`` with a constant. What could overflow, or depend on
the last bits of a DOUBLE, is kept out: such differences say nothing about the meaning of a query.

- APPROXIMATE functions stand only at the top of a SELECT list.
- Sums and means are over EXACT expressions, of multiples of a quarter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["AGGREGATES", "APPROXIMATE", "TEMPLATES", "TYPES", "Column", "Expressions"]

TYPES = ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN", "DECIMAL", "DATE", "TIMESTAMP")
NAMES = {"DECIMAL": "DECIMAL(9,2)"}
_HOLE = re.compile(r"\{(\w+)\}")

_LITERALS = {
    "BIGINT": ("1", "0", "2", "100", "CAST(NULL AS BIGINT)"),
    "INTEGER": ("1", "0", "-2", "3", "CAST(NULL AS INTEGER)"),
    "DOUBLE": ("1e0", "2.5e0", "CAST(0.25 AS DOUBLE)", "CAST(NULL AS DOUBLE)"),
    "VARCHAR": ("'a'", "''", "'b_a'", "'a%'", "' 1 '", "'2020-02-29'", "CAST(NULL AS VARCHAR)"),
    "BOOLEAN": ("TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"),
    "DECIMAL": ("0.50", "1.25", "-0.75", "CAST(NULL AS DECIMAL(9,2))"),
    "DATE": ("DATE '2020-02-29'", "DATE '2021-01-03'", "CAST('2020-01-01' AS DATE)"),
    "TIMESTAMP": ("TIMESTAMP '2020-02-29 12:30:15.25'", "CAST('2021-01-03' AS TIMESTAMP)"),
}
_WORDS = {
    "few": ("1", "2", "0", "3"),
    "text": ("'a'", "'b'", "'%'", "''"),
    "pattern": ("'a%'", "'%a'", "'_'", "'%'", "''", "'a_%'", "'%b%'"),
    "escaped": ("'a!%'", "'%!_a'", "'!!%'"),
    "regexp": ("'a'", "'^a'", "'[ab]+'", "'(a)(b)?'", r"'\d'", "'a|_'"),
    "unit": ("'year'", "'month'", "'day'", "'hour'", "'quarter'", "'minute'", "'second'"),
    "part": ("YEAR", "MONTH", "DAY", "HOUR", "QUARTER", "WEEK", "DOW", "DOY", "ISODOW"),
    "span": ("INTERVAL '1' DAY", "INTERVAL 3 MONTHS", "INTERVAL '90 minutes'", "INTERVAL 1 YEAR"),
    "sign": ("=", "<>", "<", "<=", ">", ">="),
}
_ANY = ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN", "DECIMAL", "DATE", "TIMESTAMP")

_CHOICES = (
    "CASE WHEN {BOOLEAN} THEN {T} ELSE {T} END",
    "CASE WHEN {BOOLEAN} THEN {T} WHEN {BOOLEAN} THEN {T} END",
    "CASE {VARCHAR} WHEN 'a' THEN {T} WHEN {VARCHAR} THEN {T} ELSE {T} END",
    "COALESCE({T}, {T})",
    "COALESCE({T}, NULL, {T}, {T})",
    "IFNULL({T}, {T})",
    "NULLIF({T}, {T})",
    "IF({BOOLEAN}, {T}, {T})",
    "IFF({BOOLEAN}, {T}, NULL)",
    "GREATEST({T}, {T}, {T})",
    "LEAST({T}, {T})",
    "({T})",
)
_TESTS = (
    "({T} {sign} {T})",
    "({T} IS DISTINCT FROM {T})",
    "({T} IS NOT DISTINCT FROM {T})",
    "({T} IS NULL)",
    "({T} IS NOT NULL)",
    "({T} IN ({T}, {T}))",
    "({T} NOT IN ({T}, NULL, {T}))",
    "({T} BETWEEN {T} AND {T})",
    "({T} NOT BETWEEN {T} AND {T})",
)

TEMPLATES: dict[str, tuple[str, ...]] = {
    "BIGINT": (
        "({BIGINT} + {INTEGER})",
        "({BIGINT} - {BIGINT})",
        "({BIGINT} * {few})",
        "({BIGINT} // {BIGINT})",
        "({BIGINT} DIV {INTEGER})",
        "({BIGINT} % {INTEGER})",
        "MOD({BIGINT}, {BIGINT})",
        "(- {BIGINT})",
        "ABS({BIGINT})",
        "ROUND({BIGINT}, -1)",
        "CEIL({BIGINT})",
        "TRUNC({BIGINT})",
        "twice({INTEGER})",
        "CAST({DOUBLE} AS BIGINT)",
        "CAST(TRIM({VARCHAR}) AS BIGINT)",
        "CAST({DECIMAL} AS BIGINT)",
        "{INTEGER}::BIGINT",
        "LENGTH({VARCHAR})",
        "LEN({VARCHAR})",
        "CHAR_LENGTH({VARCHAR})",
        "CHARACTER_LENGTH({VARCHAR})",
        "STRPOS({VARCHAR}, {text})",
        "INSTR({VARCHAR}, {VARCHAR})",
        "POSITION({text} IN {VARCHAR})",
        "POSITION({VARCHAR}, {VARCHAR})",
        "({DATE} - {DATE})",
        "YEAR({DATE})",
        "QUARTER({TIMESTAMP})",
        "MONTH({TIMESTAMP})",
        "WEEK({DATE})",
        "WEEKOFYEAR({TIMESTAMP})",
        "DAY({TIMESTAMP})",
        "DAYOFMONTH({DATE})",
        "DAYOFWEEK({DATE})",
        "WEEKDAY({TIMESTAMP})",
        "ISODOW({DATE})",
        "DAYOFYEAR({DATE})",
        "HOUR({TIMESTAMP})",
        "MINUTE({TIMESTAMP})",
        "SECOND({TIMESTAMP})",
        "EPOCH_MS({TIMESTAMP})",
        "EPOCH_US({DATE})",
        "DATE_PART({unit}, {TIMESTAMP})",
        "DATEPART({unit}, {DATE})",
        "EXTRACT({part} FROM {TIMESTAMP})",
        "DATE_DIFF({unit}, {TIMESTAMP}, {TIMESTAMP})",
        "DATEDIFF('week', {DATE}, {DATE})",
    ),
    "INTEGER": (
        "({INTEGER} + {INTEGER})",
        "({INTEGER} - {INTEGER})",
        "({INTEGER} * {few})",
        "({INTEGER} // {INTEGER})",
        "({INTEGER} % {few})",
        "(- {INTEGER})",
        "ABS({INTEGER})",
        "ROUND({INTEGER})",
        "CEILING({INTEGER})",
        "FLOOR({INTEGER})",
        "SIGN({DOUBLE})",
        "SIGN({DECIMAL})",
        "ASCII({VARCHAR})",
        "CAST({BIGINT} AS INTEGER)",
        "CAST({DOUBLE} AS INTEGER)",
        "TRY_CAST(TRIM({VARCHAR}) AS INTEGER)",
        "{BOOLEAN}::INT",
        "CAST({DECIMAL} AS INTEGER)",
    ),
    "DOUBLE": (
        "({BIGINT} / {INTEGER})",
        "({DOUBLE} / {DOUBLE})",
        "({DECIMAL} / {few})",
        "({DOUBLE} + {INTEGER})",
        "({DOUBLE} - {DECIMAL})",
        "({DOUBLE} * {BIGINT})",
        "({DOUBLE} % {few})",
        "(- {DOUBLE})",
        "ABS({DOUBLE})",
        "CEIL({DOUBLE})",
        "FLOOR({DOUBLE})",
        "TRUNC({DOUBLE})",
        "ROUND({DOUBLE})",
        "ROUND({DOUBLE}, {few})",
        "CAST(TRIM({VARCHAR}) AS DOUBLE)",
        "CAST({DECIMAL} AS DOUBLE)",
        "{INTEGER}::DOUBLE",
    ),
    "VARCHAR": (
        "({VARCHAR} || {VARCHAR})",
        "({VARCHAR} || {BIGINT})",
        "({INTEGER} || {DATE})",
        "LOWER({VARCHAR})",
        "LCASE({VARCHAR})",
        "UPPER({VARCHAR})",
        "UCASE({VARCHAR})",
        "TRIM({VARCHAR})",
        "TRIM({VARCHAR}, 'a ')",
        "TRIM(BOTH 'a' FROM {VARCHAR})",
        "LTRIM({VARCHAR})",
        "RTRIM({VARCHAR}, {text})",
        "SUBSTRING({VARCHAR}, {few})",
        "SUBSTRING({VARCHAR} FROM {few} FOR {few})",
        "SUBSTR({VARCHAR}, -2, {few})",
        "LEFT({VARCHAR}, {few})",
        "RIGHT({VARCHAR}, -1)",
        "REPLACE({VARCHAR}, {text}, {VARCHAR})",
        "CONCAT({VARCHAR}, {INTEGER}, {BOOLEAN})",
        "CONCAT_WS('-', {VARCHAR}, {DECIMAL}, {VARCHAR})",
        "LPAD({VARCHAR}, {few}, {text})",
        "RPAD({VARCHAR}, 4, '*')",
        "REVERSE({VARCHAR})",
        "REPEAT({VARCHAR}, {few})",
        "SPLIT_PART({VARCHAR}, {text}, {few})",
        "REGEXP_REPLACE({VARCHAR}, {regexp}, 'z')",
        "REGEXP_REPLACE({VARCHAR}, {regexp}, 'z', 'g')",
        "REGEXP_EXTRACT({VARCHAR}, {regexp})",
        "CHR({few} + 64)",
        "DAYNAME({DATE})",
        "MONTHNAME({TIMESTAMP})",
        "STRFTIME({TIMESTAMP}, '%Y/%m/%d %H')",
        "tagged({VARCHAR}, {DOUBLE})",
        "CAST({BIGINT} AS VARCHAR)",
        "CAST({DECIMAL} AS VARCHAR)",
        "CAST({DATE} AS VARCHAR)",
        "CAST({TIMESTAMP} AS VARCHAR)",
        "{BOOLEAN}::VARCHAR",
    ),
    "BOOLEAN": (
        "({BOOLEAN} AND {BOOLEAN})",
        "({BOOLEAN} OR {BOOLEAN})",
        "({BOOLEAN} OR {BOOLEAN} AND {BOOLEAN})",
        "(NOT {BOOLEAN})",
        "({BOOLEAN} IS TRUE)",
        "({BOOLEAN} IS NOT FALSE)",
        "({BIGINT} {sign} {INTEGER})",
        "({INTEGER} {sign} {DECIMAL})",
        "({DECIMAL} {sign} {DOUBLE})",
        "({DATE} {sign} {TIMESTAMP})",
        "({DATE} {sign} '2020-02-29')",
        "({BIGINT} IN ({INTEGER}, {few}, {DECIMAL}))",
        "({DOUBLE} BETWEEN {INTEGER} AND {DECIMAL})",
        "({VARCHAR} LIKE {pattern})",
        "({VARCHAR} NOT LIKE {pattern})",
        "({VARCHAR} LIKE {escaped} ESCAPE '!')",
        "({VARCHAR} ILIKE {pattern})",
        "STARTS_WITH({VARCHAR}, {text})",
        "ENDS_WITH({VARCHAR}, {text})",
        "CONTAINS({VARCHAR}, {VARCHAR})",
        "REGEXP_MATCHES({VARCHAR}, {regexp})",
        "CAST({INTEGER} AS BOOLEAN)",
        "TRY_CAST(TRIM({VARCHAR}) AS BOOLEAN)",
        *(test.replace("{T}", f"{{{type_}}}") for test in _TESTS for type_ in _ANY),
    ),
    "DECIMAL": (
        "({DECIMAL} + {DECIMAL})",
        "({DECIMAL} - {INTEGER})",
        "({DECIMAL} % {few})",
        "(- {DECIMAL})",
        "CAST({DECIMAL} * {DECIMAL} AS DECIMAL(9,2))",
        "CAST({BIGINT} AS DECIMAL(9,2))",
        "CAST({DOUBLE} AS DECIMAL(9,2))",
        "CAST(TRIM({VARCHAR}) AS DECIMAL(9,2))",
        "ABS({DECIMAL})",
        "ROUND({DECIMAL}, 1)",
        "CEIL({DECIMAL})",
        "FLOOR({DECIMAL})",
        "TRUNC({DECIMAL})",
    ),
    "DATE": (
        "({DATE} + {few})",
        "({few} + {DATE})",
        "({DATE} - {few})",
        "ADD_DAYS({DATE}, {INTEGER})",
        "LAST_DAY({TIMESTAMP})",
        "MAKE_DATE(2020, {INTEGER}, {few})",
        "CAST({TIMESTAMP} AS DATE)",
        "CAST(TRIM({VARCHAR}) AS DATE)",
    ),
    "TIMESTAMP": (
        "({TIMESTAMP} + {span})",
        "({DATE} - {span})",
        "({span} + {TIMESTAMP})",
        "ADD_MONTHS({DATE}, {INTEGER})",
        "ADD_MICROSECONDS({TIMESTAMP}, {INTEGER})",
        "DATE_TRUNC({unit}, {TIMESTAMP})",
        "DATETRUNC({unit}, {DATE})",
        "MAKE_TIMESTAMP({INTEGER})",
        "CAST({DATE} AS TIMESTAMP)",
        "CAST(TRIM({VARCHAR}) AS TIMESTAMP)",
    ),
    "EXACT": ("({EXACT} * 2)", "({EXACT} + 0.25)", "ABS({EXACT})", "COALESCE({EXACT}, {EXACT})"),
}
for _type in TYPES:
    TEMPLATES[_type] += tuple(choice.replace("{T}", f"{{{_type}}}") for choice in _CHOICES)

APPROXIMATE = (
    *(f"{name}({{DOUBLE}})" for name in ("SQRT", "CBRT", "LN", "LOG10", "LOG2", "ATAN")),
    *(f"{name}({{EXACT}})" for name in ("EXP", "SIN", "COS", "TAN", "ASIN", "ACOS")),
    *("DEGREES({EXACT})", "RADIANS({INTEGER})", "PI()", "EPOCH({TIMESTAMP})"),
    *("POWER({INTEGER}, {few})", "POW({EXACT}, 2)", "ATAN2({EXACT}, {EXACT})"),
)
"""DOUBLEs that are compared up to a relative error."""

AGGREGATES: dict[str, tuple[str, ...]] = {
    "BIGINT": (
        "COUNT(*)",
        "COUNT(DISTINCT {VARCHAR})",
        *(f"COUNT({{{type_}}})" for type_ in _ANY),
        "SUM({INTEGER})",
        "SUM(DISTINCT {BIGINT})",
        "MAX({BIGINT})",
    ),
    "INTEGER": ("MIN({INTEGER})", "MAX(DISTINCT {INTEGER})"),
    "DOUBLE": (
        "SUM({EXACT})",
        "SUM(DISTINCT {EXACT})",
        "AVG({EXACT})",
        "AVG({INTEGER})",
        "MEAN({BIGINT})",
        "AVG(DISTINCT {INTEGER})",
        "MEDIAN({EXACT})",
        "MEDIAN({INTEGER})",
        "MAX({DOUBLE})",
        "MIN({DOUBLE})",
    ),
    "VARCHAR": ("MIN({VARCHAR})", "MAX({VARCHAR})"),
    "BOOLEAN": ("BOOL_AND({BOOLEAN})", "BOOL_OR({BOOLEAN})", "MAX({BOOLEAN})"),
    "DECIMAL": ("SUM({DECIMAL})", "SUM(DISTINCT {DECIMAL})", "MIN({DECIMAL})"),
    "DATE": ("MIN({DATE})", "MAX({DATE})"),
    "TIMESTAMP": ("MIN({TIMESTAMP})", "MAX({TIMESTAMP})"),
    "APPROXIMATE": (
        *("STDDEV({EXACT})", "STDDEV_SAMP({INTEGER})", "STDDEV_POP({DECIMAL})"),
        *("VARIANCE({INTEGER})", "VAR_SAMP({EXACT})", "VAR_POP(DISTINCT {EXACT})"),
    ),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column in sight: its text, its type, and whether sums of it are exact."""

    text: str
    type: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Expressions:
    """Writes expressions over columns; ``choose`` makes every choice."""

    choose: Callable[[Sequence[str]], str]
    columns: tuple[Column, ...] = ()

    def leaf(self, type_: str) -> str:
        """A column of the type or, if there is none or by chance, a constant."""
        if type_ == "EXACT":
            found = [c.text for c in self.columns if c.exact]
            return self.choose(found or ["1e0", "2.5e0"])
        found = [c.text for c in self.columns if c.type == type_]
        # Columns weigh as much as constants, and are chosen twice as often where there are both.
        return self.choose([*found, *found, *_LITERALS[type_]] if found else _LITERALS[type_])

    def types(self) -> tuple[str, ...]:
        """The types of the columns, or all if there are none."""
        return tuple(dict.fromkeys(column.type for column in self.columns)) or TYPES

    def scalar(self, type_: str, depth: int) -> str:
        """An expression of the type."""
        if depth == 0 or self.choose("012") == "0":
            return self.leaf(type_)
        return self.filled(self.choose(_templates(type_, frozenset(self.types()))), depth - 1)

    def filled(self, template: str, depth: int) -> str:
        """The template with something in its holes."""

        def hole(match: re.Match[str]) -> str:
            name = match[1]
            return self.choose(_WORDS[name]) if name in _WORDS else self.scalar(name, depth)

        return _HOLE.sub(hole, template)

    def aggregate(self, type_: str, depth: int) -> str:
        """An aggregate of the type."""
        call = self.filled(self.choose(AGGREGATES[type_]), depth)
        if self.choose("0123") == "1":
            call += f" FILTER (WHERE {self.scalar('BOOLEAN', 1)})"
        return call


@cache
def _templates(type_: str, known: frozenset[str]) -> tuple[str, ...]:
    """The templates that can say something about columns of these types."""
    found = [t for t in TEMPLATES[type_] if known.intersection(_HOLE.findall(t))]
    return tuple(found) or TEMPLATES[type_]
