"""Random statements of the language, as texts."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

NAMES: Final = ("a", "b", "price", "Bid", "at", "offset", "range", "istream", "stream", "filter")

_SIGNS: Final = ("+", "-", "*", "/", "%", "//", "DIV", "||")
_COMPARISONS: Final = ("=", "<>", "!=", "<", "<=", ">", ">=")
_TYPES: Final = ("INT", "bigint", "DOUBLE PRECISION", "REAL", "DECIMAL(10, 2)", "TEXT", "VARCHAR(3)")
_UNITS: Final = ("MICROSECONDS", "ms", "SECOND", "minutes", "HOURS", "DAY", "weeks")


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


names = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(("select", "end", "unit price", "Ä", 'say "hi"', "left", "cast")).map(quoted),
    st.text(min_size=1, max_size=4).map(quoted),
)
strings = st.text(max_size=5).map(lambda text: "'" + text.replace("'", "''") + "'")
numbers = st.sampled_from(("0", "1", "42", "1.5", "2.", "1e3", "1.5E-2", ".5"))
columns = st.one_of(names, st.tuples(names, names).map(".".join))
types = st.sampled_from(_TYPES)
functions = st.one_of(
    st.sampled_from(("count", "LEFT", "trim", "substring", "position", "COALESCE", "log")),
    st.sampled_from(("cast", "ISTREAM", "trim", "position")).map(quoted),
)
durations = st.one_of(
    st.integers(0, 10**6).map(str),
    st.tuples(st.integers(-3, 100), st.sampled_from(_UNITS)).map(lambda p: f"{p[0]} {p[1]}"),
    st.sampled_from(("1 HOUR 30 MINUTES", "1.5 SECONDS", "INTERVAL '5' MINUTES")),
)
constants = st.one_of(
    numbers,
    strings,
    st.sampled_from(("TRUE", "false", "NULL", "DATE '2020-01-01'", "CURRENT_TIMESTAMP")),
    st.sampled_from(("INTERVAL 5 MINUTES", "INTERVAL '5' hour", "INTERVAL '-1.5 years'")),
)


@st.composite
def operands(draw: st.DrawFn, depth: int = 2) -> str:
    """What stands between BETWEEN, IN and LIKE."""
    form = draw(st.integers(0, 13 if depth else 2))
    if form <= 2:
        return draw(st.one_of(columns, columns, constants))
    one = draw(operands(depth - 1))
    two = draw(operands(depth - 1))
    any_ = draw(conditions(depth - 1))
    sign = draw(st.sampled_from(_SIGNS))
    forms = (
        f"{one} {sign} {two}",
        f"{one} {sign} {two} {draw(st.sampled_from(_SIGNS))} {one}",
        f"({any_})",
        f"- {one}",
        f"({one})::{draw(types)}",
        f"{draw(st.sampled_from(('CAST', 'try_cast')))}({any_} AS {draw(types)})",
        f"CASE WHEN {any_} THEN {one} ELSE {two} END",
        f"CASE {one} WHEN {any_} THEN {two} END",
        f"{draw(functions)}({any_}, {two})",
        draw(st.sampled_from(_special_calls(one, two, any_))),
        draw(st.sampled_from(_subqueries(draw(queries(depth - 1))))),
    )
    return forms[form - 3]


def _special_calls(one: str, two: str, any_: str) -> tuple[str, ...]:
    return (
        f"COUNT(DISTINCT {any_}, {two})",
        "count(*)",
        f"sum({one}) FILTER (WHERE {any_})",
        f"sum({one}) OVER (PARTITION BY {two} ORDER BY {any_} DESC)",
        f"EXTRACT(years FROM {any_})",
        f"SUBSTRING({one} FROM {two} FOR {one})",
        f"POSITION({one} IN {two})",
        f"TRIM(LEADING {one} FROM {two})",
        f"TRIM({one} FROM {two})",
    )


def _subqueries(query: str) -> tuple[str, ...]:
    return (f"({query})", f"(({query}) UNION ALL ({query}))", f"EXISTS({query})", f"ALL({query})")


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    """Any expression."""
    one = draw(operands(depth))
    if not depth:
        return one
    two = draw(operands(depth - 1))
    left, right = draw(conditions(depth - 1)), draw(conditions(depth - 1))
    sign = draw(st.sampled_from(_COMPARISONS))
    not_ = draw(st.sampled_from(("", " NOT")))
    forms = (
        one,
        f"{left} AND {right}",
        f"{left} OR {right}",
        f"NOT {left}",
        f"{one} {sign} {two}",
        f"{one} {sign} {two}{not_} IN (1, {two})",
        f"{one}{not_} IN ({draw(queries(depth - 1))})",
        f"{one}{not_} BETWEEN {two} AND {two}",
        f"{one}{not_} LIKE {two} ESCAPE '!'",
        f"{one}{not_} ILIKE {two}",
        f"{one} IS{not_} NULL",
        f"{one} {sign} {two} IS{not_} TRUE",
        f"{one} IS{not_} DISTINCT FROM {two} IS NULL",
    )
    return draw(st.sampled_from(forms))


@st.composite
def windows(draw: st.DrawFn) -> str:
    slide = draw(st.sampled_from(("", " SLIDE 10")))
    rows = draw(st.integers(-1, 100))
    inside = draw(
        st.sampled_from(
            (
                "NOW",
                "RANGE UNBOUNDED",
                f"RANGE {draw(durations)}{slide}",
                f"ROWS {rows}{slide}",
                f"PARTITION BY {draw(columns)}, b ROWS {rows}{slide}",
            )
        )
    )
    return draw(st.sampled_from((f"[{inside}]", f"WINDOW({inside})")))


@st.composite
def items(draw: st.DrawFn, depth: int = 1) -> str:
    """An item of FROM."""
    query = draw(queries(depth - 1)) if depth else "SELECT 1"
    source = draw(
        st.sampled_from(
            (draw(names), draw(names), f"({query})", f"ISTREAM({query})", "rstream(customer)")
        )
    )
    alias = draw(st.sampled_from(("", " AS x", " x", f" AS {draw(names)}")))
    window = f" {draw(windows())}" if draw(st.booleans()) else ""
    first, second = draw(st.permutations((alias, window)))
    return f"{source}{first}{second}"


@st.composite
def selects(draw: st.DrawFn, depth: int = 1) -> str:
    distinct = draw(st.sampled_from(("", "DISTINCT ")))
    item = draw(conditions(depth))
    shown = draw(st.sampled_from(("*", "Bid.*", item, f"{item} AS x, *", f"{item} {quoted('q r')}")))
    text = f"SELECT {distinct}{shown} FROM {draw(items(depth))}"
    joins = ("", f", {draw(items(0))}", f" CROSS JOIN {draw(items(0))}", " JOIN c USING (a, b)")
    text += draw(st.sampled_from(joins))
    if draw(st.booleans()):
        text += f" LEFT OUTER JOIN {draw(items(0))} ON {draw(conditions(depth))}"
    if draw(st.booleans()):
        text += f" WHERE {draw(conditions(depth))}"
    if draw(st.booleans()):
        text += f" GROUP BY {draw(columns)}, a + 1 HAVING {draw(conditions(depth))}"
    return text


@st.composite
def queries(draw: st.DrawFn, depth: int = 1) -> str:
    if depth <= 0:
        return draw(st.sampled_from(("SELECT 1", "SELECT a FROM b [ROWS 5]", "ISTREAM(SELECT 1)")))
    one, two = draw(selects(depth - 1)), draw(queries(depth - 1))
    sign = draw(st.sampled_from(("UNION", "EXCEPT", "INTERSECT")))
    all_ = draw(st.sampled_from(("", " ALL", " DISTINCT")))
    forms = (
        one,
        f"{one} ORDER BY a, b DESC LIMIT 5 OFFSET 1",
        f"{one} {sign}{all_} ({two})",
        f"{one} {sign} SELECT 1 {sign}{all_} {one} INTERSECT SELECT 2",
        f"({one} {sign} {two}) {sign} ({one})",
        f"WITH w AS ({two}), {draw(names)} AS ({one}) {one}",
        f"DSTREAM({one})",
    )
    return draw(st.sampled_from(forms))


@st.composite
def statements(draw: st.DrawFn) -> str:
    name, column, query = draw(names), draw(names), draw(queries(2))
    values = (draw(strings), "-1.5", "1e30", "TRUE", "7")
    connector = f"{name}({draw(st.sampled_from(values))}, {column} => {draw(st.sampled_from(values))})"
    fields = f"({column} {draw(types)} NOT NULL, {name} {draw(types)})"
    forms = (
        query,
        query,
        f"CREATE STREAM {name} AS {query}",
        f"CREATE QUERY {name} INTO {connector} AS {query}",
        f"CREATE FUNCTION {name}{fields.replace(' NOT NULL', '')} AS {draw(conditions(2))}",
        f"CREATE STREAM {name} {fields} SOURCE {connector} LATE QUARANTINE"
        f" ORDERED BY {column} WITHIN {draw(durations)} IDLE AFTER {draw(durations)}",
        f"CREATE RELATION {name} {fields} SOURCE {connector} VALID FROM {name} TO {column}",
        f"DROP STREAM IF EXISTS {name}",
        f"DESCRIBE {name}",
        f"EXPLAIN STAGES {query}",
    )
    return draw(st.sampled_from(forms))
