"""Make an environment for each peer.

    python -m benchmarks.peers.install [name …]

Each has its own, since what they pin does not go together. What is there already, with the same
packages, stays. A peer that cannot be installed leaves the reason in a file, which the table of the
benchmark shows; the others are installed all the same, and the command fails at its end.
"""

# ruff: noqa: T201 — it prints

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.peers.systems import HOME, PEERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.systems import System


def install(system: System) -> str | None:
    """Install a peer from the beginning; why it failed, None if it did not."""
    environment = system.environment()
    shutil.rmtree(environment, ignore_errors=True)
    system.failure().unlink(missing_ok=True)
    steps = (
        [sys.executable, "-m", "venv", str(environment)],
        [system.python(), "-m", "pip", "install", "--quiet", "--upgrade", "pip"],
        [system.python(), "-m", "pip", "install", "--quiet", *system.packages],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)  # noqa: S603 — ours
        if done.returncode:
            reason = _reason(done.stderr or done.stdout)
            system.failure().write_text(f"{reason}\n", encoding="utf-8")
            return reason
    system.ready().write_text("\n".join(system.packages) + "\n", encoding="utf-8")
    return None


def _reason(output: str) -> str:
    """The line that says it: the first error of pip, or else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines[-1:] or ["no word of a reason"])[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Install what is asked for and not there; 0 if all could be."""
    parser = argparse.ArgumentParser(description="The peers of the benchmarks.")
    parser.add_argument("name", nargs="*", help="which; all if none is named")
    given = parser.parse_args(arguments)
    names = [system.name.lower() for system in PEERS]
    unknown = [name for name in given.name if name not in names]
    if unknown:
        parser.error(f"there is no peer {unknown[0]}; there are {', '.join(names)}")
    HOME.mkdir(exist_ok=True)
    failed = False
    for system in PEERS:
        if given.name and system.name.lower() not in given.name:
            continue
        if system.missing() is None:
            print(f"{system.name}: there", flush=True)
            continue
        print(f"{system.name}: {' '.join(system.packages)} …", flush=True)
        reason = install(system)
        print(f"{system.name}: {'installed' if reason is None else reason}", flush=True)
        failed = failed or reason is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
