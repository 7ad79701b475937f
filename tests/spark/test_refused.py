"""A start that is refused touches nothing: neither the checkpoint nor the files of any sink."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import polars as pl
import pytest

import tidemill
from spark.on_spark import MASTER
from tidemill.optimizer import planner
from tidemill.optimizer.phases import PHASES
from tidemill.runtime.statement_log import STATEMENTS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

pytestmark = pytest.mark.spark

COUNT = "SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k"
NAMED = "SELECT name, COUNT(*) AS n FROM s [RANGE 3], r WHERE id = k GROUP BY name"
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})
NAMES = pl.DataFrame({"id": [1, 2], "name": ["one", "two"]})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pipeline reads, keeps and writes."""

    root: Path

    def give(self, number: int) -> None:
        times = range(number * 10, number * 10 + 10)
        rows = pl.DataFrame({"k": [t % 7 for t in times], "at": list(times)})
        rows.write_parquet(self.root / "in" / f".{number}")
        (self.root / "in" / f".{number}").rename(self.root / "in" / f"{number}.parquet")

    def session(
        self,
        state: str = "state",
        source: str = "in",
        names: str = "r.csv",
        settings: Mapping[str, Any] = NO_SETTINGS,
        *,
        is_new: bool = False,
    ) -> tidemill.Session:
        """A session on the checkpoint, which a version without a log has made, unless it is new."""
        if not is_new:
            (self.root / state / STATEMENTS_FILE).unlink(missing_ok=True)
        session = tidemill.connect(
            engine="spark", master=MASTER, partitions=2, checkpoint=self.root / state, **settings
        )
        self.declare(session, source, names)
        return session

    def declare(self, session: tidemill.Session, source: str = "in", names: str = "r.csv") -> None:
        session.sql(
            f"CREATE STREAM s (k BIGINT, at BIGINT) SOURCE parquet('{self.root / source}')"
            " ORDERED BY at;"
            f"CREATE RELATION r (id BIGINT, name VARCHAR) SOURCE csv('{self.root / names}')"
        )

    def create(
        self, session: tidemill.Session, name: str, text: str, more: str = ""
    ) -> tidemill.Query:
        into = f"INTO parquet('{self.root / 'out' / name}'{more})"
        found = session.sql(f"CREATE QUERY {name} {into} AS {text}")
        assert isinstance(found, tidemill.Query)
        return found

    def queries(self, session: tidemill.Session, *names: str) -> None:
        for name in names or ("counted", "named", "late"):
            self.create(session, name, NAMED if name == "named" else COUNT)

    def files(self) -> dict[str, bytes]:
        """Everything that is there; only who used the checkpoint last may change."""
        found = (path for path in self.root.rglob("*") if path.is_file() and path.name != "lock")
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}

    def refused(self, session: tidemill.Session, message: str) -> None:
        before = self.files()
        for begin in (session.start, session.run):
            with pytest.raises(tidemill.RunError, match=message):
                begin()
        assert self.files() == before

    def expected(self, text: str) -> pl.DataFrame:
        with tidemill.connect() as session:
            self.declare(session)
            found = session.sql(text)
            session.run()
            assert isinstance(found, tidemill.Query)
            return found.results()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A pipeline that was stopped, with a query that was created while it ran.

    While it ran, nobody else could have its checkpoint or its sinks.
    """
    place = Place(tmp_path_factory.mktemp("pipeline"))
    (place.root / "in").mkdir()
    place.give(0)
    NAMES.write_csv(place.root / "r.csv")
    with place.session() as session:
        place.queries(session, "counted", "named")
        session.start()
        session.await_idle()
        with pytest.raises(tidemill.RunError, match="is in use by process"):
            place.session(is_new=True)
        with tidemill.connect() as other:
            other.put("rows", pl.DataFrame({"x": [1]}))
            other.sql("CREATE STREAM s (x BIGINT) SOURCE memory('rows')")
            place.create(other, "counted", "SELECT x FROM s")
            with pytest.raises(tidemill.RunError, match='holds the answer of query "counted"'):
                other.run()
        NAMES[:1].write_csv(place.root / "r.csv")  # it has been read, and is not read again
        place.create(session, "late", COUNT)
        with pytest.raises(tidemill.RunError, match="has other rows"):
            place.create(session, "later", NAMED)
        NAMES.write_csv(place.root / "r.csv")
        place.give(1)
        session.await_idle()
    return place


def changed_text(place: Place) -> tidemill.Session:
    session = place.session()
    place.queries(session, "named", "late")
    place.create(session, "counted", COUNT.replace("100", "50"))
    return session


def other_form(place: Place) -> tidemill.Session:
    session = place.session()
    place.queries(session, "named", "late")
    place.create(session, "counted", COUNT, ", form => 'changes'")
    return session


def replaced(place: Place) -> tidemill.Session:
    """The request to empty a directory does not reach a query that goes on."""
    session = place.session()
    place.queries(session, "named", "late")
    place.create(session, "counted", COUNT.replace("100", "50"), ", replace => true")
    return session


def left_out(place: Place) -> tidemill.Session:
    """The same program again, which creates a query after ``start()``."""
    session = place.session()
    place.queries(session, "counted", "named")
    return session


def other_stream(place: Place) -> tidemill.Session:
    (place.root / "other").mkdir(exist_ok=True)
    session = place.session(source="other")
    place.queries(session)
    return session


def other_relation(place: Place) -> tidemill.Session:
    NAMES[::-1].write_csv(place.root / "other.csv")
    session = place.session(names="other.csv")
    place.queries(session)
    return session


def foreign_sink(place: Place) -> tidemill.Session:
    (place.root / "out" / "new" / "batch=00000000").mkdir(parents=True, exist_ok=True)
    (place.root / "out" / "new" / "batch=00000000" / "part-00000.parquet").write_text("mine")
    session = place.session()
    place.queries(session)
    place.create(session, "new", COUNT, ", replace => true")
    return session


def new_before_other_stream(place: Place) -> tidemill.Session:
    """One query is refused for its stream, after others that would begin."""
    session = other_stream(place)
    place.create(session, "a_new_one", NAMED)
    return session


def copied(place: Place) -> tidemill.Session:
    shutil.copytree(place.root / "state", place.root / "copy", dirs_exist_ok=True)
    session = place.session(state="copy")
    place.queries(session)
    return session


@pytest.mark.parametrize(
    ("asking", "message"),
    [
        (changed_text, 'query "counted" is not the one that this checkpoint runs'),
        (other_form, 'query "counted" is not the one that this checkpoint runs'),
        (replaced, 'query "counted" is not the one that this checkpoint runs'),
        (left_out, 'runs query "late", which this session does not create'),
        (other_stream, 'stream "s" is not the one'),
        (new_before_other_stream, 'stream "s" is not the one'),
        (other_relation, 'relation "r" is not the one'),
        (foreign_sink, "holds files of others"),
        (copied, "was made at"),
    ],
)
def test_a_start_that_is_refused_touches_nothing(
    place: Place, asking: Callable[[Place], tidemill.Session], message: str
) -> None:
    place.refused(asking(place), message)


def test_a_changed_statement_is_refused_with_a_way_on(place: Place) -> None:
    session, before = changed_text(place), place.files()
    with pytest.raises(tidemill.RunError) as caught:
        session.start()
    assert str(caught.value) == (
        'query "counted" is not the one that this checkpoint runs: that one asks '
        "SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k\n"
        "hint: create it as it was and change it while it runs, with ALTER QUERY counted AS …; "
        "or give this one another name, or write DROP QUERY counted and create it again"
    )
    assert place.files() == before


def test_a_plan_that_is_damaged_or_gone_is_refused(place: Place) -> None:
    for path in sorted((place.root / "state" / "plans").iterdir()):
        content = path.read_bytes()
        for damage in (b"{", content.replace(b'"size": 100', b'"size": 101'), None):
            path.unlink() if damage is None else path.write_bytes(damage)
            if damage != content:
                session = place.session()
                place.queries(session)
                place.refused(session, 'plan of query "[a-z]+" in the checkpoint')
        path.write_bytes(content)


def test_a_query_goes_on_with_the_plan_it_had(place: Place) -> None:
    """Another version of the planner, which plans otherwise, finds the state and goes on."""
    others = tuple(phase for phase in PHASES if phase.__name__ != "_push_exchanges")
    with patch.object(planner, "PHASES", others), place.session() as session:
        place.queries(session)
        statement = session.sql(f"EXPLAIN PHYSICAL {COUNT}")
        session.start()
        place.give(2)
        session.await_idle()
        assert "resume" in str(session.sql("EXPLAIN TRACE counted"))
        running = session.sql("EXPLAIN PHYSICAL counted")
        assert running != statement
        answer = session.planned("counted")
        counted = session.answer("counted").results()
    known = pl.col("end") <= counted["end"].max()
    assert counted.height > 20
    assert counted.equals(place.expected(COUNT).filter(known))
    assert answer.version in {path.stem for path in (place.root / "state" / "plans").iterdir()}


def test_rows_of_a_relation_that_have_changed_are_refused(place: Place) -> None:
    NAMES[:1].write_csv(place.root / "r.csv")
    session = place.session()
    place.queries(session)
    place.refused(session, 'relation "r" has other rows')
    NAMES.write_csv(place.root / "r.csv")


def test_a_sink_that_is_gone_is_refused(place: Place) -> None:
    (place.root / "out" / "late").rename(place.root / "away")
    session = place.session()
    place.queries(session)
    place.refused(session, 'the sink of "late", is gone')
    (place.root / "away").rename(place.root / "out" / "late")


def test_a_sink_that_vanishes_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "in").mkdir()
    place.give(0)
    NAMES.write_csv(tmp_path / "r.csv")
    with place.session() as session:
        place.queries(session, "counted", "late")
        session.start()
        session.await_idle()
        (tmp_path / "out" / "counted").rename(tmp_path / "away")
        place.give(1)
        with pytest.raises(tidemill.RunError, match='the sink of "counted", is gone'):
            session.await_idle()
    assert not (tmp_path / "out" / "counted").exists()
    (tmp_path / "away").rename(tmp_path / "out" / "counted")
    (tmp_path / "r.csv").unlink()  # nobody reads it
    with place.session() as session:
        counted = place.create(session, "counted", COUNT)
        # A query that is dropped leaves its files; one that takes its place says what is to go.
        session.sql("DROP QUERY late")
        place.create(session, "late", "SELECT k FROM s")
        left = place.files()
        with pytest.raises(tidemill.RunError, match='holds the answer of an earlier query "late"'):
            session.start()
        assert place.files() == left
        session.sql("DROP QUERY late")
        late = place.create(session, "late", "SELECT k FROM s", ", replace => true")
        place.give(2)
        session.run(end=True)
        assert counted.results().equals(place.expected(COUNT))
        assert late.results().columns == ["k", "start", "end"]
        assert late.results()["start"].min() == 10, "batch 1 was not delivered, and is again"
