from __future__ import annotations

import pytest
from sqlglot import exp

from tidemill.errors import ParseError, Span
from tidemill.lang import parse, parse_one, parse_query, parse_script, unparse
from tidemill.lang.statements import (
    ColumnDefinition,
    ConnectorCall,
    CreateChangingRelation,
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    Describe,
    DescribeConnector,
    Drop,
    Duration,
    Explain,
    ExplainMode,
    LatePolicy,
    MalformedPolicy,
    Name,
    ObjectKind,
    Select,
    Show,
    ShowConnectors,
    Validity,
)

SECOND = 1_000_000


def column(name: str, kind: exp.DType, *, nullable: bool = True) -> ColumnDefinition:
    return ColumnDefinition(Name(name), exp.DataType(this=kind, nested=False), nullable)


def test_a_stream_has_columns_a_source_an_order_and_policies() -> None:
    assert parse_one(
        """
        CREATE STREAM bid (auction BIGINT, price DOUBLE NOT NULL, at TIMESTAMP)
          SOURCE parquet('bids', files_per_batch => 1, follow => TRUE, ratio => -0.5)
          ORDERED BY at WITHIN 2 SECONDS LATE QUARANTINE IDLE AFTER 30 SECONDS;
        """
    ) == CreateStream(
        Name("bid"),
        (
            column("auction", exp.DType.BIGINT),
            column("price", exp.DType.DOUBLE, nullable=False),
            column("at", exp.DType.TIMESTAMP),
        ),
        ConnectorCall(
            Name("parquet"),
            ("bids",),
            (("files_per_batch", 1), ("follow", True), ("ratio", -0.5)),
        ),
        Name("at"),
        Duration(2 * SECOND),
        LatePolicy.QUARANTINE,
        Duration(30 * SECOND),
    )


def test_the_clauses_of_a_stream_come_in_any_order() -> None:
    start = "CREATE STREAM bid (at TIMESTAMP) SOURCE csv()"
    assert parse_one(f"{start} LATE DROP IDLE AFTER 5 ORDERED BY at WITHIN 7") == parse_one(
        f"{start} ORDERED BY at WITHIN 7 IDLE AFTER 5 LATE DROP"
    )


def test_a_stream_needs_no_clauses() -> None:
    statement = parse_one("CREATE STREAM bid (at TIMESTAMP) SOURCE csv()")
    assert isinstance(statement, CreateStream)
    assert statement.ordered_by is None
    assert statement.within is None
    assert statement.late is LatePolicy.DROP
    assert statement.idle_after is None
    assert statement.malformed is MalformedPolicy.FAIL


@pytest.mark.parametrize("policy", MalformedPolicy)
def test_a_stream_says_what_becomes_of_malformed_rows(policy: MalformedPolicy) -> None:
    statement = parse_one(
        f"CREATE STREAM bid (at TIMESTAMP) SOURCE csv() MALFORMED {policy.value} LATE DROP"
    )
    assert isinstance(statement, CreateStream)
    assert statement.malformed is policy


def test_a_relation_may_be_temporal() -> None:
    text = "CREATE RELATION rate (id INT, since DATE, till DATE) SOURCE csv(path => 'r.csv')"
    relation = parse_one(text)
    assert isinstance(relation, CreateRelation)
    assert relation.validity is None
    open_ended = parse_one(f"{text} VALID FROM since")
    assert isinstance(open_ended, CreateRelation)
    assert open_ended.validity == Validity(Name("since"))
    closed = parse_one(f"{text} VALID FROM since TO till")
    assert isinstance(closed, CreateRelation)
    assert closed.validity == Validity(Name("since"), Name("till"))


def test_a_relation_may_be_non_retroactive() -> None:
    text = "CREATE RELATION rate (id INT, since BIGINT) SOURCE csv('r.csv')"
    clauses = ("VALID FROM since", "KEY (id, since)", "NON RETROACTIVE")
    relation = parse_one(" ".join((text, *clauses)))
    assert isinstance(relation, CreateRelation)
    assert relation.key == (Name("id"), Name("since"))
    assert not relation.retroactive
    assert parse_one(" ".join((text, *reversed(clauses)))) == relation
    plain = parse_one(text)
    assert isinstance(plain, CreateRelation)
    assert (plain.key, plain.retroactive) == ((), True)


def test_a_stream_may_change_a_relation() -> None:
    text = "CREATE RELATION price FROM STREAM change KEY (item, shop)"
    relation = parse_one(text)
    assert isinstance(relation, CreateChangingRelation)
    assert (relation.stream, relation.key) == (Name("change"), (Name("item"), Name("shop")))
    assert (relation.columns, relation.deleted, relation.retroactive) == ((), None, True)
    clauses = ("DELETE WHEN op = 'D' OR (gone)", "NON RETROACTIVE")
    changed = parse_one(" ".join((text, *clauses)))
    assert isinstance(changed, CreateChangingRelation)
    assert changed.deleted is not None
    assert not changed.retroactive
    assert parse_one(" ".join((text, *reversed(clauses)))) == changed


def test_a_column_may_have_a_word_of_the_clauses_for_a_name() -> None:
    named = parse_one("CREATE RELATION r FROM STREAM s KEY (key) DELETE WHEN non = key OR delete")
    assert isinstance(named, CreateChangingRelation)
    assert named.deleted == parse_query("SELECT non = key OR delete").expressions[0]


def test_a_derived_stream_a_query_and_a_function_hold_sql() -> None:
    query = parse_query("SELECT a FROM bid")
    assert parse_one("CREATE STREAM s AS SELECT a FROM bid") == CreateDerivedStream(
        Name("s"), query
    )
    assert parse_one("CREATE QUERY q AS SELECT a FROM bid") == CreateQuery(Name("q"), query)
    sink = ConnectorCall(Name("console"))
    assert parse_one("CREATE QUERY q INTO console() AS SELECT a FROM bid") == CreateQuery(
        Name("q"), query, sink
    )
    function = parse_one("CREATE FUNCTION double(x INT) AS 2 * x")
    assert isinstance(function, CreateFunction)
    assert function.parameters == (column("x", exp.DType.INT),)
    assert isinstance(function.body, exp.Mul)


@pytest.mark.parametrize("text", ["SELECT 1", "WITH a AS (SELECT 1) SELECT 1", "(SELECT 1)"])
def test_a_query_is_a_statement(text: str) -> None:
    assert isinstance(parse_one(text), Select)


def test_a_stream_operator_is_a_query() -> None:
    assert isinstance(parse_one("rstream(SELECT 1)"), Select)


def test_the_short_statements() -> None:
    assert parse_one("DROP QUERY hot") == Drop(ObjectKind.QUERY, Name("hot"))
    assert parse_one("drop function if exists f") == Drop(
        ObjectKind.FUNCTION, Name("f"), if_exists=True
    )
    assert parse_one("SHOW RELATIONS") == Show(ObjectKind.RELATION)
    assert parse_one("DESCRIBE bid") == parse_one("desc bid") == Describe(Name("bid"))
    assert parse_one("SHOW CONNECTORS") == ShowConnectors()
    assert parse_one("DESC CONNECTOR csv") == DescribeConnector(Name("csv"))
    assert parse_one("DESCRIBE connector") == Describe(Name("connector"))


@pytest.mark.parametrize("mode", [mode for mode in ExplainMode if mode is not ExplainMode.ANALYZE])
def test_explain_has_modes(mode: ExplainMode) -> None:
    query = Select(parse_query("SELECT 1"))
    assert parse_one(f"EXPLAIN {mode.value} SELECT 1") == Explain(mode, query)
    assert parse_one(f"EXPLAIN {mode.value} FORMAT JSON SELECT 1") == Explain(mode, query, True)


def test_explain_is_logical_and_takes_a_query_its_sink_or_its_name() -> None:
    create = "CREATE QUERY q INTO csv('out') AS SELECT 1"
    assert parse_one("EXPLAIN SELECT 1") == parse_one("EXPLAIN LOGICAL SELECT 1")
    created = parse_one(create)
    assert isinstance(created, CreateQuery)
    assert parse_one(f"EXPLAIN {create}") == Explain(ExplainMode.LOGICAL, created)
    assert parse_one("EXPLAIN PHYSICAL q") == Explain(ExplainMode.PHYSICAL, Name("q"))
    assert parse_one("EXPLAIN ANALYZE FORMAT JSON q") == Explain(
        ExplainMode.ANALYZE, Name("q"), True
    )


@pytest.mark.parametrize("name", ["physical", '"physical"', "format", "q"])
def test_a_query_can_have_the_name_of_a_mode(name: str) -> None:
    expected = Explain(ExplainMode.LOGICAL, Name(name.strip('"')))
    assert parse_one(f"EXPLAIN {name}") == expected


def test_only_what_runs_can_be_analyzed() -> None:
    with pytest.raises(ParseError, match="only a query that runs, or has run, can be analyzed"):
        parse_one("EXPLAIN ANALYZE SELECT 1")


def test_a_script_has_statements_with_their_places() -> None:
    text = ";; SHOW STREAMS; -- nothing\n;SELECT ';' /* ; */ ;DROP QUERY a"
    statements = parse_script(text)
    assert [text[span.start : span.end] for _, span in statements] == [
        "SHOW STREAMS",
        "SELECT ';'",
        "DROP QUERY a",
    ]
    assert parse(text) == tuple(statement for statement, _ in statements)
    assert parse(" ; -- empty") == ()


def test_names_know_their_place() -> None:
    statement = parse_one('DROP STREAM "my bid"')
    assert isinstance(statement, Drop)
    assert statement.name.text == "my bid"
    assert statement.name.span == Span(12, 20)


def test_words_of_clauses_are_names_elsewhere() -> None:
    text = "SELECT source, slide, stream, partition, range FROM query WHERE late = offset"
    assert unparse(parse_one(text)) == text


def test_parse_one_takes_one_statement() -> None:
    with pytest.raises(ParseError, match="no statement"):
        parse_one(" ; ")
    with pytest.raises(ParseError, match="found another"):
        parse_one("SELECT 1; SELECT 2")
    with pytest.raises(ParseError, match="expected a query"):
        parse_query("SHOW STREAMS")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "(" * 5000 + "SELECT 1" + ")" * 5000,
        "SELECT " + "f(" * 5000 + ")" * 5000,
        "SELECT " + "NOT " * 5000 + "a",
        "SELECT " + "- " * 5000 + "a",
        "SELECT a" + " + b - c" * 500,
        "SELECT * FROM " + "(SELECT * FROM " * 500 + "a" + ")" * 500,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        parse(text)


def test_a_long_chain_is_not_deep() -> None:
    text = "SELECT a FROM b WHERE " + " OR ".join(f"a = {number}" for number in range(2000))
    assert unparse(parse_one(text)) == text
