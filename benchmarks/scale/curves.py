"""Curves: something that grows, and what becomes of several queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")  # pictures are files

from matplotlib import pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Curves"]


@dataclass(frozen=True, slots=True)
class Curves:
    """What is found at each point.

    Attributes:
        title: What is asked.
        grows: What grows.
        measured: What is found.
        points: How far it has grown at each point.
        lines: What is found there, by query.
    """

    title: str
    grows: str
    measured: str
    points: Sequence[float]
    lines: Mapping[str, Sequence[float]]

    def save(self, path: Path) -> None:
        """Draw them, both axes by powers."""
        path.parent.mkdir(parents=True, exist_ok=True)
        figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
        for name, found in self.lines.items():
            axes.plot(self.points, found, marker="o", label=name)
        axes.set(xscale="log", yscale="log", title=self.title)
        axes.set(xlabel=self.grows, ylabel=self.measured)
        axes.grid(visible=True, which="both", alpha=0.3)
        axes.legend()
        figure.savefig(path, dpi=120)
        plt.close(figure)
