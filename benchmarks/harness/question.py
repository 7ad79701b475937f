"""Questions: what a benchmark asks, one a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 — part of the type of a field
from typing import TypeAlias

from benchmarks.harness.table import Table

__all__ = ["Answers", "Context", "Question"]


@dataclass(frozen=True, slots=True)
class Context:
    """What a question is given.

    Attributes:
        folder: A directory of its own, which is removed afterwards.
        out: Where pictures go.
        seed: What random numbers begin with.
        full: Whether it may take its time.
        progress: Told what is being done.
    """

    folder: Path
    out: Path
    seed: int = 1
    full: bool = False
    progress: Callable[[str], None] = field(default=lambda _: None)


Answers: TypeAlias = Callable[[Context], Iterator[Table]]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes:
        name: A short name, that of its file.
        title: What is asked, in one line.
        answers: The tables, one after the other, as they are found.
    """

    name: str
    title: str
    answers: Answers
