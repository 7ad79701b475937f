"""The files of a site hold every event once, in the order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tidemill.connecting import connect
from tidemill.demo.nexmark import demo_site
from tidemill.demo.questions import QUESTIONS, script
from tidemill.demo.site import declarations, write_site

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("files", [1, 4])
def test_the_files_of_a_stream_are_the_stream(tmp_path: Path, files: int) -> None:
    site = demo_site(2_000, seed=1)
    write_site(site, tmp_path, files=files)
    for name, rows in site.streams().items():
        paths = sorted((tmp_path / name).iterdir())
        assert len(paths) == files
        assert_frame_equal(pl.concat(pl.read_parquet(path) for path in paths), rows)
        ages = [path.stat().st_mtime for path in paths]
        assert ages == sorted(ages)


def test_no_row_comes_late(tmp_path: Path) -> None:
    site = demo_site(2_000, seed=1)
    write_site(site, tmp_path, files=5)
    session = connect()
    session.sql(declarations(site, tmp_path))
    session.sql(script())
    session.run()
    assert session.refused().is_empty()
    for question in QUESTIONS:
        assert session.answer(question.name).results().height > 0, question.name
