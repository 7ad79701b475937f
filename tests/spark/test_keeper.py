"""The state of a partition that cannot be read is an error with a way on. Without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spark.test_stage import came, deployed
from stores import StateStore
from tidemill.errors import RunError
from tidemill.physical.state.at_rest import FORMAT
from tidemill.runtime.spark.state.cache import Cache
from tidemill.runtime.spark.state.keeper import open_stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidemill.physical.state.packs import Place
    from tidemill.runtime.spark.worker.deployment import Deployment


@pytest.fixture
def deployment() -> Deployment:
    return deployed("", "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k")


@pytest.fixture
def store(deployment: Deployment, tmp_path: Path) -> StateStore:
    store = StateStore()
    kept = open_stage(deployment, 1, 2, store, Cache(tmp_path / "cache", limit=1 << 20))
    list(kept.stage.step(came(deployment, "s", [(1, 1), (2, 2)], batch=0, now=0)))
    kept.save(store, Cache(tmp_path / "cache", limit=1 << 20), "t0")
    assert store.segments, "there is something to remember"
    return store


def test_the_truth_is_used_when_the_cache_is_forged(
    deployment: Deployment, store: StateStore, tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    wanted = rows(deployment, store, cache)
    for pack, blob in store.segments.items():
        (tmp_path / "cache" / pack).write_bytes(bytes(len(blob)))
    assert rows(deployment, store, cache) == wanted
    for pack, blob in store.segments.items():
        assert (tmp_path / "cache" / pack).read_bytes() == blob, "and the cache is right again"


def rows(deployment: Deployment, store: StateStore, cache: Cache) -> dict[Place, list[object]]:
    frames = open_stage(deployment, 1, 2, store, cache).frames()
    return {place: list(frame.rows()) for place, frame in frames.items()}


def changed(store: StateStore, change: Callable[[dict[str, object]], object]) -> None:
    assert store.text is not None
    manifest = json.loads(store.text)
    change(manifest)
    store.text = json.dumps(manifest)


DAMAGE: dict[str, Callable[[StateStore], object]] = {
    "no pack": lambda store: store.segments.clear(),
    "another pack": lambda store: store.segments.update(
        {pack: bytes(len(blob)) for pack, blob in store.segments.items()}
    ),
    "a short pack": lambda store: store.segments.update(dict.fromkeys(store.segments, b"")),
    "no JSON": lambda store: setattr(store, "text", "{"),
    "no manifest": lambda store: setattr(store, "text", "[7]"),
    "no operators": lambda store: changed(store, lambda m: m.pop("operators")),
    "no format": lambda store: changed(store, lambda m: m.pop("format")),
    "other progress": lambda store: changed(store, lambda m: m.update(progress={"x": 1})),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_state_that_cannot_be_read_is_named(
    deployment: Deployment, store: StateStore, tmp_path: Path, kind: str
) -> None:
    DAMAGE[kind](store)
    cache = Cache(tmp_path / "another", limit=1 << 20)
    with pytest.raises(RunError, match=r"partition 2 of stage 1 .* is damaged") as caught:
        open_stage(deployment, 1, 2, store, cache)
    assert caught.value.hint is not None


def test_state_of_another_version_is_refused(
    deployment: Deployment, store: StateStore, tmp_path: Path
) -> None:
    changed(store, lambda m: m.update(format=FORMAT - 1))
    with pytest.raises(RunError, match=f"has format {FORMAT - 1}, and this version reads {FORMAT}"):
        open_stage(deployment, 1, 2, store, Cache(tmp_path / "cache", limit=1 << 20))
