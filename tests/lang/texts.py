"""Random statements of the language, as texts.

A kind of text is a tuple of forms; ``<kind>`` in a form stands for any text of that kind. Where the
depth is used up, only the forms before LEAVES are taken.
"""

from __future__ import annotations

import re
from typing import Final

from hypothesis import strategies as st

LEAVES: Final = "LEAVES"


def is_name(text: str) -> bool:
    """Whether people may call something so."""
    is_pattern = text == "*" or (text.startswith("^") and text.endswith("$"))
    is_visible = all(character >= " " for character in text)
    return not text.startswith("@") and not is_pattern and is_visible


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


ATOMS: Final[dict[str, st.SearchStrategy[str]]] = {
    "name": st.one_of(
        st.sampled_from(
            (
                "a",
                "b",
                "price",
                "Bid",
                "at",
                "start",
                "warm",
                "change",
                "down",
                "why",
                "offset",
                "range",
                "istream",
                "filter",
            )
        ),
        st.sampled_from(
            ("select", "end", "unit price", "Ä", 'say "hi"', "left", "current_date")
        ).map(quoted),
        st.text(min_size=1, max_size=3).filter(is_name).map(quoted),
    ),
    "string": st.text(max_size=4).map(lambda text: "'" + text.replace("'", "''") + "'"),
}

GRAMMAR: Final[dict[str, tuple[str, ...]]] = {
    "number": ("0", "1", "42", "1.5", "2.", "1e3", "1.5E-2", ".5"),
    "type": ("INT", "bigint", "DOUBLE PRECISION", "DECIMAL(10, 2)", "TEXT", "VARCHAR(3)", "DATE"),
    "column": ("<name>", "<name>.<name>"),
    "sign": ("+", "-", "*", "/", "%", "//", "DIV", "||"),
    "comparison": ("=", "<>", "!=", "<", "<=", ">", ">="),
    "not": ("", " NOT"),
    "function": ("count", "LEFT", "trim", "substring", '"cast"', '"ISTREAM"', "position", "log"),
    "duration": (
        *("5", "0", "600 SECONDS", "-3 ms", "7 days", "2 weeks", "1 HOUR 30 MINUTES"),
        *("1.5 SECONDS", "INTERVAL '5' MINUTES", "INTERVAL '1 hour 5 minutes'", "90 MIN"),
    ),
    "interval": ("INTERVAL 5 MINUTES", "INTERVAL '5' hour", "INTERVAL '-1.5 years'"),
    "constant": ("<number>", "<string>", "TRUE", "false", "NULL", "TIMESTAMP '2020-01-01'"),
    "operand": (
        *("<column>", "<column>", "<constant>", "<interval>", "CURRENT_TIMESTAMP", LEAVES),
        *("<operand> <sign> <operand>", "<operand> <sign> <operand>", "<operand> <sign> <operand>"),
        *("(<scalar>)", "(<scalar>)", "- <operand>", "+ <operand>", "(<scalar>)::<type>"),
        *("CAST(<scalar> AS <type>)", "try_cast(<scalar> AS <type>)", "<column>::<type>::TEXT"),
        "CASE WHEN <scalar> THEN <scalar> ELSE <scalar> END",
        "CASE <scalar> WHEN <scalar> THEN <scalar> WHEN <scalar> THEN <scalar> END",
        *("<function>(<scalar>, <scalar>)", "<function>()", "count(*)", "MAX(DISTINCT <scalar>)"),
        *("sum(<scalar>) FILTER (WHERE <scalar>)", "EXTRACT(years FROM <scalar>)"),
        "sum(<scalar>) OVER (PARTITION BY <scalar> ORDER BY <scalar> DESC, <scalar> NULLS LAST)",
        *("SUBSTRING(<operand> FROM <operand> FOR <operand>)", "POSITION(<operand> IN <operand>)"),
        *("TRIM(LEADING <operand> FROM <operand>)", "TRIM(<operand> FROM <operand>)"),
        *("(<query>)", "((<query>) UNION (<query>))", "((<query>) + 1)", "EXISTS(<query>)"),
        *("ALL(<query>)", "SOME((<query>))"),
    ),
    "test": (
        *("<operand>", "<operand> <comparison> <operand>", LEAVES),
        "<operand> <comparison> <operand><not> IN (<scalar>, <operand>) <comparison> <operand>",
        *("<operand><not> IN (<query>)", "<operand><not> IN (<operand>)<not> IN (<operand>)"),
        "<operand><not> BETWEEN <operand> AND <operand>",
        "(<scalar>, <scalar>)<not> IN (<query>)",
        *("<operand><not> LIKE <operand> ESCAPE '!'", "<operand><not> ILIKE <operand>"),
    ),
    "scalar": (
        *("<test>", "<test>", LEAVES),
        *("<scalar> AND <scalar>", "<scalar> OR <scalar>", "NOT <scalar>", "NOT <scalar>"),
        *("<test> IS<not> NULL", "<test> IS<not> TRUE IS<not> FALSE"),
        *("<test> IS<not> DISTINCT FROM <test>", "<test> IS<not> DISTINCT FROM <test> IS NULL"),
    ),
    "slide": ("", "", " SLIDE 10"),
    "frame": (
        *("NOW", "RANGE UNBOUNDED<slide>", "RANGE <duration><slide>", "ROWS 5<slide>", "ROWS -1"),
        *("PARTITION BY <column>, b ROWS 10<slide>", "RANGE <duration> SLIDE <duration>"),
        *("SESSION <duration>", "PARTITION BY <column> SESSION <duration>"),
    ),
    "window": (
        *("[<frame>]", "WINDOW(<frame>)", "[RANGE <duration><slide> INTERNAL]"),
        *("WINDOW(PARTITION BY <column> ROWS 5<slide> INTERNAL)", "[RANGE UNBOUNDED EXTERNAL]"),
    ),
    "alias": ("AS <name>", "x"),
    "source": (
        *("<name>", "<name>", "rstream(customer)", LEAVES),
        *("(<query>)", "ISTREAM(<query>)", "(ISTREAM(<query>))"),
        *("WSTREAM[ROWS 5](<query>)", "wstream [RANGE <duration>] (customer)"),
    ),
    "item": (
        *("<source>", "<source> <alias>", "<source> <window>"),
        *("<source> <alias> <window>", "<source> <window> <alias>"),
    ),
    "join": (
        *(", <item>", " CROSS JOIN <item>", " JOIN <item> USING (a, <name>)", LEAVES),
        *(" INNER JOIN <item> ON <scalar>", " LEFT OUTER JOIN <item> ON <scalar>"),
        *(" FULL JOIN <item> ON <scalar>", " RIGHT JOIN <item> ON <scalar><join>"),
    ),
    "shown": (
        *("*", "<name>.*", "<scalar>", "<scalar> AS <name>", LEAVES),
        *("<shown>, <shown>", "<scalar> x, <shown>"),
    ),
    "select": (
        *("SELECT <shown>", "SELECT <shown> FROM <item>", LEAVES),
        *("SELECT DISTINCT <shown> FROM <item><join>", "SELECT <shown> FROM <item> WHERE <scalar>"),
        "SELECT <shown> FROM <item><join> WHERE <scalar> GROUP BY <scalar>, a HAVING <scalar>",
        "SELECT <shown> FROM <item> QUALIFY <scalar>",
    ),
    "setsign": ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT DISTINCT", "INTERSECT"),
    "query": (
        *("<select>", "<select>", "ISTREAM(<select>)", "WSTREAM[<frame>](<select>)", LEAVES),
        *("<select> <setsign> (<query>)", "<select> <setsign> <select> <setsign> <select>"),
        *("(<query>) <setsign> (<query>)", "(<query>)", "DSTREAM(<query>) <setsign> <select>"),
        *("<select> ORDER BY <scalar> LIMIT 5 OFFSET 1", "(<query>) ORDER BY a DESC"),
        *("WITH <name> AS (<query>), b AS (<query>) <select>", "WITH a AS (<query>) (<query>)"),
        "WITH a AS (<query>) RSTREAM(<query>)",
    ),
    "value": ("<string>", "env('NAME')", "Env ('a b')", "-1.5", "1e30", "TRUE", "false", "7", "-7"),
    "connector": ("<name>()", "<name>(<value>, <name> => <value>)", "parquet(path => <value>)"),
    "fields": ("(<name> <type> NOT NULL, <name> <type>)", "(<name> <type>)"),
    "instant": (
        *("0", "5", "007", "1772366400070000", "9223372036854775806", "'2026-03-01'"),
        *("TIMESTAMP '2026-03-01 12:00:00.07'", "'1970-01-01T01:00:01+01:00'"),
        *("timestamp '9999-12-31 23:59:59.999999'", "'2026-03-01T12:00Z'"),
    ),
    "moment": ("", " AT <instant>"),
    "using": (
        *("", " USING IMMEDIATE", " using drain", " USING QUERY ORDER", " USING STREAM ORDER"),
        *(" USING GRACEFUL", " USING graceful DRAIN", " USING exact"),
    ),
    "start": ("", " FRESH", " COLD", " warm", " with HISTORY"),
    "replan": (
        *("", " USING GENMIG", " using replay", " USING moving STATE", " USING PARALLEL TRACK"),
        " using auto",
    ),
    "begin": ("", " START FRESH", " start with history"),
    "keep": ("KEEP <duration>", "keep all", "KEEP ALL BY REFERENCE", "KEEP 5 by reference"),
    "hint": (
        *("HINT (rate => 20000, distinct(<name>) => 1000)", "hint (Bytes => 1.5)"),
        *("HINT (rows => 1e3)", "HINT (distinct(a) => 7, DISTINCT(b) => 0.5, rows => 2)"),
    ),
    "recorded": (
        *(" WITH PROVENANCE", " with provenance keep all"),
        " WITH PROVENANCE KEEP <duration>",
    ),
    "stop": ("", " IMMEDIATE", " drain"),
    "lifecycle": (
        *("ALTER QUERY <name> AS <query><using><moment>", "ALTER QUERY <name> REPLAN"),
        *("ALTER QUERY <name> AS <query><using><moment>", "alter query <name> replan<replan>"),
        *("ALTER QUERY <name><recorded>", "ALTER QUERY <name> WITHOUT PROVENANCE"),
        *("START QUERY <name><start><moment>", "STOP QUERY <name><stop><moment>"),
        *("PAUSE QUERY <name><stop>", "RESUME QUERY <name>", "RESUME QUERY <name> COLD"),
    ),
    "asked": ("<name>", "<name>", "(<query>)"),
    "which": ("", " WHERE <scalar>", " where <test>"),
    "down": ("", "", " DOWN TO <name>"),
    "now": ("", " AT NOW", " at <instant>"),
    "why": (
        *("WHY <asked><which><down><now>", "why all <asked><which><down><now>"),
        *("WHY CHANGE <asked><which><down><now>", "WHY NOT <asked> WHERE <scalar><now>"),
        *("SELECT PROVENANCE <name> FROM <name> AS OF NOW", "select provenance 1 AS OF <instant>"),
    ),
    "statement": (
        *("<query>", "<query>", "CREATE STREAM <name> AS <query>", "EXPLAIN STAGES <query>"),
        *(
            "CREATE QUERY <name> INTO <connector><begin><recorded> AS <query>",
            "CREATE QUERY <name> AS <query>",
        ),
        *("CREATE QUERY <name><begin> AS <query>", "CREATE QUERY <name> AS <query>"),
        "CREATE STREAM <name> <fields> SOURCE <connector> <keep> LATE DROP",
        "CREATE STREAM <name> <fields> SOURCE <connector> <keep> <hint>",
        "CREATE RELATION <name> <fields> SOURCE <connector> <hint> KEY (a)",
        *("CREATE TABLE <name> AS <query>", "create table <name> keep all start fresh AS <query>"),
        "CREATE TABLE <name> KEEP <duration> START WITH HISTORY AS <query>",
        "CREATE FUNCTION <name>(<name> <type>, b <type>) AS <scalar>",
        "CREATE STREAM <name> <fields> SOURCE <connector>",
        (
            "CREATE STREAM <name> <fields> SOURCE <connector> IDLE AFTER <duration> LATE QUARANTINE"
            " ORDERED BY <name> WITHIN <duration>"
        ),
        "CREATE STREAM <name> <fields> SOURCE <connector> MALFORMED QUARANTINE IDLE AFTER 5",
        "CREATE RELATION <name> <fields> SOURCE <connector> VALID FROM <name> TO <name>",
        "CREATE RELATION <name> <fields> SOURCE <connector> NON RETROACTIVE KEY (<name>, a)",
        "CREATE RELATION <name> FROM STREAM <name> KEY (<name>, a) DELETE WHEN <scalar>",
        "CREATE RELATION <name> <fields> FROM STREAM <name> KEY (a) NON RETROACTIVE",
        *(
            "DROP STREAM IF EXISTS <name>",
            "DROP FUNCTION <name>",
            "DROP TABLE IF EXISTS <name>",
            "DESCRIBE <name>",
            "DESCRIBE CONNECTOR <name>",
            "SHOW CONNECTORS",
            "SHOW DECISIONS",
            "SHOW SETTINGS",
            "SET adapt = advise",
            "set Adapt = on",
            "SHOW DECISIONS FOR q",
            "show queries",
            "SHOW TABLES",
            "show statistics",
            "SHOW STATISTICS <name>",
            "SHOW STATISTICS FOR <name>",
        ),
        *("<lifecycle>", "<lifecycle>", "EXPLAIN <lifecycle>", "EXPLAIN FORMAT JSON <lifecycle>"),
        *("<why>", "<why>", "EXPLAIN <why>", "EXPLAIN FORMAT JSON <why>"),
        *("<query> AS OF <instant>", "<query> as of now", "EXPLAIN <query> AS OF <instant>"),
    ),
}


@st.composite
def texts(draw: st.DrawFn, kind: str, depth: int) -> str:
    """Any text of a kind, nested up to a depth."""
    return _expand(draw, kind, depth)


def _expand(draw: st.DrawFn, kind: str, depth: int) -> str:
    if kind in ATOMS:
        return draw(ATOMS[kind])
    forms = GRAMMAR[kind]
    leaves = forms.index(LEAVES) if LEAVES in forms else len(forms)
    allowed = forms[:leaves] if depth <= 0 else (*forms[:leaves], *forms[leaves + 1 :])
    form = draw(st.sampled_from(allowed))
    return re.sub(r"<([a-z]+)>", lambda part: _expand(draw, part[1], depth - 1), form)
