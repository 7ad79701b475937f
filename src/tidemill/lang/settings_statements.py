"""Settings of a session: they are part of ``statements``, and are imported from there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Adapt", "SetAdapt", "ShowSettings"]


class Adapt(Enum):
    """Whether plans follow what is measured."""

    OFF = "OFF"
    ADVISE = "ADVISE"
    ON = "ON"


@dataclass(frozen=True, slots=True)
class SetAdapt:
    """SET adapt = off | advise | on: whether plans follow what is measured."""

    adapt: Adapt


@dataclass(frozen=True, slots=True)
class ShowSettings:
    """SHOW SETTINGS: what can be set, and how it is set."""
