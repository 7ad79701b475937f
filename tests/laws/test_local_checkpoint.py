"""Wherever a session with a checkpoint stops or crashes, the next one makes the answer whole.

Drawn are the queries, how rows are cut into files, pieces and steps, how many partitions there are,
which files each session finds, and after which stage of which of its steps it crashes, if it does.
Files have every row once; a function gets a batch again with the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from running.kept import CrashError, Taken, connected, crashing, in_small_steps
from running.shop import DIFFERENT, LAST, NAMED, PAIRS, TOTAL, define, expected, write
from tidemill.runtime.local.stepping import STAGES

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

ROWS = 40
TEXTS = (
    TOTAL,
    PAIRS,
    NAMED,
    LAST,
    DIFFERENT,
    TOTAL.replace("RANGE 30", "RANGE 9 SLIDE 3"),
    "ISTREAM(SELECT k, v FROM s [RANGE 6] WHERE v > 2)",
    "SELECT name FROM r",
)


@dataclass(frozen=True)
class Session:
    """A session: how many files it finds more, and after which stage of which step it crashes."""

    files: int
    crash: tuple[int, int] | None
    is_running: bool


@dataclass(frozen=True)
class Life:
    """What happens to a checkpoint."""

    texts: tuple[str, ...]
    cuts: tuple[int, ...]
    sessions: tuple[Session, ...]
    partitions: int
    step_rows: int
    piece_rows: int


@st.composite
def lives(draw: DrawFn) -> Life:
    cuts = sorted(draw(st.sets(st.integers(1, ROWS - 1), max_size=5)))
    crashes = st.tuples(st.integers(0, 3), st.integers(0, len(STAGES) - 1))
    sessions = st.builds(Session, st.integers(0, 2), st.none() | crashes, st.booleans())
    return Life(
        tuple(draw(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3))),
        (0, *cuts, ROWS),
        tuple(draw(st.lists(sessions, min_size=2, max_size=5))),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1, 5, 100])),
        draw(st.sampled_from([1, 4, 100])),
    )


@settings(max_examples=max(settings().max_examples // 2, 5), deadline=None)
@given(life=lives())
def test_the_answer_is_that_of_an_undisturbed_run(life: Life) -> None:
    with TemporaryDirectory() as folder, in_small_steps(life.step_rows, life.piece_rows):
        root, taken = Path(folder), Taken()
        files = list(zip(life.cuts, life.cuts[1:], strict=False))
        (root / "in").mkdir()
        for session in life.sessions:
            for first, past in files[: session.files]:
                write(root / "in", first, past)
            files = files[session.files :]
            pass_by(root, life, session, taken)
        for first, past in files:
            write(root / "in", first, past)
        with connected(root, life.texts, taken) as last:
            last.run(end=True)
            found = [last.answer(f"q{number}").changes() for number in range(len(life.texts))]
        for number, text in enumerate(life.texts):
            assert found[number].equals(expected(root / "in", text)), text
        whole = results(root / "in", life.texts[0])
        assert sorted(taken.rows().rows() if taken.batches else []) == sorted(whole)


def pass_by(root: Path, life: Life, session: Session, taken: Taken) -> None:
    """A session that comes, goes on with what is there, and stops, or crashes."""
    made = connected(root, life.texts, taken, partitions=life.partitions)
    try:
        with crashing(*session.crash) if session.crash else crashing(10**6, 0), made:
            if session.is_running:
                made.start()
                made.await_idle()
            else:
                made.run()
    except CrashError:
        pass


def results(source: Path, text: str) -> list[tuple[object, ...]]:
    """What a bounded run gives a function."""
    taken = Taken()
    with tidemill.connect() as session:
        define(session, source)
        session.callback("taken", taken)
        session.sql(f"CREATE QUERY q INTO callback('taken') AS {text}")
        session.run()
    return taken.rows().rows() if taken.batches else []
