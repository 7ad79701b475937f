"""Transfers through Tidemill: what its readers see, step by step, on either engine.

sink      changes as a sink with ``form => 'changes'`` gets them, after every step
results   the elements with start and end, when all is over
memory    ``changes()`` of an answer in memory, read anew after every step
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.consistency.ledger import Ledger, Totals, wrong_results
from benchmarks.consistency.transfers import DISORDER, SECOND, VARIANTS, truth
from benchmarks.harness.stepped import Stepped
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Planning
from tidemill.runtime.shapes import Delivered, Shape, new_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from benchmarks.consistency.transfers import Balances, Variant

__all__ = ["Seen", "in_memory", "local", "on_spark", "steps_of"]

_CHANGES = Shape(Delivered.CHANGES)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader has seen.

    Attributes:
        variant: Of which window.
        steps: In how many steps.
        instants: How many instants were looked at.
        wrong: How many of them were wrong.
        missing: How many instants were never delivered.
        seconds: How long it took, with the looking.
    """

    variant: str
    steps: int
    instants: int
    wrong: int
    missing: int
    seconds: float


def declared(session: tidemill.Session, source: str) -> None:
    """Register the stream and the views."""
    session.sql(
        "CREATE STREAM transfer (from_account BIGINT NOT NULL, to_account BIGINT NOT NULL, "
        f"amount BIGINT NOT NULL, at BIGINT) SOURCE {source} "
        f"ORDERED BY at WITHIN {DISORDER // SECOND} SECONDS"
    )
    for variant in VARIANTS:
        session.sql(variant.views())


def steps_of(transfers: pl.DataFrame, most: int, seed: int) -> Iterator[pl.DataFrame]:
    """The transfers in steps of 1 to so many."""
    chance, first = Random(seed), 0  # noqa: S311 — nothing is to be kept secret
    while first < transfers.height:
        size = chance.randint(1, most)
        yield transfers[first : first + size]
        first += size


def local(variant: Variant, technique: str, partitions: int, steps: Sequence[pl.DataFrame]) -> Seen:
    """What a sink sees on the local engine, and then a reader of the results."""
    session = tidemill.connect(unbounded_state=True)
    session.callback("nobody", lambda *_: None)
    declared(session, "memory('transfers')")
    session.sql(variant.queries("INTO callback('nobody', form => 'changes')"))
    began = perf_counter()
    engine = Stepped(
        session, planning=Planning(technique=Technique(technique)), partitions=partitions
    )
    expected = truth(pl.concat(steps), variant)
    readers = _readers(variant, expected)
    for step in [*steps, None]:
        out = engine.finish() if step is None else engine.step({"transfer": step})
        for name, reader in readers.items():
            reader.take(new_rows(engine.schemas[name], out[name], _CHANGES))
    assert not engine.refused, "no transfer is too late"
    instants, wrong = wrong_results(engine.answers[f"balances_{variant.name}"].results())
    return Seen(
        variant.window,
        len(steps) + 1,
        instants + sum(reader.instants for reader in readers.values()),
        wrong + sum(reader.wrong for reader in readers.values()),
        sum(reader.missing for reader in readers.values()),
        perf_counter() - began,
    )


def in_memory(variant: Variant, technique: str, steps: Sequence[pl.DataFrame]) -> Seen:
    """What a reader of ``changes()`` sees after every step, from the first instant on."""
    session = tidemill.connect(unbounded_state=True)
    declared(session, "memory('transfers')")
    session.sql(variant.queries())
    began = perf_counter()
    engine = Stepped(session, planning=Planning(technique=Technique(technique)))
    expected = truth(pl.concat(steps), variant)
    instants = wrong = 0
    for step in [*steps, None]:
        if step is None:
            engine.finish()
        else:
            engine.step({"transfer": step})
        readers = _readers(variant, expected)
        for name, reader in readers.items():
            reader.take(engine.answers[name].changes())
            instants += reader.instants
            wrong += reader.wrong
    missing = sum(reader.missing for reader in readers.values())
    return Seen(variant.window, len(steps) + 1, instants, wrong, missing, perf_counter() - began)


def on_spark(
    technique: str, partitions: int, steps: Sequence[pl.DataFrame], folder: Path
) -> list[Seen]:
    """What a sink sees on Spark, a step a batch; all windows at once."""
    (folder / "in").mkdir(parents=True)
    for number, step in enumerate(steps):
        step.write_parquet(folder / "in" / f"{number:06d}.parquet")
    session = tidemill.connect(
        engine="spark",
        master="local[2]",
        memory="4g",
        technique=technique,
        partitions=partitions,
        unbounded_state=True,
    )
    declared(session, f"parquet('{folder / 'in'}')")
    seen: dict[str, dict[str, Ledger | Totals]] = {}
    for variant in VARIANTS:
        readers = _readers(variant, truth(pl.concat(steps), variant))
        for name, reader in readers.items():
            session.callback(name, _taking(reader))
        seen[variant.window] = readers
        session.sql(variant.queries("INTO callback('{name}', form => 'changes')"))
    began = perf_counter()
    with session:
        session.run()
        delivered = session.progress().batches
    seconds = perf_counter() - began
    return [
        Seen(
            window,
            delivered,
            sum(reader.instants for reader in readers.values()),
            sum(reader.wrong for reader in readers.values()),
            sum(reader.missing for reader in readers.values()),
            seconds,
        )
        for window, readers in seen.items()
    ]


def _readers(variant: Variant, expected: dict[int, Balances]) -> dict[str, Ledger | Totals]:
    """Who reads which query."""
    return {
        f"balances_{variant.name}": Ledger(expected),
        f"total_{variant.name}": Totals(expected),
    }


def _taking(reader: Ledger | Totals) -> Callable[[pl.DataFrame, int], None]:
    """A function that gives a reader what a batch delivers."""
    return lambda changes, _: reader.take(changes)
