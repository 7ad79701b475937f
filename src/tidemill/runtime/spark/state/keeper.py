"""The keeper: a stage and its state at rest, from batch to batch.

The store is Spark's state store and the truth, the cache files on this host that are mapped into
memory. How states are written and read is said in ``physical/state/at_rest.py``; here they are
those of the operators of a stage, and the manifest says as well how far the streams have come. When
a partition is opened again, by this process or another one, segments come from memory, from the
cache, or from the store where the cache has lost them.

Law: a stage that was saved and opened again behaves like the stage itself. An operator that has run
before finds its state, or the run stops.
"""

from __future__ import annotations

from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.physical.state.at_rest import Saved, read_manifest
from tidemill.physical.state.damaged import DamagedError
from tidemill.runtime.spark.worker.stage import Progress, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tidemill.physical.fragments import Node
    from tidemill.physical.state.at_rest import Manifest, Remembered, StateStore
    from tidemill.physical.state.packs import Place
    from tidemill.runtime.spark.state.cache import Cache
    from tidemill.runtime.spark.worker.deployment import Deployment

__all__ = ["Kept", "open_stage"]


class Kept:
    """A stage and where its segments are stored.

    Attributes:
        stage: The stage.
        saved: What of its state is stored, and where.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.saved = Saved()

    @property
    def token(self) -> str:
        """What the manifest that it equals is called; another token means another state."""
        return self.saved.token

    def save(self, store: StateStore, cache: Cache, token: str) -> None:
        """Write what is new, forget what is over, and say what there is.

        Args:
            store: Where the state is kept.
            cache: Where copies are kept.
            token: A name for this state that no other state has.
        """
        facts = {"progress": asdict(self.stage.progress)}
        self.saved.save(self.states(), store, token, copies=cache, facts=facts)

    def frames(self) -> dict[Place, pl.DataFrame]:
        """The rows of each segment, by its place on the store."""
        return self.saved.frames(self.states())

    def states(self) -> dict[str, Remembered]:
        """What each operator or stack remembers."""
        found = (engine.remembered().items() for engine in self.stage.engines)
        return {name: state for states in found for name, state in states}


def open_stage(  # noqa: PLR0913 — which stage, and three places for its state
    deployment: Deployment,
    number: int,
    pid: int,
    store: StateStore,
    cache: Cache,
    *,
    at_hand: Mapping[Place, pl.DataFrame] = MappingProxyType({}),
    ran: int = -1,
) -> Kept:
    """The stage as it was saved last; operators that have not run begin empty.

    Args:
        deployment: What runs where.
        number: The stage.
        pid: The partition.
        store: Where its state is kept.
        cache: Where copies are kept.
        at_hand: Segments that are in memory, by their places on the store.
        ran: The last epoch whose queries had run when the batch began; -1 if there was none.

    Raises:
        RunError: State is damaged, missing, or was saved by a version that this one cannot read.
    """
    kept = Kept(Stage(deployment, number, pid))
    where = f"partition {pid} of stage {number}"
    try:
        manifest = read_manifest(store, copies=cache, at_hand=at_hand)
        new = [] if manifest is None else _restore(kept, manifest)
    except DamagedError as error:
        raise RunError(
            f"the state of {where} in the checkpoint is damaged: {error}",
            hint="restore the checkpoint from a copy, or choose a new one",
        ) from error
    if manifest is None and ran >= 0:
        raise RunError(
            f"the state of {where} is not in the checkpoint, although it has run before",
            hint="restore the checkpoint from a copy, or choose a new one",
        )
    lost = [node for node in new if node.apply.epoch <= ran]
    if lost:
        raise _missing(lost, deployment, number, where)
    return kept


def _restore(kept: Kept, manifest: Manifest) -> list[Node]:
    """Fill a new stage with what was saved; the operators that begin empty."""
    progress = kept.stage.progress = _progress(manifest.facts)
    deployment = kept.stage.deployment
    for before, now in deployment.fed_again:
        if before.issubset(progress.fed):
            progress.fed += sorted(now.difference(progress.fed))
    engines = kept.stage.engines
    new = [node for one in engines for node in one.restore(manifest.states, deployment.moves)]
    kept.saved = manifest.saved(kept.states())
    return new


def _progress(facts: Mapping[str, object]) -> Progress:
    """What the stage knows besides the state of its operators."""
    match facts:
        case {
            "progress": {"watermarks": dict(marks), "seen": dict(seen), "fed": list(fed), **rest}
        }:
            replayed = rest.get("replayed", {})  # earlier versions did not say it
            assert isinstance(replayed, dict), "it is what was written"
            return Progress(marks, seen, fed, replayed)
        case _:
            raise DamagedError("the manifest does not say how far the streams have come")


def _missing(lost: list[Node], deployment: Deployment, number: int, where: str) -> RunError:
    """The error that says that operators have run and have no state."""
    fragment = deployment.fragment(number)
    assert fragment is not None, "the operators are those of a fragment"
    queries = sorted({query for node in lost for query in fragment.queries.get(node.name, ())})
    names = ", ".join(f'"{name}"' for name in queries)
    of = f" of {'query' if len(queries) == 1 else 'queries'} {names}" if queries else ""
    operators = ", ".join(node.name for node in lost)
    return RunError(
        f"the state{of} is not in {where} of the checkpoint, although it has run before: "
        f"operator {operators}",
        hint="restore the checkpoint from a copy, or choose a new one; a query that is dropped and"
        " created again begins anew",
    )
