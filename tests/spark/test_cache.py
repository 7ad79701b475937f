"""The cache of packs: bounded, and never believed when it is damaged. No Spark is needed."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.runtime.spark.cache import Cache
from tidemill.runtime.spark.packs import DamagedError, Place, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

FRAMES = (
    pl.DataFrame({"k": [1, 2], "wide": pl.Series([2**80, None], dtype=pl.Int128)}),
    pl.DataFrame({"k": [1, None], "s": ["a", "a text that is longer than twelve bytes"]}),
    pl.DataFrame({"d": [0.5, float("nan"), None]}),
    pl.DataFrame(schema={"k": pl.Int64, "t": pl.Datetime("us"), "m": pl.Decimal(9, 2)}),
    pl.DataFrame({"large": pl.int_range(100_000, eager=True)}),
)


def stored(cache: Cache, name: str, frames: Sequence[pl.DataFrame]) -> dict[int, Place]:
    places: dict[int, Place] = {}
    for pack, blob, found in packed(name, frames):
        cache.write(pack, blob)
        places |= dict(found)
    return places


@given(chosen=st.lists(st.sampled_from(range(len(FRAMES))), max_size=8))
def test_segments_are_read_as_they_were_written(chosen: list[int]) -> None:
    frames = [FRAMES[number] for number in chosen]
    with TemporaryDirectory() as folder:
        cache = Cache(Path(folder) / "cache", limit=1 << 30)
        places = stored(cache, "p", frames)
        assert sorted(places) == list(range(len(frames)))
        small = {place.pack for n, place in places.items() if chosen[n] != len(FRAMES) - 1}
        assert len(small) <= 1, "they are in one pack"
        for number, place in places.items():
            found = cache.read(place.pack)
            assert found is not None
            assert unpacked(found, place).equals(frames[number])
            cache.remove(place.pack)
            assert cache.read(place.pack) is None
            cache.write(place.pack, found.to_pybytes())


@pytest.mark.parametrize("frame", FRAMES[:3])
@pytest.mark.parametrize("part", [0, 0.5, 0.9])
def test_a_damaged_pack_is_not_believed(tmp_path: Path, frame: pl.DataFrame, part: float) -> None:
    cache = Cache(tmp_path, limit=1 << 20)
    (place,) = stored(cache, "p", [frame]).values()
    whole = (tmp_path / "p").read_bytes()
    cut = int(part * place.length)
    flipped = bytes([*whole[:cut], whole[cut] ^ 4, *whole[cut + 1 :]])
    for damaged in (whole[:cut], whole[:cut] + b"\0" * (len(whole) - cut), flipped):
        (tmp_path / "p").write_bytes(damaged)
        found = cache.read("p")
        if found is None:
            assert not damaged, "only an empty file is no file"
        else:
            with pytest.raises(DamagedError):
                unpacked(found, place)
    with pytest.raises(DamagedError):
        unpacked(pa.py_buffer(whole), place._replace(start=place.length))


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    for name in "ab":
        Cache(tmp_path, limit=1 << 20).write(name, b"12345")
    os.utime(tmp_path / "a", (1000, 1000))
    Cache(tmp_path, limit=10).write("c", b"12345")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]
