"""The quarantine counts a batch once and keeps its rows, whatever happens. No Spark is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.errors import RunError
from tidemill.runtime import quarantine
from tidemill.runtime.durable import write_durably
from tidemill.runtime.quarantine import Quarantine

if TYPE_CHECKING:
    from pathlib import Path


def frame(*values: int) -> pl.DataFrame:
    return pl.DataFrame({"k": values, "@reason": ["late"] * len(values)})


def kept(found: Quarantine, stream: str = "s") -> list[int]:
    return [row[0] for part in found.rows(stream) for row in part.rows()]


@given(data=st.data(), rows=st.lists(st.integers(0, 3), max_size=6))
def test_a_batch_counts_once_whatever_happens(
    data: st.DataObject, rows: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A batch may be delivered again, by this process or the next, or fail between its writes."""
    place = tmp_path_factory.mktemp("q")
    found, expected = Quarantine(place), list[int]()
    for batch, count in enumerate(rows):
        values = [batch * 10 + i for i in range(count)]
        expected += values
        for _ in range(data.draw(st.integers(0, 2))):  # tries that fail before the counts are there
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(quarantine, "write_durably", failing_at_counts)
                if count:
                    with pytest.raises(RunError, match="cannot be kept"):
                        found.take("s", batch, {"late": count}, [frame(*values)])
            assert kept(found) == expected[: len(expected) - count]
        for _ in range(data.draw(st.integers(1, 2))):
            found.take("s", batch, {"late": count}, [frame(*values)])
            if data.draw(st.booleans()):
                found = Quarantine(place)
        assert kept(found) == expected
        assert found.counts("s") == ({"late": len(expected)} if expected else {})


def failing_at_counts(path: Path, content: bytes) -> None:
    if path.name == "counts.json":
        raise OSError("no space left on device")
    write_durably(path, content)


def test_it_is_bounded_and_says_how_many_rows_went(tmp_path: Path) -> None:
    found = Quarantine(tmp_path, limit=200_000)
    for batch in range(20):
        found.take("s", batch, {"late": 2}, [frame(batch, batch)])
    rows = kept(found)
    assert 0 < len(rows) < 40
    assert rows[-1] == 19, "the latest stay"
    assert len(rows) + found.removed("s") == 40 == found.counts("s")["late"]
    assert Quarantine(tmp_path).removed("s") == found.removed("s")


def test_streams_are_apart_and_their_names_are_no_paths(tmp_path: Path) -> None:
    found = Quarantine(tmp_path / "q")
    found.take("../../evil", 0, {"late": 1}, [frame(1)])
    found.take("other", 0, {"time is NULL": 1}, [frame(2)])
    assert (kept(found, "../../evil"), kept(found, "other")) == ([1], [2])
    assert [path.name for path in tmp_path.iterdir()] == ["q"]
    assert found.rows("nobody") == []


@pytest.mark.parametrize("text", ["", "7", "{", '{"batch": 1}', "\xff\xfe"])
def test_damaged_counts_are_an_error(tmp_path: Path, text: str) -> None:
    found = Quarantine(tmp_path)
    found.take("s", 0, {"late": 1}, [frame(1)])
    (tmp_path / "s" / "counts.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(RunError, match=r'refused rows of "s" in ".*" are damaged'):
        Quarantine(tmp_path).counts("s")
