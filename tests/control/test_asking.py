"""What a session is asked once: the text, the instant, what is read, and what goes meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from laws.arrivals import Arrival
from laws.asking import asked_of_all, catalog_of, kept_by_batch
from laws.catalogue import SOURCES, Inputs, S
from tidemill.algebra.plan import TimeWindow, Window
from tidemill.algebra.snapshot import Element
from tidemill.control.asked_tables import KeptTables
from tidemill.control.asking import Asking
from tidemill.errors import Span
from tidemill.lang.statements import Instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from laws.arrivals import Step
    from tidemill.history.pieces import Piece
    from tidemill.model.batch import Batch
    from tidemill.runtime.past import Past


@pytest.fixture
def session() -> Iterator[tidemill.Session]:
    """A session that has read five rows and goes on."""
    with tidemill.connect() as made:
        made.put("s", pl.DataFrame({"a": [3, 1, 2, 1, 2], "t": [0, 1, 2, 3, 4]}))
        made.put("r", pl.DataFrame({"b": [1, 2]}))
        made.sql(
            "CREATE STREAM s (a BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t KEEP ALL;"
            "CREATE RELATION r (b BIGINT) SOURCE memory('r')"
        )
        made.start()
        made.await_idle()
        yield made


# The text and the instant


def test_a_select_is_asked_with_as_of_or_with_at(session: tidemill.Session) -> None:
    plain = "SELECT a FROM s [RANGE 2]"
    wanted = [(1,), (2,)]
    assert session.ask(f"{plain} AS OF 2").frame.rows() == wanted
    assert session.ask(f"{plain} AS OF NOW").frame.equals(session.ask(plain).frame)
    moment = datetime.fromtimestamp(2e-6, tz=UTC)
    for at in (2, moment, "1970-01-01T00:00:00.000002"):
        assert session.ask(plain, at=at).frame.rows() == wanted


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("", None, "there is no query"),
        ("SELECT a FROM s; SELECT a FROM s", None, "expected one query, found another"),
        ("SHOW STREAMS", None, "only a SELECT can be asked"),
        ("CREATE QUERY q AS SELECT a FROM s", None, "only a SELECT can be asked"),
        ("SELECT a FROM s AS OF 2", 2, "the instant is given twice"),
        ("SELECT a FROM s AS OF NOW", 2, "the instant is given twice"),
        ("SELECT a FROM s", -1, "an instant is not before 1970"),
        ("SELECT a FROM s", "soon", "'soon' is no instant"),
    ],
)
def test_a_text_that_cannot_be_asked_is_refused(
    session: tidemill.Session, text: str, at: object, message: str
) -> None:
    with pytest.raises(tidemill.TidemillError, match=message):
        session.ask(text, at=at)  # type: ignore[arg-type]
    assert session.sql("SHOW QUERIES").is_empty()  # type: ignore[union-attr]


def test_a_mistake_is_shown_where_it_stands(session: tidemill.Session) -> None:
    with pytest.raises(tidemill.BindError) as found:
        session.ask("SELECT b FROM s")
    assert found.value.span == Span(7, 8)
    assert "^" in str(found.value)


def test_the_answer_says_of_which_instant_and_boundary_it_is(session: tidemill.Session) -> None:
    answer = session.ask("SELECT a FROM s")
    assert (answer.at, answer.known, answer.batch) == (3, 4, 0)
    first, *_ = repr(answer).splitlines()
    assert first == "OneTimeAnswer at 3, known up to 4, after batch 0"


def test_relations_alone_are_known_for_ever() -> None:
    with tidemill.connect() as session:
        session.put("r", pl.DataFrame({"b": [2, 1]}))
        session.sql("CREATE RELATION r (b BIGINT) SOURCE memory('r')")
        assert session.ask("SELECT b FROM r ORDER BY b DESC").frame.rows() == [(2,), (1,)]
        assert session.sql("SELECT b FROM r LIMIT 1 AS OF 7").rows() == [(1,)]  # type: ignore[union-attr]


def test_a_one_time_query_is_not_registered(session: tidemill.Session) -> None:
    session.sql("SELECT a FROM s AS OF 2")
    assert session.sql("SHOW QUERIES").is_empty()  # type: ignore[union-attr]
    with pytest.raises(tidemill.ParseError, match="not a query"):
        session.query("SELECT a FROM s AS OF 2")


# EXPLAIN


def test_explain_says_what_would_be_read(session: tidemill.Session) -> None:
    session.sql("CREATE QUERY q AS SELECT MAX(a) AS m FROM s [RANGE 9]")
    session.await_idle()
    batch = session.ask("SELECT a FROM s").batch
    text = "SELECT a FROM s [RANGE 2 SLIDE 2], r, QUERY q WHERE a = b AND a < m AS OF 2"
    found = session.sql(f"EXPLAIN {text}")
    assert isinstance(found, str)
    assert found.splitlines()[-4:] == [
        f"at 2; known up to 4, after batch {batch}",
        '  stream "s": rows from the beginning to 1; kept from the beginning on',
        '  query "q": its answer',
        '  relation "r": all rows',
    ]
    told = json.loads(str(session.sql(f"EXPLAIN FORMAT JSON {text}")))
    assert told["reads"] == {
        "at": 2,
        "known": 4,
        "batch": batch,
        "streams": {"s": {"first": 0, "last": 1, "since": 0}},
        "queries": ["q"],
        "tables": {},
        "relations": ["r"],
    }
    assert "logical" in told


def test_explain_needs_nothing_to_have_come() -> None:
    with tidemill.connect() as session:
        session.sql("CREATE STREAM s (a BIGINT, t BIGINT) SOURCE memory() ORDERED BY t KEEP 5")
        now = session.sql("EXPLAIN SELECT a FROM s [RANGE 2] AS OF NOW")
        then = session.sql("EXPLAIN SELECT a FROM s [RANGE 2] AS OF 7")
        assert str(now).splitlines()[-2:] == [
            "at now, of which nothing is known yet; known up to 0",
            '  stream "s": nothing is kept',
        ]
        assert str(then).splitlines()[-1] == (
            '  stream "s": rows from 6 to 7; nothing is kept; some of it is not kept'
        )


# Rows that are removed while they are read


def boundaries() -> list[Past]:
    """What is kept after one batch, and after two."""
    elements = (Element(1, 0, (1, "x")), Element(5, 1, (2, "y")))
    content = Inputs(
        {source.name: elements if source is S else () for source in SOURCES}, {"R": (), "P": ()}
    )
    nothing: Step = {source.name: ((), 9) for source in SOURCES}
    marks = zip(elements, (4, 9), strict=True)
    arrival = Arrival(tuple({**nothing, "S": ((element,), mark)} for element, mark in marks))
    keeps = dict.fromkeys(content.streams)
    return [kept_by_batch(content, arrival, keeps, boundary).past() for boundary in (1, 2)]


def _gone(piece: Piece) -> Batch:
    raise KeyError(piece.name)


def _removed(past: Past) -> Past:
    """The same, but its rows are not there any more."""
    streams = {name: replace(kept, get=_gone) for name, kept in past.streams.items()}
    return replace(past, streams=streams)


def asking(given: Callable[[], Past]) -> Asking:
    return Asking(catalog_of(), given, lambda _name: None, {}, lambda _tables: KeptTables())


def test_it_is_asked_again_of_the_next_boundary() -> None:
    first, second = boundaries()
    given = iter([_removed(first), _removed(first), second])
    question = asked_of_all(Window(S, TimeWindow(3)))
    answer = asking(lambda: next(given)).answer(question, Instant(3), None)
    assert (answer.frame.rows(), answer.known, answer.batch) == ([(1, "x")], 9, 1)


def test_rows_that_go_faster_than_they_are_read_are_an_error() -> None:
    gone = _removed(boundaries()[0])
    question = asked_of_all(Window(S, TimeWindow(3)))
    with pytest.raises(tidemill.RunError, match="rows are removed faster than they can be read"):
        asking(lambda: gone).answer(question, Instant(3), None)


def test_rows_that_are_damaged_are_told_at_once() -> None:
    past = boundaries()[0]

    def damaged(_piece: Piece) -> Batch:
        raise tidemill.RunError("the checkpoint is damaged")

    streams = {name: replace(kept, get=damaged) for name, kept in past.streams.items()}
    question = asked_of_all(Window(S, TimeWindow(3)))
    with pytest.raises(tidemill.RunError, match="damaged"):
        asking(lambda: replace(past, streams=streams)).answer(question, Instant(3), None)
