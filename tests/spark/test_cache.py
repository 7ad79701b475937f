"""The cache of packs: bounded, private, and never believed when it is damaged. Without Spark."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.physical.state.damaged import DamagedError
from tidemill.physical.state.packs import Place, packed, unpacked
from tidemill.runtime.spark.state.cache import Cache, cache_directory, forget_cache, is_private

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


def test_a_pack_that_was_forged_is_not_believed(tmp_path: Path) -> None:
    """A checksum can be kept while the content is changed; the digest cannot."""
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    (place,) = stored(cache, "p", [FRAMES[0]]).values()
    assert len(bytes.fromhex(place.digest)) >= 16
    other = stored(cache, "q", [FRAMES[0].with_columns(k=pl.col("k") + 1)])
    (tmp_path / "cache" / "p").write_bytes((tmp_path / "cache" / "q").read_bytes())
    found = cache.read("p")
    assert found is not None
    with pytest.raises(DamagedError):
        unpacked(found, place)
    with pytest.raises(DamagedError):
        unpacked(found, place._replace(start=-64))
    assert unpacked(found, other[0]._replace(pack="p"))["k"].to_list() == [2, 3]


def victim(tmp_path: Path) -> Path:
    place = tmp_path / "victim"
    place.mkdir()
    (place / "p").write_text("of somebody else")
    os.utime(place / "p", (1000, 1000))
    return place


def assert_untouched(place: Path) -> None:
    assert [path.name for path in place.iterdir()] == ["p"]
    assert (place / "p").read_text() == "of somebody else"
    assert (place / "p").stat().st_mtime == 1000


@pytest.mark.parametrize("planted", ["link", "open to others", "of another user", "a file"])
def test_a_directory_that_is_not_private_is_not_used(
    tmp_path: Path, planted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other, folder = victim(tmp_path), tmp_path / "folder"
    match planted:
        case "link":
            folder.symlink_to(other)
        case "a file":
            folder.write_text("in the way")
        case _:
            folder.mkdir(mode=0o700)
    if planted == "open to others":
        folder.chmod(0o750)
    if planted == "of another user":
        if os.getuid():
            pytest.skip("only root can give a directory away")
        os.chown(folder, 12345, 12345)
    for directory in (folder, folder / "digest"):
        cache = Cache(directory, limit=3)
        cache.write("p", b"12345")
        cache.write("q", b"12345")
        assert cache.read("p") is None
        cache.remove("p")
        assert "is not private" in capsys.readouterr().err
    assert_untouched(other)
    assert not folder.is_dir() or planted == "link" or not list(folder.iterdir())


def test_a_cache_is_made_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    old = os.umask(0)
    try:
        directory = cache_directory(tmp_path / "state")
        Cache(directory, limit=10).write("p", b"12345")
    finally:
        os.umask(old)
    assert directory == cache_directory(tmp_path / "state") != cache_directory(tmp_path / "other")
    for place in (directory, directory.parent):
        assert is_private(place)
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    forget_cache(directory, is_over=False)
    assert (directory / "p").exists(), "the next session finds it"
    forget_cache(directory, is_over=True)
    assert not directory.exists()


def test_a_name_that_another_user_has_taken_is_left_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    other = victim(tmp_path)
    (tmp_path / f"tidemill-{os.getuid()}").symlink_to(other)
    directory = cache_directory(tmp_path / "state")
    assert "is not private" in capsys.readouterr().err
    cache = Cache(directory, limit=100)
    cache.write("p", b"12345")
    assert cache.read("p") is not None
    forget_cache(directory, is_over=False)
    assert not directory.parent.exists(), "nobody could find it again"
    assert_untouched(other)


def test_cleaning_up_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    other, directory = victim(tmp_path), cache_directory(tmp_path / "state")
    Cache(directory, limit=10).write("a", b"12345")
    (directory / "p").symlink_to(other / "p")
    (directory / "link").symlink_to(other)
    (directory / "nested").mkdir()
    (directory / "nested" / "link").symlink_to(other)
    cache = Cache(directory, limit=3)
    assert cache.read("p") is None
    cache.write("b", b"12345")
    assert sorted(path.name for path in directory.iterdir()) == ["link", "nested", "p"]
    cache.remove("p")
    forget_cache(directory, is_over=True)
    assert not directory.exists()
    directory.symlink_to(other)
    forget_cache(directory, is_over=True)
    assert_untouched(other)
