"""What is needed of a file, or of a stream, decides on what is read and on nothing else."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from laws.parquet_cases import DECLARED, NAMES, Written, written_files
from tidemill.catalog.entries import StreamEntry
from tidemill.engine.ingest import Malformed, readable
from tidemill.errors import RunError
from tidemill.lang.statements import ObjectKind
from tidemill.model.schema import Schema
from tidemill.optimizer.planning import Planning
from tidemill.runtime.files import read_file
from tidemill.runtime.local import intake
from tidemill.runtime.local.job import Job, Settings
from tidemill.runtime.measuring import sample
from tidemill.runtime.reading import parquet_files
from tidemill.runtime.reading.shaping import fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


COLUMNS = ", ".join(f"{name} {type_}" for name, type_ in DECLARED.items())


@contextmanager
def small_pieces(rows: int) -> Iterator[None]:
    """Read at most so many rows at once."""
    with (
        mock.patch.object(parquet_files, "_AT_ONCE_ROWS", rows),
        mock.patch.object(parquet_files, "_SAMPLE_ROWS", 1),
        mock.patch.object(parquet_files, "_MOST_ROWS", rows),
    ):
        yield


@contextmanager
def small_samples() -> Iterator[None]:
    """Look at the first two rows of every other file, and at one in three of all others."""
    with (
        mock.patch.object(sample, "HEAD", 2),
        mock.patch.object(sample, "EVERY", 3),
        mock.patch.object(sample, "_FIRST_FILES", 0),
        mock.patch.object(sample, "_EVERY_FILE", 2),
    ):
        yield


def schema() -> Schema:
    session = tidemill.connect()
    session.sql(f"CREATE STREAM s ({COLUMNS}) SOURCE parquet('x') ORDERED BY at")
    stream = session.catalog.find("s")
    assert isinstance(stream, StreamEntry)
    return readable(stream)


SCHEMA = schema()


class Reading(NamedTuple):
    """A file, and what is needed of it.

    Attributes:
        file: The file.
        schema: Its columns.
        needed: Those that are needed.
        rows: How many rows are read at once.
        fails: Whether a malformed row is an error.
        whole: Whether the first piece has all columns.
    """

    file: Written
    schema: Schema
    needed: frozenset[str]
    rows: int
    fails: bool
    whole: bool


@st.composite
def readings(draw: st.DrawFn) -> Reading:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=3, unique=True))
    some = Schema(tuple(field for field in SCHEMA if field.name in names))
    return Reading(
        draw(written_files(names=tuple(names))),
        some,
        draw(st.frozensets(st.sampled_from(names), min_size=1, max_size=2)),
        draw(st.integers(1, 5)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def told(path: Path, case: Reading, *, everything: bool) -> list[object]:
    """What is read of a file: pieces, malformed rows, and the error that it ends with."""
    found: list[object] = []

    def refuse(one: Malformed) -> None:
        found.append(("malformed", one.where, one.unit, one.rows.to_dicts()))

    needed, whole = (None, False) if everything else (case.needed, case.whole)
    act = fail if case.fails else refuse
    try:
        found.extend(
            read_file(path, "parquet", case.schema, act, needed=needed, begins_whole=whole)
        )
    except RunError as error:
        found.append(f"{error} {error.hint}")
    return found


@settings(max_examples=6 * settings().max_examples)
@given(case=readings())
def test_a_file_has_the_same_rows_whatever_is_needed_of_it(case: Reading) -> None:
    with TemporaryDirectory() as folder, small_pieces(case.rows):
        path = Path(folder) / "0.parquet"
        case.file.write(path)
        all_, some = (told(path, case, everything=everything) for everything in (True, False))
    wanted = [name for name in case.schema.names if name in case.needed]
    is_whole = case.whole
    expected: list[object] = []
    for one in all_:
        match one:
            case pl.DataFrame() if not is_whole:
                expected.append(one.select(wanted))
            case pl.DataFrame():
                expected.append(one)
                is_whole = False
            case _:
                expected.append(one)
    assert list(map(written, some)) == list(map(written, expected))


def written(one: object) -> object:
    return (one.schema, one.rows()) if isinstance(one, pl.DataFrame) else one


QUERIES = (
    "SELECT k, price FROM s [RANGE 5 MICROSECONDS] WHERE price > 3",
    "SELECT COUNT(*) AS n FROM s [RANGE 5 MICROSECONDS]",
    "SELECT name, SUM(k) AS total FROM s [RANGE 4 MICROSECONDS] GROUP BY name",
    "SELECT * FROM s",
    "SELECT moment FROM s [ROWS 2]",
    "SELECT small FROM s WHERE flag",
    "SELECT 1 AS one FROM s",
    "SELECT a.k AS k, b.exact AS e FROM s [RANGE 3 MICROSECONDS] AS a, s AS b WHERE a.k = b.k",
)

POLICIES = (
    "MALFORMED DROP",
    "MALFORMED QUARANTINE",
    "MALFORMED QUARANTINE LATE QUARANTINE",
    "MALFORMED DROP LATE QUARANTINE",
    "MALFORMED DROP KEEP ALL",
    "MALFORMED QUARANTINE KEEP ALL BY REFERENCE",
)


class Case(NamedTuple):
    """Files of a stream, in two parts, and the queries that read each part."""

    files: tuple[list[Written], list[Written]]
    queries: tuple[list[str], list[str]]
    policy: str
    files_per_batch: int
    rows: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    some = st.lists(st.sampled_from(QUERIES), min_size=1, max_size=2, unique=True)
    files = st.lists(written_files(6), min_size=1, max_size=2)
    return Case(
        (draw(files), draw(files)),
        (draw(some), draw(some)),
        draw(st.sampled_from(POLICIES)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 4)),
    )


class Story:
    """Sessions over a directory that grows, and all that a user sees of them.

    Args:
        case: What comes.
        folder: Where.
        optimize: Whether plans are optimized.
    """

    def __init__(self, case: Case, folder: Path, *, optimize: bool) -> None:
        self.case, self.source, self.state = case, folder / "in", str(folder / "state")
        self.optimize, self.written = optimize, 0
        self.seen: list[object] = []
        self.read: frozenset[str] = frozenset()
        self.figures: dict[str, object] = {}
        self.source.mkdir()

    def opened(self, checkpoint: str | None = None) -> tidemill.Session:
        session = tidemill.connect(optimize=self.optimize, clock=lambda: 0, checkpoint=checkpoint)
        if session.catalog.find("s") is None:
            session.sql(
                f"CREATE STREAM s ({COLUMNS}) SOURCE parquet('{self.source}', files_per_batch =>"
                f" {self.case.files_per_batch}) ORDERED BY at WITHIN 2 MICROSECONDS"
                f" {self.case.policy}"
            )
        return session

    def write(self, part: int) -> None:
        for file in self.case.files[part]:
            file.write(self.source / f"{self.written}.parquet")
            self.written += 1

    def create(self, session: tidemill.Session, part: int) -> None:
        for number, text in enumerate(self.case.queries[part]):
            session.sql(f"CREATE QUERY q{part}{number} AS {text}")

    def tell(self, session: tidemill.Session) -> None:
        """Note what a session shows."""
        progress = session.progress()
        self.seen += [(s.name, s.rows, s.refused, s.watermark) for s in progress.streams]
        for part, queries in enumerate(self.case.queries):
            for number, _ in enumerate(queries):
                name = f"q{part}{number}"
                answer = session.answer(name) if session.catalog.find(name) else None
                self.seen.append(answer and sorted(map(repr, answer.results().rows())))
        self.seen += session.refused().rows()
        if "QUARANTINE" in self.case.policy:
            self.seen += map(repr, session.quarantine("s").rows())

    # What is done

    def once(self) -> None:
        """All is there from the beginning."""
        self.write(0)
        self.write(1)
        with self.opened() as session:
            self.create(session, 0)
            self.create(session, 1)
            session.run()
            self.tell(session)

    def in_two_sessions(self) -> None:
        """A second session goes on with more queries."""
        for part in (0, 1):
            self.write(part)
            with self.opened(self.state) as session:
                self.create(session, part)
                session.run()
                self.tell(session)

    def in_between(self) -> None:
        """Queries begin in the middle of a file, some steps after others."""
        self.write(0)
        self.write(1)
        with self.opened() as session:
            self.create(session, 0)
            settings_ = Settings(planning=Planning(optimized=self.optimize), clock=lambda: 0)
            job = Job(session.catalog, {}, settings_)
            pipeline = job._new_pipeline()  # noqa: SLF001 — steps are taken one by one
            self.read = pipeline.program.needed.get("s", frozenset(NAMES))
            job._pipeline = pipeline  # noqa: SLF001
            with mock.patch.object(intake, "_STEP_ROWS", 1):
                for step in range(_STEPS):
                    if step == self.case.rows:
                        self.create(session, 1)
                        job._change_pipeline(pipeline, session.catalog)  # noqa: SLF001
                    pipeline.step()
                    assert self.read <= pipeline.program.needed.get("s", frozenset(NAMES))
                    self.seen.append(pipeline.gates["s"].reached())
            for gate in pipeline.gates.values():
                self.seen += [gate.refused.counts, list(map(repr, gate.refused.kept().rows()))]
            for query in session.catalog.entries(ObjectKind.QUERY):
                answer = job.answer(query.name)
                assert answer is not None
                self.seen.append(sorted(map(repr, answer.changes().rows())))
            self.note_figures(job)

    def note_figures(self, job: Job) -> None:
        """Note what was found out of each column, and of all rows."""
        known = job.measured().observed("s")
        self.seen += [known.rows, known.first, known.latest, known.granule, known.distance]
        self.figures = {name: (known.null_share(name), known.distinct(name)) for name in NAMES}


_STEPS = 40


def same_with_and_without(case: Case, act: Callable[[Story], None]) -> None:
    stories: list[Story] = []
    with TemporaryDirectory() as folder, small_pieces(case.rows), small_samples():
        seen: list[list[str]] = []
        for optimize in (True, False):
            place = Path(folder) / str(optimize)
            place.mkdir()
            story = Story(case, place, optimize=optimize)
            try:
                act(story)
            except RunError as error:
                story.seen.append(error)
            seen.append([repr(one).replace(str(place), "") for one in story.seen])
            stories.append(story)
        assert seen[0] == seen[1]
        narrow, whole = stories
        for name in narrow.read & narrow.figures.keys():
            assert narrow.figures[name] == whole.figures[name]


@settings(max_examples=settings().max_examples // 2)
@given(case=cases())
def test_a_session_shows_the_same_whatever_is_read(case: Case) -> None:
    same_with_and_without(case, Story.once)


@settings(max_examples=settings().max_examples // 8)
@given(case=cases())
def test_a_later_session_goes_on_whatever_was_read(case: Case) -> None:
    same_with_and_without(case, Story.in_two_sessions)


@settings(max_examples=settings().max_examples // 2)
@given(case=cases())
def test_a_query_that_begins_in_a_file_gets_its_columns(case: Case) -> None:
    same_with_and_without(case, Story.in_between)
