"""Shapes: how a sink gets an answer, as the statement says with ``form => '…'``.

    results   elements with ``start`` and ``end``, each when its end is known: the default
    changes   rows with ``time`` and ``sign``: +1 when one appears, -1 when one is withdrawn
    upserts   as changes, but a row that replaces one of the same key at once stands for both

Changes and upserts leave as soon as the watermark has passed them. At one time withdrawals come
first, so that applying them in order, by key or by value, gives the answer at every instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.keys import least_key
from tidemill.connectors.check import arguments_of, guarantee
from tidemill.connectors.connector import Guarantee, Use
from tidemill.connectors.forms import FORM, Delivered
from tidemill.model.batch import SIGN, TIME, Form, empty_batch, time_columns
from tidemill.physical.frames import pick
from tidemill.physical.kernels.sweep import encode
from tidemill.runtime.answers import NAMES, Answer, time_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.catalog.entries import QueryEntry
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["RESULTS", "Delivered", "Shape", "answer_form", "new_rows", "shape_of"]


@dataclass(frozen=True, slots=True)
class Shape:
    """How a sink gets an answer.

    Attributes:
        delivered: What it gets.
        key: For upserts, the columns by which a row replaces another.
    """

    delivered: Delivered = Delivered.RESULTS
    key: tuple[str, ...] = ()

    @property
    def form(self) -> Form:
        """The form in which the answer is computed."""
        return Form.INTERVAL if self.delivered is Delivered.RESULTS else Form.SIGNED


RESULTS = Shape()


def shape_of(query: QueryEntry) -> Shape:
    """How the sink of a query gets its answer."""
    if query.sink is None:
        return RESULTS
    # A connector of another package may have no choice of forms.
    form = arguments_of(query.sink, Use.SINK).text(FORM.name)
    delivered = Delivered(form or Delivered.RESULTS)
    if delivered is not Delivered.UPSERTS:
        return Shape(delivered)
    key = least_key(query.plan)
    assert key is not None, "upserts of rows without a key are refused when they are created"
    return Shape(delivered, tuple(name for name in query.plan.schema.names if name in key))


def answer_form(query: QueryEntry) -> Form | None:
    """The form that the answer of a query must have; ``None`` for either."""
    return None if guarantee(query.sink) is Guarantee.SESSION else shape_of(query).form


def new_rows(schema: Schema, batches: Iterable[Batch], shape: Shape = RESULTS) -> pl.DataFrame:
    """What a batch adds to an answer, in the order of time.

    Elements are as they were cut: one that goes on may come in pieces. Changes are added up.

    Args:
        schema: The columns of the answer.
        batches: The new elements, or changes.
        shape: What becomes of them.
    """
    columns = [*schema.names, *time_columns(shape.form)]
    frames = [pick(batch, columns) for batch in batches] or [empty_batch(schema, shape.form)]
    whole = frames[0] if len(frames) == 1 else pl.concat(frames)
    if shape.form is Form.SIGNED:
        answer = Answer(schema)
        answer.add([whole])
        changes = answer.changes()
        return changes if shape.delivered is Delivered.CHANGES else _upserts(changes, shape.key)
    start, end = time_names(schema, *NAMES[Form.INTERVAL])
    whole.columns = [*schema.names, start, end]
    return whole if whole[start].is_sorted() else whole.sort(start, maintain_order=True)


def _upserts(changes: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """The changes without withdrawals of rows that are replaced at once."""
    *_, time, sign = changes.columns
    numbered = pick(changes, (*key, time, sign))
    numbered.columns = [*(f"@{i}" for i in range(len(key))), TIME, SIGN]
    _, (marked,) = encode([name for name in numbered.columns if name != SIGN], [numbered])
    comes = marked.select(pl.col(SIGN).max().over("@group") > 0).to_series()
    return changes.filter((changes[sign] > 0) | ~comes)
