"""What is asked of a window, and what it costs: rows, queries, times, all drawn with a seed.

Times are milliseconds. A row comes every millisecond, and the rate of a sub-window differs from
that by up to half. Periodic queries are asked again and again, in turn; those of a group share a
scan, which is as long as the longest of their windows. One-time queries come at random times, and
go first.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

__all__ = ["Asked", "Costs", "Load", "Workload", "workload"]


@dataclass(frozen=True, slots=True)
class Costs:
    """How long things take, in milliseconds.

    Attributes:
        read: A sub-window, whatever is in it.
        row: Each row of it.
        once: A one-time query is simpler: this share of both.
        slide: To put a sub-window into its place.
        slide_row: Each row of it.
        step: What a scheduler that watches conflicts does for each step.
        test: Its test whether a running query is hit by a slide.
    """

    read: float = 10.0
    row: float = 0.01
    once: float = 0.5
    slide: float = 1.0
    slide_row: float = 0.001
    step: float = 0.05
    test: float = 0.05


@dataclass(frozen=True, slots=True)
class Load:
    """What a run is about.

    Attributes:
        n: How many sub-windows there are.
        t: The time between two slides.
        groups: How many groups of periodic queries there are.
        members: How many queries share a scan.
        gap: The mean time between one-time queries; ``None`` if there are none.
        windows: For how many lengths of the window it goes on.
        costs: What things cost.
    """

    n: int
    t: float
    groups: int = 4
    members: int = 5
    gap: float | None = None
    windows: int = 2
    costs: Costs = Costs()


@dataclass(frozen=True, slots=True)
class Asked:
    """A query.

    Attributes:
        name: Which one.
        length: How many sub-windows it reads.
        time: When it is asked, if it is asked once.
    """

    name: str
    length: int
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """What has been drawn: the same for all schedulers.

    Attributes:
        load: What it is about.
        periodic: The periodic queries.
        once: The one-time queries, by time.
        rows: How many rows each version has.
    """

    load: Load
    periodic: tuple[Asked, ...]
    once: tuple[Asked, ...]
    rows: tuple[int, ...]

    @property
    def end(self) -> float:
        """When it is over."""
        return self.load.windows * self.load.n * self.load.t

    def due(self, slide: int) -> float:
        """When the rows of a slide are complete; the window is full at time 0."""
        return (slide - self.load.n + 1) * self.load.t

    def read_cost(self, asked: Asked, version: int) -> float:
        """How long a query takes for a sub-window."""
        costs = self.load.costs
        whole = costs.read + costs.row * self.rows[version]
        return whole if asked.time is None else costs.once * whole

    def slide_cost(self, version: int) -> float:
        """How long a slide takes."""
        return self.load.costs.slide + self.load.costs.slide_row * self.rows[version]


def workload(load: Load, seed: int) -> Workload:
    """What comes, with a seed."""
    random = Random(f"{seed} {load.n} {load.t} {load.gap}")  # noqa: S311 — nothing is secret
    slides = load.n * (load.windows + 1) + 1
    rows = tuple(round(load.t * random.uniform(0.5, 1.5)) for _ in range(slides))
    lengths = (
        max(random.randint(1, load.n) for _ in range(load.members)) for _ in range(load.groups)
    )
    periodic = tuple(Asked(f"P{group}", length) for group, length in enumerate(lengths))
    once: list[Asked] = []
    time = 0.0
    while load.gap is not None:
        time += random.expovariate(1 / load.gap)
        if time >= load.windows * load.n * load.t:
            break
        once.append(Asked(f"O{len(once)}", random.randint(1, load.n), time))
    return Workload(load, periodic, tuple(once), rows)
