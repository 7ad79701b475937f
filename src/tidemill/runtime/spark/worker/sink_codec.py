"""Sinks that workers write, as JSON.

Law: ``read_sink(write_sink(sink))`` writes the same files. Only directories are written by workers,
and these have no secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.codec.values import SCHEMA
from tidemill.connectors.forms import Delivered
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.ownership import Owner
from tidemill.runtime.shapes import Shape

if TYPE_CHECKING:
    from tidemill.algebra.codec.values import Json

__all__ = ["read_sink", "write_sink"]


def write_sink(sink: FileSink) -> Json:
    """A directory of files, for ``json``."""
    owner = sink.owner
    assert owner is not None, "a sink that is written belongs to a pipeline"
    return {
        "query": sink.query,
        "kind": sink.kind,
        "directory": sink.directory,
        "schema": SCHEMA.write(sink.schema),
        "form": sink.shape.delivered.value,
        "key": list(sink.shape.key),
        "owner": [owner.pipeline, owner.query, owner.epoch, owner.checkpoint],
    }


def read_sink(written: Json) -> FileSink:
    """The directory that was written."""
    return FileSink(
        written["query"],
        written["kind"],
        written["directory"],
        SCHEMA.read(written["schema"]),
        Shape(Delivered(written["form"]), tuple(written["key"])),
        owner=Owner(*written["owner"]),
    )
