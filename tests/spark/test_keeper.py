"""The state of a partition that cannot be read is an error with a way on. Without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

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
