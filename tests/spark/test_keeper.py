"""The state of a partition that cannot be read is an error with a way on. Without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from unittest.mock import patch
from zlib import crc32

import polars as pl
import pyarrow as pa
import pytest

from spark.test_stage import answers, came, deployed
from stores import StateStore
from tidemill.algebra.codec.records import Record
from tidemill.algebra.codec.values import PLAIN
from tidemill.errors import RunError
from tidemill.physical import signed
from tidemill.physical.codec import operators
from tidemill.physical.codec.operators import OPERATORS
from tidemill.physical.codec.plans import read_plans, write_plans
from tidemill.physical.fragments import build_graph
from tidemill.physical.state.at_rest import FORMAT
from tidemill.physical.state.packs import packed
from tidemill.runtime.spark.driver.control import Word, said
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


def test_a_pack_with_another_value_and_the_checksum_of_the_true_one_is_not_used(
    deployment: Deployment, store: StateStore, tmp_path: Path
) -> None:
    """Four bytes that nobody reads make the checksum of any content what one likes."""
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    wanted = rows(deployment, store, cache)
    place = next(place for place, values in wanted.items() if len(values) > 1)
    blob = store.segments[place[0]]
    whole = slice(place[1], place[1] + place[2])
    forged = with_another_value(blob[whole])
    assert crc32(forged) == crc32(blob[whole])
    assert read(forged) != read(blob[whole])
    assert len(forged) == place[2]
    path = tmp_path / "cache" / place[0]
    path.write_bytes(blob[: whole.start] + forged + blob[whole.stop :])
    assert rows(deployment, store, cache) == wanted
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


def rows(
    deployment: Deployment, store: StateStore, cache: Cache, ran: int = -1
) -> dict[Place, list[object]]:
    frames = open_stage(deployment, 1, 2, store, cache, ran=ran).frames()
    return {place: list(frame.rows()) for place, frame in frames.items()}


def changed(store: StateStore, change: Callable[[dict[str, object]], object]) -> None:
    assert store.text is not None
    manifest = json.loads(store.text)
    change(manifest)
    store.text = json.dumps(manifest)


def _without_tables(manifest: dict[str, object]) -> None:
    operators = manifest["operators"]
    assert isinstance(operators, dict)
    for entry in operators.values():
        entry["tables"] = {}


def forget_operator(store: StateStore) -> None:
    """The state of the one operator that remembers something is gone."""
    changed(store, lambda m: m.update(operators={}))


def other_column(store: StateStore) -> None:
    """A segment that is well-formed, of another table."""
    assert store.text is not None
    manifest = json.loads(store.text)
    (pack, blob, ((_, place),)) = next(packed("t9", [pl.DataFrame({"x": [1]})]))
    store.segments[pack] = blob
    for operator in manifest["operators"].values():
        for table in operator["tables"].values():
            table["stored"] = [place for _ in table["stored"]]
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
    "no tables": lambda store: changed(store, _without_tables),
    "other columns": other_column,
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


def test_a_segment_of_another_table_is_told_by_its_columns(
    deployment: Deployment, store: StateStore, tmp_path: Path
) -> None:
    other_column(store)
    with pytest.raises(RunError, match=r'table "\w+" of operator \w+: a segment has the columns x'):
        open_stage(deployment, 1, 2, store, Cache(tmp_path / "cache", limit=1 << 20))


# State that is expected


def test_an_operator_that_has_run_finds_its_state_or_the_run_stops(
    deployment: Deployment, store: StateStore, tmp_path: Path
) -> None:
    forget_operator(store)
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    with pytest.raises(
        RunError, match=r'the state of query "query_1" is not in partition 2 of sta'
    ):
        open_stage(deployment, 1, 2, store, cache, ran=0)
    kept = open_stage(deployment, 1, 2, store, cache, ran=-1)  # it was recorded, and has not run
    assert kept.stage.progress.watermarks == {"s": 2}


def test_a_partition_that_has_run_has_a_manifest(deployment: Deployment, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    with pytest.raises(
        RunError, match=r"partition 2 of stage 1 is not in the checkpoint"
    ) as caught:
        open_stage(deployment, 1, 2, StateStore(), cache, ran=0)
    assert caught.value.hint is not None
    assert open_stage(deployment, 1, 2, StateStore(), cache).token == ""


def test_a_query_that_comes_later_begins_empty(store: StateStore, tmp_path: Path) -> None:
    """The first query began in epoch 0 and has run; the other one begins in epoch 1."""
    count = "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"
    highest = "SELECT k, MAX(t) AS n FROM s [RANGE 7] GROUP BY k"
    both = deployed("", count, highest, epochs=(0, 1))
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    kept = open_stage(both, 1, 2, store, cache, ran=0)
    assert sum(state.rows() for e in kept.stage.engines for state in e.states.values()) > 0
    with pytest.raises(RunError, match='query "query_2"'):
        open_stage(both, 1, 2, store, cache, ran=1)
    # Nor is it missed when both run as one, or did.
    alike = deployed("", count, count.replace("10", "7"), epochs=(0, 1))
    assert open_stage(alike, 1, 2, store, cache, ran=0).stage.engines[0].fragment.nodes
    with pytest.raises(RunError, match='query "query_2"'):
        open_stage(alike, 1, 2, store, cache, ran=1)


@pytest.mark.parametrize("reopen", [False, True])
def test_numbers_go_on_when_a_partition_is_opened_again(tmp_path: Path, *, reopen: bool) -> None:
    """Equal rows are told apart by their numbers, in a semi-join that is no equality."""
    inner = "SELECT 1 FROM other o [RANGE 100] WHERE o.k < a.k"
    deployment = deployed("", f"SELECT k FROM s a [RANGE 10] WHERE EXISTS ({inner})")
    assert deployment.stages == 1
    store, cache = StateStore(), Cache(tmp_path / "cache", limit=1 << 20)
    batches = [
        [
            *came(deployment, "other", [(1, 1)], batch=0, now=0),
            *came(deployment, "s", [(5, 4)], batch=0, now=0),
        ],
        came(deployment, "s", [(5, 4)], batch=1, now=1, watermark=4),
        list(said([{"number": 2, "word": Word.END}], deployment.pids, 2)),
    ]
    kept = open_stage(deployment, 1, 2, store, cache)
    found: list[tuple[object, ...]] = []
    for number, batch in enumerate(batches):
        if reopen and number:
            kept = open_stage(deployment, 1, 2, store, cache, ran=0)
        found += answers(kept.stage.step(batch))
        kept.save(store, cache, f"t{number}")
    assert found == [(5, 4, 14), (5, 4, 14)]


@dataclass(frozen=True, slots=True)
class GrownAggregate(signed.Aggregate):
    """The aggregation of a later version, which has one more field with a default."""

    rounding: str = "even"


def test_state_is_found_by_a_version_whose_operator_has_gained_a_field(
    deployment: Deployment, store: StateStore, tmp_path: Path
) -> None:
    """What was written by one version, plan and state, is read by the next one."""
    written = write_plans(deployment.graph.plans)
    known = next(record for record in OPERATORS if record.kind is signed.Aggregate)
    later = Record(known.name, GrownAggregate, {**known.fields, "rounding": PLAIN})
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    before = rows(deployment, store, cache)
    with (
        patch.dict(operators._BY_KIND, {GrownAggregate: later}),  # noqa: SLF001 — a later version
        patch.dict(operators._BY_NAME, {known.name: later}),  # noqa: SLF001
    ):
        grown = replace(deployment, graph=build_graph(read_plans(json.loads(json.dumps(written)))))
        found = [n.apply.operator for f in grown.graph.fragments for n in f.nodes]
        assert any(isinstance(operator, GrownAggregate) for operator in found)
        assert rows(grown, store, cache, ran=0) == before
        kept = open_stage(grown, 1, 2, store, cache, ran=0)
        list(kept.stage.step(came(grown, "s", [(1, 5)], batch=1, now=1, watermark=5)))
        other = dict(written)
        other["parts"] = [
            {**part, "rounding": "up"} if part.get("operator") == known.name else part
            for part in written["parts"]
        ]
        changed = replace(deployment, graph=build_graph(read_plans(other)))
        with pytest.raises(RunError, match="state"):
            open_stage(changed, 1, 2, store, cache, ran=0)
