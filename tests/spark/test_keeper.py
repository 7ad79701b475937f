"""The state of a partition that cannot be read is an error with a way on. Without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow as pa
import pytest

from laws.pipeline import Shelf
from spark.test_stage import came, deployed
from tidemill.errors import RunError
from tidemill.runtime.spark.cache import Cache
from tidemill.runtime.spark.keeper import FORMAT, open_stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidemill.runtime.spark.deployment import Deployment
    from tidemill.runtime.spark.packs import Place


@pytest.fixture
def deployment() -> Deployment:
    return deployed("", "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k")


@pytest.fixture
def shelf(deployment: Deployment, tmp_path: Path) -> Shelf:
    shelf = Shelf()
    kept = open_stage(deployment, 1, 2, shelf, Cache(tmp_path / "cache", limit=1 << 20))
    list(kept.stage.step(came(deployment, "s", [(1, 1), (2, 2)], batch=0, now=0)))
    kept.save(shelf, Cache(tmp_path / "cache", limit=1 << 20), "t0")
    assert shelf.segments, "there is something to remember"
    return shelf


def test_the_truth_is_used_when_the_cache_is_forged(
    deployment: Deployment, shelf: Shelf, tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    wanted = rows(deployment, shelf, cache)
    for pack, blob in shelf.segments.items():
        (tmp_path / "cache" / pack).write_bytes(bytes(len(blob)))
    assert rows(deployment, shelf, cache) == wanted
    for pack, blob in shelf.segments.items():
        assert (tmp_path / "cache" / pack).read_bytes() == blob, "and the cache is right again"


def test_a_pack_with_another_value_and_the_checksum_of_the_true_one_is_not_used(
    deployment: Deployment, shelf: Shelf, tmp_path: Path
) -> None:
    """Four bytes that nobody reads make the checksum of any content what one likes."""
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    wanted = rows(deployment, shelf, cache)
    place = next(place for place, values in wanted.items() if len(values) > 1)
    blob = shelf.segments[place[0]]
    whole = slice(place[1], place[1] + place[2])
    forged = with_another_value(blob[whole])
    assert crc32(forged) == crc32(blob[whole])
    assert read(forged) != read(blob[whole])
    assert len(forged) == place[2]
    path = tmp_path / "cache" / place[0]
    path.write_bytes(blob[: whole.start] + forged + blob[whole.stop :])
    assert rows(deployment, shelf, cache) == wanted
    assert path.read_bytes() == blob, "and the cache is right again"


def with_another_value(segment: bytes) -> bytes:
    """A segment with another number in it, and the same checksum."""
    value, other = (1).to_bytes(8, "little"), (77).to_bytes(8, "little")
    true = read(segment)
    for number in (n for n in range(0, len(segment), 8) if segment[n : n + 8] == value):
        changed = segment[:number] + other + segment[number + 8 :]
        if not (lies := read(changed)) or lies == true:
            continue
        for unused in (n for n in range(0, len(segment), 4) if not any(segment[n : n + 4])):
            forged = with_checksum(changed, unused, crc32(segment))
            if forged != changed and read(forged) == lies:
                return forged
    raise AssertionError("there is no value, or no room for four bytes")


def with_checksum(content: bytes, place: int, checksum: int) -> bytes:
    """The content with the four bytes at a place that give it a checksum.

    A bit that is changed changes the same bits of the checksum, whatever the content is. So the
    bits that are wrong are a sum of what 32 bits change, and the sum is found by elimination.
    """
    zero = crc32(bytes(len(content)))
    effects: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        alone = bytearray(len(content))
        alone[place + bit // 8] = 1 << bit % 8
        effect, bits = crc32(alone) ^ zero, 1 << bit
        while effect and effect.bit_length() in effects:
            known, of = effects[effect.bit_length()]
            effect, bits = effect ^ known, bits ^ of
        if effect:
            effects[effect.bit_length()] = effect, bits
    wrong, found = crc32(content) ^ checksum, 0
    while wrong:
        effect, bits = effects[wrong.bit_length()]
        wrong, found = wrong ^ effect, found ^ bits
    old = int.from_bytes(content[place : place + 4], "little")
    return content[:place] + (old ^ found).to_bytes(4, "little") + content[place + 4 :]


def read(segment: bytes) -> list[object]:
    """The rows of a segment; none if it is no segment."""
    try:
        return pa.ipc.open_stream(segment).read_all().to_pylist()  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError):
        return []


def rows(deployment: Deployment, shelf: Shelf, cache: Cache) -> dict[Place, list[object]]:
    frames = open_stage(deployment, 1, 2, shelf, cache).frames()
    return {place: list(frame.rows()) for place, frame in frames.items()}


def changed(shelf: Shelf, change: Callable[[dict[str, object]], object]) -> None:
    assert shelf.text is not None
    manifest = json.loads(shelf.text)
    change(manifest)
    shelf.text = json.dumps(manifest)


DAMAGE: dict[str, Callable[[Shelf], object]] = {
    "no pack": lambda shelf: shelf.segments.clear(),
    "another pack": lambda shelf: shelf.segments.update(
        {pack: bytes(len(blob)) for pack, blob in shelf.segments.items()}
    ),
    "a short pack": lambda shelf: shelf.segments.update(dict.fromkeys(shelf.segments, b"")),
    "no JSON": lambda shelf: setattr(shelf, "text", "{"),
    "no manifest": lambda shelf: setattr(shelf, "text", "[7]"),
    "no operators": lambda shelf: changed(shelf, lambda m: m.pop("operators")),
    "no format": lambda shelf: changed(shelf, lambda m: m.pop("format")),
    "other progress": lambda shelf: changed(shelf, lambda m: m.update(progress={"x": 1})),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_state_that_cannot_be_read_is_named(
    deployment: Deployment, shelf: Shelf, tmp_path: Path, kind: str
) -> None:
    DAMAGE[kind](shelf)
    cache = Cache(tmp_path / "another", limit=1 << 20)
    with pytest.raises(RunError, match=r"partition 2 of stage 1 .* is damaged") as caught:
        open_stage(deployment, 1, 2, shelf, cache)
    assert caught.value.hint is not None


def test_state_of_another_version_is_refused(
    deployment: Deployment, shelf: Shelf, tmp_path: Path
) -> None:
    changed(shelf, lambda m: m.update(format=FORMAT - 1))
    with pytest.raises(RunError, match=f"has format {FORMAT - 1}, and this version reads {FORMAT}"):
        open_stage(deployment, 1, 2, shelf, Cache(tmp_path / "cache", limit=1 << 20))
