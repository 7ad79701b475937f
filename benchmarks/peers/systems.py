"""The systems: what they are made of, where they live, and what counts as their time.

Law: a system takes part if its environment holds just the packages that are named here; else there
is a word that says why not.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["HOME", "PEERS", "ROOT", "TIDEMILL", "System"]

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".venv-peers"


@dataclass(frozen=True, slots=True)
class System:
    """A system and how it is asked.

    Attributes:
        name: What it is called; in small letters, its environment and its script.
        packages: What its environment is made of; nothing if it is that of the project.
        timed: From where to where its clock runs.
        small: The queries for which it gets the small input.
        uses_all_cores: Whether it gets all of them; else it gets one.
    """

    name: str
    packages: tuple[str, ...]
    timed: str
    small: frozenset[str] = frozenset()
    uses_all_cores: bool = False

    @property
    def module(self) -> str:
        """The script that answers the queries."""
        return f"benchmarks.peers.{self.name.lower()}_queries"

    def environment(self, home: Path = HOME) -> Path:
        """Where its packages are."""
        return home / self.name.lower()

    def python(self, home: Path = HOME) -> str:
        """What runs its script."""
        return str(self.environment(home) / "bin/python") if self.packages else sys.executable

    def ready(self, home: Path = HOME) -> Path:
        """A file that lists the packages once they are installed."""
        return self.environment(home) / "packages.txt"

    def failure(self, home: Path = HOME) -> Path:
        """A file that says why they could not be installed."""
        return home / f"{self.name.lower()}.failed"

    def missing(self, home: Path = HOME) -> str | None:
        """Why it does not take part; None if it does."""
        if not self.packages:
            return None
        if self.failure(home).exists():
            return f"not installed: {self.failure(home).read_text(encoding='utf-8').strip()}"
        ready = self.ready(home)
        if not ready.exists():
            return "not installed: make peers"
        if tuple(ready.read_text(encoding="utf-8").split()) != self.packages:
            return "installed with other packages: make peers"
        return None


TIDEMILL = System("Tidemill", (), "session.run(): Parquet read, rows of each window in memory")

PEERS = (
    System(
        "Bytewax",
        ("bytewax==0.21.1", "pyarrow==26.0.1"),
        "run_main(): from a list of tuples to a list; one worker; the join written by hand",
        small=frozenset({"sum", "distinct", "join"}),
    ),
    System(
        "Pathway",
        ("pathway==0.33.0",),
        "pw.run(): CSV read in static mode, CSV written; one thread, as it is by default",
        small=frozenset({"sum", "distinct", "join"}),
    ),
    System(
        "Flink",
        ("apache-flink==2.3.0",),
        "net run time of the job: CSV read, CSV written; a task a core, one reads",
        uses_all_cores=True,
    ),
    System(
        "Siddhi",
        ("PySiddhi==5.1.0", "JPype1==1.7.1", "pyarrow==26.0.1"),
        "all events sent: from arrays of Java objects to a table in memory; one thread; "
        "windows made of sliding ones and ticks, the join of indexed tables",
        small=frozenset({"join"}),
    ),
)
