"""Frames that people hand over, as frames of Polars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

import polars as pl

from tidemill.errors import RunError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Frame", "to_polars"]


class _ArrowStream(Protocol):
    """A table of Arrow, of whichever library."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Its batches."""
        ...


_FAILURES = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    NotImplementedError,
    OverflowError,
    TypeError,
    ValueError,
)
"""What libraries raise about values and types that they do not know."""

Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pd.DataFrame | _ArrowStream"
"""Rows in memory."""


def to_polars(name: str, frame: object) -> pl.DataFrame:
    """The rows as they are now; what is done with the frame later does not change them.

    Args:
        name: What the rows are called, for errors.
        frame: What holds them.

    Raises:
        RunError: It is no frame, or has values that no column can hold.
    """
    try:
        if isinstance(frame, pl.DataFrame):
            return frame.clone()
        if isinstance(frame, pl.LazyFrame):
            return frame.collect()
        if _is_of_pandas(frame):
            return _from_pandas(frame)
        if hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, pl.Series):
            made = pl.from_arrow(frame)
            if isinstance(made, pl.DataFrame):
                return made
    except _FAILURES as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise RunError(
            f'the rows of "{name}" cannot be taken: {reason}',
            hint="give every column values of one type",
        ) from error
    kind = f"{type(frame).__module__}.{type(frame).__qualname__}".removeprefix("builtins.")
    raise RunError(
        f'the rows of "{name}" must be a frame, not a {kind}',
        hint="give a frame of Polars or pandas, or a table of Arrow: pl.DataFrame(…)",
    )


def _is_of_pandas(frame: object) -> bool:
    # pandas is not imported for this: without it, there is no such frame.
    kinds = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(frame).__mro__}
    return ("pandas", "DataFrame") in kinds


def _from_pandas(frame: object) -> pl.DataFrame:
    import pandas as pd  # noqa: PLC0415 — only where it is used

    assert isinstance(frame, pd.DataFrame), "it was looked at"
    # A copy, since columns may be taken as they are, and can be written to.
    return pl.from_pandas(frame.copy(), include_index=False)
