"""Runs queries on Spark, all of a world in one job, cut into batches as a test likes."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.batch import polars_schema
from tidemill.runtime.spark.driver.job import SparkJob
from tidemill.runtime.spark.driver.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tidemill.algebra.snapshot import Element, Row
    from tidemill.catalog.catalog import Catalog

__all__ = ["MASTER", "run_on_spark", "write_files"]

MASTER = "local[2]"


def run_on_spark(  # noqa: PLR0913 — a test says everything
    directory: Path,
    catalog: Catalog,
    streams: Mapping[str, Sequence[Element]],
    relations: Mapping[str, Sequence[Row]],
    *,
    partitions: int,
    rows_per_batch: int,
    stages: int | None = None,
) -> SparkJob:
    """All queries of a catalog, run; each stream arrives in the order of time, file by file."""
    objects = dict(catalog.objects)
    memory: dict[str, pl.DataFrame] = {}
    for key, entry in objects.items():
        if isinstance(entry, StreamEntry):
            ordered = sorted(streams.get(entry.name, ()), key=lambda e: (e.time, e.id))
            rows = [e.row for e in ordered]
            frame = pl.DataFrame(rows, schema=polars_schema(entry.schema), orient="row")
            path = write_files(directory / "in" / entry.name, frame, rows_per_batch)
            objects[key] = replace(entry, source=ConnectorCall(Name("parquet"), (str(path),)))
        elif isinstance(entry, RelationEntry):
            rows = list(relations.get(entry.name, ()))
            memory[entry.name] = pl.DataFrame(
                rows, schema=polars_schema(entry.schema), orient="row"
            )
            objects[key] = replace(entry, source=ConnectorCall(Name("memory"), (entry.name,)))
    settings = SparkSettings(master=MASTER, partitions=partitions, stages=stages)
    job = SparkJob(replace(catalog, objects=objects), memory, settings)
    job.run()
    return job


def write_files(directory: Path, frame: pl.DataFrame, rows_per_file: int) -> Path:
    """The rows as Parquet files of so many rows, each written later than the one before."""
    directory.mkdir(parents=True)
    for number, first in enumerate(range(0, max(frame.height, 1), rows_per_file)):
        path = directory / f"{number:06d}.parquet"
        frame[first : first + rows_per_file].write_parquet(path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    return directory
