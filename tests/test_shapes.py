"""What sinks get, by the form their statement says: results, changes or upserts."""

from __future__ import annotations

import tempfile
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from tidemill.model.batch import Form
from tidemill.model.time import END_OF_TIME
from tidemill.runtime.answers import Answer
from tidemill.runtime.file_sink import WRITERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Bid = tuple[str, int, int]
Row = tuple[Any, ...]

BIDS: list[Bid] = [("pen", 10, 1), ("cup", 5, 2), ("pen", 15, 3), ("pen", 7, 9)]
COUNTS = "SELECT item, COUNT(*) AS n FROM bid [RANGE 4] GROUP BY item"
KEYED = {
    "SELECT item, COUNT(*) AS n, MAX(price) AS top FROM bid [RANGE 4] GROUP BY item": ["item"],
    "SELECT price % 2 AS odd, item, SUM(price) AS total FROM bid [RANGE 5 SLIDE 2] GROUP BY 1, 2": [
        "odd",
        "item",
    ],
    "SELECT SUM(price) AS total FROM bid [ROWS 2]": [],
    "SELECT DISTINCT item, price FROM bid [RANGE 4]": ["item", "price"],
    "SELECT item, price FROM bid [PARTITION BY item ROWS 1]": ["item"],
    # A row that replaces another may come from another partition.
    f"SELECT a.item AS one, b.item AS other, n FROM ({COUNTS}) a JOIN ({COUNTS}) b USING (n)": [
        "one",
        "other",
    ],
}
"""Queries whose rows have a key, and the key."""

PLAIN = (
    "SELECT item, price FROM bid [RANGE 4]",
    "SELECT item FROM bid [ROWS 2]",
    "SELECT a.item FROM bid [RANGE 4] a JOIN bid [RANGE 2] b ON a.item = b.item",
    "SELECT item FROM bid [RANGE 4] EXCEPT ALL SELECT item FROM bid [RANGE 2]",
)


class Taken:
    """A callback that keeps what it gets, in order."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, pl.DataFrame]] = []

    def __call__(self, frame: pl.DataFrame, batch: int) -> None:
        self.batches.append((batch, frame))

    def rows(self) -> Iterator[Row]:
        return (row for _, frame in self.batches for row in frame.rows())


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is a batch of its own."""
    monkeypatch.setattr("tidemill.runtime.local.intake._STEP_ROWS", 1)


@pytest.fixture
def session(tmp_path: Path) -> tidemill.Session:
    return session_on(tmp_path / "in", [[bid] for bid in BIDS])


def session_on(
    directory: Path,
    batches: Sequence[list[Bid]],
    *,
    technique: str = "pattern",
    partitions: int = 1,
    within: int = 0,
) -> tidemill.Session:
    """A session with a stream that comes in some batches."""
    directory.mkdir()
    schema = {"item": pl.String, "price": pl.Int64, "at": pl.Int64}
    for number, bids in enumerate(batches):
        frame = pl.DataFrame(bids, schema=schema, orient="row")
        frame.write_parquet(directory / f"{number:02d}.parquet")
    session = tidemill.connect(technique=technique, partitions=partitions)
    session.sql(f"""
        CREATE STREAM bid (item VARCHAR, price BIGINT, at BIGINT)
          SOURCE parquet('{directory}') ORDERED BY at WITHIN {within}
    """)
    return session


def query(session: tidemill.Session, text: str) -> tidemill.Query:
    registered = session.sql(text)
    assert isinstance(registered, tidemill.Query)
    return registered


def called(session: tidemill.Session, form: str, text: str = COUNTS) -> Taken:
    """What a callback will get."""
    taken = Taken()
    session.callback(form, taken)
    session.sql(f"CREATE QUERY {form} INTO callback('{form}', form => '{form}') AS {text}")
    return taken


CHANGES = [
    ("pen", 1, 1, 1),
    ("cup", 1, 2, 1),
    ("pen", 1, 3, -1),
    ("pen", 2, 3, 1),
    ("pen", 2, 5, -1),
    ("pen", 1, 5, 1),
    ("cup", 1, 6, -1),
    ("pen", 1, 7, -1),
    ("pen", 1, 9, 1),
    ("pen", 1, 13, -1),
]
UPSERTS = [
    ("pen", 1, 1, 1),
    ("cup", 1, 2, 1),
    ("pen", 2, 3, 1),
    ("pen", 1, 5, 1),
    ("cup", 1, 6, -1),
    ("pen", 1, 7, -1),
    ("pen", 1, 9, 1),
    ("pen", 1, 13, -1),
]
READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    "parquet": lambda path: pl.read_parquet(path, hive_partitioning=False),
    "csv": pl.read_csv,
    "json": pl.read_ndjson,
}


@pytest.mark.parametrize(("form", "rows"), [("changes", CHANGES), ("upserts", UPSERTS)])
def test_every_sink_gets_the_changes_in_the_order_of_time(
    session: tidemill.Session,
    form: str,
    rows: list[Row],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken = called(session, form)
    for kind in WRITERS:
        path = tmp_path / kind
        session.sql(f"CREATE QUERY {kind}_ INTO {kind}('{path}', form => '{form}') AS {COUNTS}")
    session.sql(f"CREATE QUERY shown INTO console(form => '{form}') AS {COUNTS}")
    session.run()
    assert list(taken.rows()) == rows
    for _, frame in taken.batches:
        assert frame.schema == {
            "item": pl.String,
            "n": pl.Int64,
            "time": pl.Int64,
            "sign": pl.Int32,
        }
    for kind, read in READERS.items():
        files = sorted((tmp_path / kind).glob(f"batch=*/*.{kind}"))
        frames = [read(path) for path in files]
        assert [row for frame in frames for row in frame.rows()] == rows, kind
        assert frames[0].columns == ["item", "n", "time", "sign"]
    printed = capsys.readouterr().out
    assert printed.startswith(
        "shown, batch 1\nitem  n  time  sign\n----  -  ----  ----\npen   1     1     1\n"
    )
    cells = [tuple(line.split()) for line in printed.splitlines() if line[:3] in ("pen", "cup")]
    assert cells == [tuple(map(str, row)) for row in rows]


def test_a_value_comes_when_the_watermark_has_passed_its_start_not_its_end(
    session: tidemill.Session,
) -> None:
    changes, results = called(session, "changes"), called(session, "results")
    session.run()
    # The watermark is 1, 2, 3 and 9 after the batches, and the end of time after the last.
    assert [(batch, frame.rows()) for batch, frame in changes.batches] == [
        (1, CHANGES[:1]),
        (2, CHANGES[1:2]),
        (3, CHANGES[2:8]),
        (4, CHANGES[8:]),
    ]
    assert [(batch, frame.rows()) for batch, frame in results.batches] == [
        (3, [("pen", 1, 1, 3), ("cup", 1, 2, 6), ("pen", 2, 3, 5), ("pen", 1, 5, 7)]),
        (4, [("pen", 1, 9, 13)]),
    ]


def test_a_query_that_runs_shows_values_before_it_knows_their_ends(tmp_path: Path) -> None:
    session = session_on(tmp_path / "in", [[bid] for bid in BIDS])
    counts = query(session, COUNTS)
    session.callback("stop", lambda _frame, _batch: session.stop())
    session.sql("CREATE QUERY stop INTO callback('stop') AS SELECT at FROM bid WHERE at = 3")
    session.run()
    assert counts.changes().rows() == CHANGES[:2]
    assert counts.snapshot(2).rows() == [("cup", 1), ("pen", 1)]
    assert counts.results().is_empty(), "no end is known yet"


@pytest.mark.parametrize("technique", ["pattern", "negative", "hybrid"])
def test_a_row_that_knows_its_end_is_withdrawn_when_it_ends(tmp_path: Path, technique: str) -> None:
    session = session_on(tmp_path / "in", [[bid] for bid in BIDS], technique=technique)
    taken = called(session, "upserts", "SELECT DISTINCT item FROM bid [RANGE 4]")
    session.run()
    assert [(batch, frame.rows()) for batch, frame in taken.batches] == [
        (1, [("pen", 1, 1)]),
        (2, [("cup", 2, 1)]),
        (3, [("cup", 6, -1), ("pen", 7, -1)]),
        (4, [("pen", 9, 1), ("pen", 13, -1)]),
    ]


def test_a_batch_whose_changes_come_to_nothing_calls_nobody(session: tidemill.Session) -> None:
    taken = called(session, "changes", "SELECT 1 AS one FROM bid [ROWS 1]")
    session.run()
    assert [(batch, frame.rows()) for batch, frame in taken.batches] == [(1, [(1, 1, 1)])]


@pytest.mark.parametrize("form", ["results", "changes"])
def test_files_are_read_back_as_the_answer(
    session: tidemill.Session, tmp_path: Path, form: str
) -> None:
    text = "SELECT item, SUM(price) AS total FROM bid [ROWS 2] GROUP BY item"
    kept = query(session, text)
    session.sql(f"CREATE QUERY q INTO parquet('{tmp_path / 'out'}', form => '{form}') AS {text}")
    session.run()
    answer = Answer(kept.schema)
    files = sorted((tmp_path / "out").glob("batch=*/*.parquet"))
    answer.read(
        (pl.read_parquet(file, hive_partitioning=False) for file in files),
        Form.SIGNED if form == "changes" else Form.INTERVAL,
    )
    answer.known = END_OF_TIME
    assert answer.results().equals(kept.results())
    assert answer.changes().equals(kept.changes())
    assert kept.results()["end"].max() == 2**63 - 1, "some row never ends"


def test_time_columns_get_names_that_are_free(session: tidemill.Session) -> None:
    text = 'SELECT item AS "Time", COUNT(*) AS sign, 1 AS time_ FROM bid [RANGE 4] GROUP BY item'
    taken, upserted = called(session, "changes", text), called(session, "upserts", text)
    session.run()
    assert taken.batches[0][1].columns == ["Time", "sign", "time_", "time__", "sign_"]
    assert list(taken.rows()) == [(item, n, 1, *rest) for item, n, *rest in CHANGES]
    assert list(upserted.rows()) == [(item, n, 1, *rest) for item, n, *rest in UPSERTS]


@pytest.mark.parametrize(
    ("sink", "text", "message"),
    [
        ("console(form => 'upsert')", COUNTS, 'hint: did you mean "upserts"?'),
        ("csv('out', form => 'x')", COUNTS, "must be 'results', 'changes' or 'upserts'"),
        ("csv('out', form => 5)", COUNTS, "must be 'results', 'changes' or 'upserts'"),
        ("csv('out', shape => 'x')", COUNTS, '"csv" has no option "shape"'),
        (
            "console(form => 'upserts')",
            "SELECT item FROM bid [RANGE 4]",
            'the rows of "q" have no key by which one could replace another',
        ),
        (
            "console(form => 'upserts')",
            "SELECT n FROM (SELECT item, COUNT(*) AS n FROM bid GROUP BY item)",
            "write form => 'changes', or GROUP BY what they are to be known by",
        ),
    ],
)
def test_a_form_that_cannot_be_is_found_when_a_query_is_created(
    sink: str, text: str, message: str
) -> None:
    session = tidemill.connect()
    session.sql("CREATE STREAM bid (item VARCHAR, price BIGINT) SOURCE parquet('nothing')")
    with pytest.raises(tidemill.BindError) as caught:
        session.sql(f"CREATE QUERY q INTO {sink} AS {text}")
    assert message in str(caught.value)


BATCHES = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["pen", "cup"]), st.integers(1, 3), st.integers(0, 2)), max_size=3
    ),
    min_size=1,
    max_size=4,
)


def in_order(batches: list[list[Bid]]) -> list[list[Bid]]:
    """The batches one after another in time, each up to two instants later than it says."""
    return [
        [(item, price, 2 * number + late) for item, price, late in bids]
        for number, bids in enumerate(batches)
    ]


@settings(max_examples=max(5, settings().max_examples // 5))
@given(
    batches=BATCHES.map(in_order),
    text=st.sampled_from(list(KEYED)),
    technique=st.sampled_from(("pattern", "pattern", "negative", "hybrid")),
    partitions=st.sampled_from((1, 3)),
)
def test_upserts_applied_as_they_come_have_the_answer_at_every_instant(
    batches: list[list[Bid]], text: str, technique: str, partitions: int
) -> None:
    answer, came = delivered("upserts", batches, text, technique, partitions)
    assert [row[-2] for row in came] == sorted(row[-2] for row in came), "in the order of time"
    places = [answer.schema.names.index(name) for name in KEYED[text]]
    table: dict[Row, Row] = {}
    for time in range(20):
        for *row, _, sign in (row for row in came if row[-2] == time):
            key = tuple(row[place] for place in places)
            if sign > 0:
                table[key] = tuple(row)
            else:
                assert table.pop(key) == tuple(row), "only what is there is withdrawn"
        assert Counter(table.values()) == Counter(answer.snapshot(time).rows()), time


@settings(max_examples=max(5, settings().max_examples // 5))
@given(
    batches=BATCHES.map(in_order),
    text=st.sampled_from((*KEYED, *PLAIN)),
    technique=st.sampled_from(("pattern", "negative", "hybrid", "direct")),
    partitions=st.sampled_from((1, 3)),
)
def test_changes_applied_as_they_come_have_the_answer_at_every_instant(
    batches: list[list[Bid]], text: str, technique: str, partitions: int
) -> None:
    answer, came = delivered("changes", batches, text, technique, partitions)
    if technique == "direct" and partitions > 1:
        # A partition waits for the ends of its own rows, and not for those of others.
        came.sort(key=itemgetter(-2, -1))
    assert [row[-2] for row in came] == sorted(row[-2] for row in came), "in the order of time"
    bag: Counter[Row] = Counter()
    for time in range(20):
        for *row, _, sign in (row for row in came if row[-2] == time):
            bag[tuple(row)] += sign
            assert bag[tuple(row)] >= 0, "only what is there is withdrawn"
        assert +bag == Counter(answer.snapshot(time).rows()), time


def delivered(
    form: str, batches: list[list[Bid]], text: str, technique: str, partitions: int
) -> tuple[tidemill.Query, list[Row]]:
    """A query that was run, and what a callback got of its answer."""
    with tempfile.TemporaryDirectory() as directory:
        session = session_on(
            Path(directory) / "in", batches, technique=technique, partitions=partitions, within=2
        )
        taken, answer = called(session, form, text), query(session, text)
        session.run()
    return answer, list(taken.rows())
