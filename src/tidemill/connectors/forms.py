"""Forms: what a sink gets of an answer, as the statement says with ``form => '…'``."""

from __future__ import annotations

from enum import StrEnum

from tidemill.connectors.options import Choice, Option

__all__ = ["FORM", "Delivered"]


class Delivered(StrEnum):
    """What a sink gets."""

    RESULTS = "results"
    CHANGES = "changes"
    UPSERTS = "upserts"


FORM = Option(
    "form",
    Choice(tuple(form.value for form in Delivered)),
    "What is written: elements with start and end, changes with time and sign, or changes by key",
    default=Delivered.RESULTS.value,
)
