"""A package that brings connectors, as an installer leaves it."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

from tidemill.connectors.registry import GROUP

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["install"]


def install(place: Path, package: str, entries: str, code: str) -> None:
    """Write a distribution: a module, and what is known about it."""
    (place / f"{package}.py").write_text(code, encoding="utf-8")
    info = place / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{dedent(entries)}")
