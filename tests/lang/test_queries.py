from __future__ import annotations

import pytest
from sqlglot import exp

from tidemill.lang import StreamOperator, Tidemill, WindowClause, Windowed, parse_one, parse_query
from tidemill.lang.statements import CreateFunction


def scalar(text: str) -> exp.Expr:
    statement = parse_one(f"CREATE FUNCTION f() AS {text}")
    assert isinstance(statement, CreateFunction)
    return statement.body


def test_a_call_is_anonymous_whatever_its_name() -> None:
    for text in ("COUNT(a)", "Ceil(a)", "log(2, a)", "COALESCE(a, b)", "IF(a, b, c)", "left(a, 1)"):
        call = scalar(text)
        assert type(call) is exp.Anonymous
        assert call.name == text.split("(")[0]
        assert len(call.expressions) == text.count(",") + 1


def test_count_takes_a_star_or_distinct_values() -> None:
    assert isinstance(scalar("COUNT(*)").expressions[0], exp.Star)
    (distinct,) = scalar("COUNT(DISTINCT a, b)").expressions
    assert isinstance(distinct, exp.Distinct)
    assert len(distinct.expressions) == 2


def test_an_aggregate_may_have_a_filter() -> None:
    node = scalar("SUM(a) FILTER (WHERE b > 1)")
    assert isinstance(node, exp.Filter)
    assert isinstance(node.this, exp.Anonymous)
    assert isinstance(node.expression, exp.Where)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("SUBSTRING(a FROM 1 FOR 2)", "SUBSTRING(a, 1, 2)"),
        ("SUBSTRING(a FROM 1)", "SUBSTRING(a, 1)"),
        ("POSITION('x' IN (a || b))", "POSITION('x', (a || b))"),
        ("POSITION(a IN (1, 2), NOT b)", '"POSITION"(a IN (1, 2), NOT b)'),
        ("TRIM(LEADING 'x' FROM a)", "LTRIM(a, 'x')"),
        ("TRIM(TRAILING FROM a)", "RTRIM(a)"),
        ("TRIM(BOTH 'x' FROM a)", "TRIM(a, 'x')"),
        ("TRIM('x' FROM a)", "TRIM(a, 'x')"),
        ("a::INTEGER", "CAST(a AS INT)"),
        ("a DIV b", "a // b"),
        ("a != b", "a <> b"),
        ("a = SOME(SELECT 1)", "a = ANY(SELECT 1)"),
        ("DATE '2020-01-01'", "CAST('2020-01-01' AS DATE)"),
        ("INTERVAL 5 MINUTES", "INTERVAL '5' MINUTE"),
        ("INTERVAL '5 minutes'", "INTERVAL '5' MINUTE"),
        ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()"),
        ("EXTRACT(years FROM a)", "EXTRACT(YEAR FROM a)"),
        ("NOT a IN (1)", "a NOT IN (1)"),
        ("NOT a IS NULL", "a IS NOT NULL"),
        ("NOT a LIKE b", "a NOT LIKE b"),
        ("NOT a BETWEEN 1 AND 2", "a NOT BETWEEN 1 AND 2"),
        ("+ a", "a"),
        (".5", "0.5"),
    ],
)
def test_two_ways_to_write_the_same(text: str, same: str) -> None:
    assert scalar(text) == scalar(same)


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a = b", "NOT (a = b)"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a < b + 1", "a < (b + 1)"),
        ("a = b IN (1)", "a = (b IN (1))"),
        ("a || b LIKE c", "(a || b) LIKE c"),
        ("a || b + c", "a || (b + c)"),
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a / b // c % d", "((a / b) // c) % d"),
        ("- a * b", "(- a) * b"),
        ("- a::INT", "- (a::INT)"),
        ("a BETWEEN b + 1 AND c AND d", "(a BETWEEN (b + 1) AND c) AND d"),
        ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
    ],
)
def test_operators_bind_as_in_sql(text: str, grouped: str) -> None:
    tree = scalar(grouped)
    while tree.find(exp.Paren):
        tree = tree.transform(lambda node: node.this if isinstance(node, exp.Paren) else node)
    assert scalar(text) == tree


def test_null_safe_comparisons() -> None:
    assert isinstance(scalar("a IS DISTINCT FROM b"), exp.NullSafeNEQ)
    assert isinstance(scalar("a IS NOT DISTINCT FROM b"), exp.NullSafeEQ)


def test_subqueries_in_expressions() -> None:
    assert isinstance(scalar("(SELECT 1)"), exp.Subquery)
    assert isinstance(scalar("((SELECT 1) + 1)"), exp.Paren)
    assert isinstance(scalar("EXISTS(SELECT 1)").this, exp.Select)
    assert isinstance(scalar("NOT EXISTS(SELECT 1)").this, exp.Exists)
    compared = scalar("a >= ALL(SELECT 1)")
    assert isinstance(compared, exp.GTE)
    assert isinstance(compared.expression, exp.All)
    assert isinstance(scalar("a IN (SELECT 1)").args["query"], exp.Subquery)
    assert len(scalar("a IN ((SELECT 1), 2)").expressions) == 2


def test_a_row_is_looked_up_in_a_query() -> None:
    node = scalar("(a, f(b, c)) NOT IN (SELECT 1, 2)")
    assert isinstance(node, exp.Not)
    assert isinstance(node.this.this, exp.Tuple)
    assert isinstance(node.this.args["query"], exp.Subquery)
    assert isinstance(scalar("(SELECT a, b) IN (SELECT 1)").this, exp.Subquery)


def test_an_interval_has_a_number_and_a_singular_unit() -> None:
    node = scalar("INTERVAL '-1.5 hours'")
    assert (node.this.name, node.this.is_string, node.args["unit"].name) == ("-1.5", True, "HOUR")


def test_types() -> None:
    cast = scalar("CAST(a AS NUMERIC(10, 2))")
    assert cast.args["to"].this is exp.DType.DECIMAL
    assert [parameter.name for parameter in cast.args["to"].expressions] == ["10", "2"]
    assert scalar("a::DOUBLE PRECISION").args["to"].this is exp.DType.DOUBLE
    assert scalar("a::STRING").args["to"].this is exp.DType.TEXT
    assert isinstance(scalar("TRY_CAST(a AS REAL)"), exp.TryCast)


def test_the_parts_of_a_select() -> None:
    query = parse_query(
        "SELECT DISTINCT *, b.*, a + 1 x FROM bid b JOIN item USING (id), (SELECT 1) AS s"
        " WHERE a GROUP BY a, b HAVING c QUALIFY d ORDER BY a LIMIT 1 OFFSET 2"
    )
    assert isinstance(query, exp.Select)
    assert query.args["distinct"]
    star, qualified, named = query.expressions
    assert isinstance(star, exp.Star)
    assert qualified.is_star
    assert qualified.table == "b"
    assert isinstance(named, exp.Alias)
    assert query.args["from_"].this.alias_or_name == "b"
    using, comma = query.args["joins"]
    assert [column.name for column in using.args["using"]] == ["id"]
    assert comma.this.alias == "s"
    for clause in ("where", "group", "having", "qualify", "order", "limit", "offset"):
        assert query.args[clause] is not None


@pytest.mark.parametrize(
    ("join", "side", "kind"),
    [
        ("JOIN b ON c", "", ""),
        ("INNER JOIN b ON c", "", ""),
        ("LEFT JOIN b ON c", "LEFT", ""),
        ("RIGHT OUTER JOIN b ON c", "RIGHT", ""),
        ("FULL JOIN b ON c", "FULL", ""),
        ("CROSS JOIN b", "", "CROSS"),
    ],
)
def test_joins_have_a_side_or_are_cross(join: str, side: str, kind: str) -> None:
    (node,) = parse_query(f"SELECT * FROM a {join}").args["joins"]
    assert (node.side, node.kind) == (side, kind)


def test_set_operations_nest_to_the_left_and_intersect_binds_tighter() -> None:
    query = parse_query("SELECT 1 UNION SELECT 2 EXCEPT ALL SELECT 3 INTERSECT SELECT 4")
    assert isinstance(query, exp.Except)
    assert query.args["distinct"] is False
    assert isinstance(query.this, exp.Union)
    assert query.this.args["distinct"] is True
    assert isinstance(query.expression, exp.Intersect)


def test_order_and_limit_belong_to_the_whole_query() -> None:
    query = parse_query("SELECT 1 UNION SELECT 2 ORDER BY 1 LIMIT 3")
    assert isinstance(query, exp.Union)
    assert query.args["limit"] is not None
    assert query.expression.args.get("limit") is None


def test_stream_operators_stand_for_queries_and_for_names_in_from() -> None:
    query = parse_query("ISTREAM(SELECT 1) UNION ALL DSTREAM(SELECT 2)")
    assert isinstance(query, exp.Union)
    assert isinstance(query.this, StreamOperator)
    assert query.expression.kind == "DSTREAM"
    item = parse_query("SELECT * FROM RStream(customer) c").args["from_"].this
    assert isinstance(item, StreamOperator)
    assert (item.kind, item.name, item.alias) == ("RSTREAM", "customer", "c")
    assert isinstance(item.this, exp.Table)


def test_wstream_has_a_window() -> None:
    query = parse_query("wstream [ROWS 5] (SELECT 1)")
    assert isinstance(query, StreamOperator)
    assert (query.kind, query.window) == ("WSTREAM", WindowClause(frame="ROWS", size=5))
    items = parse_query("SELECT * FROM WSTREAM[NOW](wstream) a, wstream [ROWS 5] b")
    first, second = items.args["from_"].this, items.args["joins"][0].this
    assert isinstance(first, StreamOperator)
    assert isinstance(second, Windowed)


def test_with_is_kept_on_the_query() -> None:
    query = parse_query("WITH a AS (SELECT 1), b AS (ISTREAM(SELECT 2)) RSTREAM(SELECT * FROM a)")
    assert isinstance(query, StreamOperator)
    assert [cte.alias for cte in query.args["with_"].expressions] == ["a", "b"]


def test_sqlglot_reads_and_writes_the_dialect() -> None:
    text = "SELECT a // 2 FROM bid [ROWS 5] AS b"
    (tree,) = Tidemill().parse(text)
    assert tree == parse_query(text)
    assert tree is not None
    assert tree.sql(dialect=Tidemill) == text


def test_a_bracket_after_a_table_is_never_a_subscript() -> None:
    item = parse_query("SELECT * FROM bid[ROWS 1]").args["from_"].this
    assert isinstance(item, Windowed)
