"""Small statements that would take for ever, or all memory: each ends soon, with a clear error.

Each runs in a process of its own, with little memory and a limit of time.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from textwrap import dedent

import polars as pl
import pytest

import tidemill
from tidemill.errors import PlanError, RunError
from tidemill.physical import limits
from tidemill.physical.eval import growth

SECONDS = 30
MEMORY = 8 << 30

PROLOGUE = """
import polars as pl
import tidemill

session = tidemill.connect()
session.sql("CREATE STREAM t (a BIGINT, v VARCHAR, at BIGINT) SOURCE memory('t') ORDERED BY at")
session.put("t", pl.DataFrame({"a": [1] * 20_000, "v": ["x"] * 20_000, "at": [1] * 20_000}))
"""


def told(program: str) -> str:
    """What a program prints, or the error it ends with."""
    text = PROLOGUE + dedent(program)
    done = subprocess.run(  # noqa: S603 — our own programs
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert done.returncode in (0, 1), f"ended with {done.returncode}: {done.stderr[-500:]}"
    errors = done.stderr.strip().split("\ntidemill.errors.")
    return done.stdout.strip() if done.returncode == 0 else errors[-1]


PATTERNS = {
    "REGEXP_MATCHES('{text}!', '(a+)+$')": False,
    "REGEXP_EXTRACT('{text}!', '(a+)+$') = ''": True,
    "REGEXP_REPLACE('{text}!', '(a|aa)+$', 'b', 'g') = '{text}!'": True,
    "REGEXP_REPLACE('{text}!', '(a|aa)+$|', '', 'g') = '{text}!'": True,
    "REGEXP_REPLACE(v, '(a|aa?)+$|', '', 'g') = v": True,
    "'{text}' LIKE '{percent}b'": False,
    "REGEXP_MATCHES('', '(?:|){{40}}x')": False,
    "REGEXP_MATCHES('', '(?:|){{40}}\\\\Bx')": False,
}


def test_patterns_that_go_back_for_ever() -> None:
    texts = [text.format(text="a" * 40, percent="%a" * 30) for text in PATTERNS]
    columns = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
    program = f"""
        for optimize in (True, False):
            session = tidemill.connect(optimize=optimize)
            session.sql("CREATE STREAM u (a BIGINT, v VARCHAR) SOURCE memory('u') ORDERED BY a")
            session.put("u", pl.DataFrame({{"a": [1], "v": ["a" * 40 + "!"]}}))
            query = session.sql("SELECT {columns} FROM u [NOW]")
            session.run()
            print(query.results().row(0)[:-2])
    """
    assert told(program) == f"{tuple(PATTERNS.values())}\n{tuple(PATTERNS.values())}"


def test_texts_that_are_too_long_for_memory() -> None:
    program = """
        session.sql("CREATE QUERY long AS SELECT REPEAT(v, 16000000) AS r FROM t [NOW]")
        session.run()
    """
    error = told(program)
    assert 'RunError: query "long": REPEAT would make texts of 298.0 GiB in one step' in error


def run(text: str, frame: pl.DataFrame, **settings: str) -> None:
    session = tidemill.connect(**settings)  # type: ignore[arg-type]
    session.sql("CREATE STREAM t (a BIGINT, v VARCHAR, at BIGINT) SOURCE memory('t') ORDERED BY at")
    session.put("t", frame)
    session.sql(text)
    session.run()


FRAME = pl.DataFrame({"a": [1, 1], "v": ["x", None], "at": [1, 1]})


@pytest.mark.parametrize(
    "expression",
    [
        "REPEAT(v, 2000)",
        "LPAD(v, 2000, 'y')",
        "RPAD(v, 2000, v)",
        "REPLACE(REPLACE(REPLACE(v, 'x', '{many}'), 'y', '{many}'), 'y', '{many}')",
        "REPLACE(REPEAT(v, 20), v, REPEAT(v, 100))",
        "REGEXP_REPLACE(REPEAT(v, 20), 'x', '{many}', 'g')",
        "CONCAT_WS('{many}', v, v, v, v, v, v, v, v, v, v, v, v)",
        "REPEAT(v, 600) || REPEAT(v, 600)",
        "CONCAT(REPEAT(v, 600), REPEAT(v, 600))",
    ],
)
def test_texts_that_are_too_long(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (limits, growth):
        monkeypatch.setattr(module, "LARGEST_TEXTS", 1000)
    text = expression.format(many="y" * 99)
    with pytest.raises(RunError, match=r'query "long": .* would make texts of'):
        run(f"CREATE QUERY long AS SELECT {text} AS r FROM t [NOW]", FRAME)


@pytest.mark.parametrize(
    "expression",
    [
        "REPEAT(v, 900)",
        "REPLACE(REPEAT(v, 900), 'y', '{many}')",
        "REPLACE(REPEAT(v, 900), '', '{many}')",
        "REGEXP_REPLACE(REPEAT(v, 900), 'y', '{many}', 'g')",
        "RPAD(v, 400, 'y')",
        "REPEAT(v, 17000000)",
    ],
)
def test_texts_that_fit(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (limits, growth):
        monkeypatch.setattr(module, "LARGEST_TEXTS", 1000)
    text = expression.format(many="y" * 99)
    run(f"CREATE QUERY long AS SELECT {text} AS r FROM t [NOW]", FRAME)


def test_a_text_that_doubles_in_every_view() -> None:
    program = """
        session.sql("CREATE STREAM v0 AS SELECT v FROM t [NOW]")
        for i in range(1, 40):
            session.sql(f"CREATE STREAM v{i} AS SELECT v || v AS v FROM v{i - 1}")
        session.sql("CREATE QUERY long AS SELECT v FROM v39")
        session.run()
    """
    assert 'query "long": || would make texts of' in told(program)


def test_a_constant_text_that_is_too_long() -> None:
    program = """
        text = "REPEAT('x', 16000000)"
        for _ in range(4):
            text = f"REPLACE({text}, 'x', '{'x' * 200}')"
        session.sql(f"SELECT {text} AS r FROM t [NOW]")
        session.run()
    """
    assert "would make texts of" in told(program)


def test_functions_on_top_of_each_other() -> None:
    program = """
        session.sql("CREATE FUNCTION f0(x BIGINT) AS x + x")
        for i in range(1, 40):
            session.sql(f"CREATE FUNCTION f{i}(x BIGINT) AS f{i - 1}(x) + f{i - 1}(x)")
    """
    error = told(program)
    assert "PlanError: the expression would have more than 10,000 parts" in error
    assert "CREATE FUNCTION f12" in error


@pytest.mark.parametrize(
    ("outer", "first"),
    [
        ("f({})", "a"),
        ("NULLIF({}, 1)", "a"),
        ("({} BETWEEN FALSE AND TRUE)", "(a > 1)"),
        ("CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 END", "a"),
    ],
)
def test_an_argument_that_is_used_twice(outer: str, first: str) -> None:
    expression = first
    for _ in range(40):
        expression = outer.format(expression)
    text = f"CREATE FUNCTION f(x BIGINT) AS x + x; SELECT {expression} AS b FROM t [NOW]"
    with pytest.raises(PlanError, match="the expression would have more than 10,000 parts"):
        run(text, FRAME)


def test_an_expression_that_is_written_out_may_be_long() -> None:
    members = ", ".join(map(str, range(30_000)))
    run(f"SELECT a FROM t [NOW] WHERE a IN ({members})", FRAME)


def test_columns_that_double_in_every_view() -> None:
    program = """
        session.sql("CREATE STREAM v0 AS SELECT a FROM t [RANGE 10]")
        for i in range(1, 40):
            session.sql(f"CREATE STREAM v{i} AS SELECT * FROM v{i - 1} x, v{i - 1} y")
    """
    assert "there would be more than 2,000 columns" in told(program)


VIEWS = [
    "SELECT x.a FROM {v} x, {v} y WHERE x.a = y.a",
    "SELECT a FROM {v} UNION ALL SELECT a FROM {v}",
    "SELECT a FROM {v} WHERE a IN (SELECT a FROM {v})",
    "SELECT x.a FROM {v} x FULL JOIN {v} y ON x.a = y.a",
    "SELECT a + (SELECT COUNT(*) FROM {v}) AS a FROM {v}",
    "SELECT a + a AS a FROM {v} WHERE a > 3",
]


@pytest.mark.soak
def test_views_that_double_cost_their_parts_once() -> None:
    program = f"""
        for view in {VIEWS}:
            session.sql("CREATE STREAM v0 AS SELECT a FROM t [RANGE 10]")
            for i in range(1, 50):
                session.sql(f"CREATE STREAM v{{i}} AS " + view.replace("{{v}}", f"v{{i - 1}}"))
            for mode in ("LOGICAL", "TRACE", "PHYSICAL", "STAGES"):
                session.sql(f"EXPLAIN {{mode}} SELECT a FROM v49")
            print(session.sql("SELECT a FROM v49").name)
            session.sql(";".join(f"DROP QUERY {{q}}" for q in ("query_1",)))
            session.sql(";".join(f"DROP STREAM v{{i}}" for i in reversed(range(50))))
    """
    assert told(program).split() == ["query_1"] * len(VIEWS)


def test_too_many_views_on_top_of_each_other() -> None:
    program = """
        session.sql("CREATE STREAM v0 AS SELECT a FROM t [RANGE 10]")
        for i in range(1, 400):
            session.sql(f"CREATE STREAM v{i} AS SELECT DISTINCT a FROM v{i - 1} WHERE a > {i}")
    """
    error = told(program)
    assert "operators on top of each other, with those of its views, more than 300" in error


@pytest.mark.parametrize(
    "joined",
    [
        "t [RANGE 5] x, t [RANGE 5] y WHERE x.a = y.a",
        "t [RANGE 5] x, t [RANGE 5] y",
        "t [RANGE 5] x JOIN t [RANGE 5] y ON x.a <= y.a",
        "t [ROWS 300] x JOIN t [ROWS 300] y ON x.a = y.a",
        "t [RANGE 5] x, t [RANGE 5] y, t [RANGE 5] z WHERE x.a = y.a AND y.a = z.a",
    ],
)
@pytest.mark.parametrize("joins", ["binary", "multiway"])
@pytest.mark.parametrize("technique", ["pattern", "negative", "direct"])
def test_the_result_of_a_join_that_is_too_large(
    joined: str, joins: str, technique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LARGEST_RESULT", 100_000)
    rows = range(200)
    frame = pl.DataFrame({"a": [1] * 200, "v": list(map(str, rows)), "at": [1] * 200})
    text = f"CREATE QUERY pairs AS SELECT x.v, y.v AS w FROM {joined}"
    with pytest.raises(RunError, match='query "pairs": the result of one step has more than'):
        run(text, frame, joins=joins, technique=technique)


def test_all_queries_of_a_shared_join_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_RESULT", 1000)
    frame = pl.DataFrame({"a": [1] * 50, "v": ["x"] * 50, "at": [1] * 50})
    select = "SELECT x.v FROM t [RANGE 5] x, t [RANGE 5] y WHERE x.a = y.a"
    text = f"CREATE QUERY one AS {select}; CREATE QUERY two AS SELECT COUNT(*) AS n FROM ({select})"
    with pytest.raises(RunError, match='queries "one", "two": the result of one step'):
        run(text, frame)


def test_the_result_of_a_join_that_is_too_large_for_memory() -> None:
    program = """
        session.sql("CREATE QUERY pairs AS SELECT x.v, y.v AS w FROM t [RANGE 5] x, t [RANGE 5] y")
        session.run()
    """
    error = told(program)
    assert 'RunError: query "pairs": the result of one step has more than' in error


def test_rows_that_only_pass_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_RESULT", 10)
    frame = pl.DataFrame({"a": [1] * 500, "v": ["x"] * 500, "at": [1] * 500})
    run("SELECT a, v, at FROM t [RANGE 5] WHERE a > 0", frame)
