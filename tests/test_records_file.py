"""What has become of queries is read as it was written, and damage is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tidemill.catalog.records import Instance, Part, Took
from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.runtime.records_file import RECORDS_FILE, StoredRecord, read_records, write_records

if TYPE_CHECKING:
    from pathlib import Path

TOOK = Took("PARALLEL TRACK", 1.5, "over first", ("GENMIG: both plans run for 9us",))
MIGRATED = Instance(2, 1, Time(4), later=(("u", Time(9)),), took=TOOK)
RECORD = StoredRecord(
    ("CREATE QUERY q AS SELECT 1 AS x FROM s",),
    (Instance(1, 1), MIGRATED),
    (Part(1, until=Time(20)), Part(2, Time(20))),
    None,
    frozenset({1}),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_records(tmp_path, {"q": RECORD})
    assert read_records(tmp_path) == {"q": RECORD}
    written = json.loads((tmp_path / RECORDS_FILE).read_text(encoding="utf-8"))
    first = written["queries"]["q"]["instances"][0]
    assert not {"took", "later"} & first.keys(), "older versions can read what they know"


@pytest.mark.parametrize("took", ["GENMIG", {"using": "GENMIG"}, {"using": 1, "work": "much"}])
def test_damage_is_told(tmp_path: Path, took: object) -> None:
    write_records(tmp_path, {"q": RECORD})
    path = tmp_path / RECORDS_FILE
    written = json.loads(path.read_text(encoding="utf-8"))
    written["queries"]["q"]["instances"][1]["took"] = took
    path.write_text(json.dumps(written), encoding="utf-8")
    with pytest.raises(RunError, match=r"damaged: .* does not say how a plan took over"):
        read_records(tmp_path)
