"""The input log: which files of each stream were taken, in their order, and what a step reads.

    {"files": {"s": [[path, size, changed], …]}, "first": {"s": 17}}
    {"begin": 7, "ticks": […], "reads": [["s", 3], …], "taken": {"s": 20}, "ends": false,
     "leg": [5, 0]}

Before a step delivers anything, it is written down what it depends on besides its state: which
files it has read, how often it was read from each stream, what the clock said, and how far kept
rows were replayed. A step that was
cut short is taken again like that, so that it gives the same rows under the same number. Files that
were written down and of which no step was finished are told anew with the same numbers: the last
line counts.

Law: what has been appended is read again as it was, or the file is told to be damaged; a line that
was cut short does not count.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from tidemill.history.replay import Leg
from tidemill.runtime.damage import damaged, json_lines
from tidemill.runtime.durable import append_durably, write_durably
from tidemill.runtime.local.intake import Noted
from tidemill.runtime.settling import Mark

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from pathlib import Path

__all__ = ["Begun", "InputLog"]

_LEAST_BYTES = 1 << 20
"""So much is appended at least before the file is written anew."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What a step depends on besides its state.

    Attributes:
        step: Its number.
        noted: Where was read in which order, and what the clock said.
        taken: How many files of each stream had been taken.
        ends: Whether the streams end with it.
        leg: How far replays go in it; ``None`` in a log of a version that did not write it down.
    """

    step: int
    noted: Noted = field(default_factory=Noted)
    taken: Mapping[str, int] = field(default_factory=dict)
    ends: bool = False
    leg: Leg | None = None


class InputLog:
    """What was taken, in a file of a checkpoint.

    Args:
        path: The file.

    Raises:
        RunError: It is damaged.

    Attributes:
        files: The files of each stream, in the order in which they were taken.
        begun: The step that has begun last, if one has.
    """

    def __init__(self, path: Path) -> None:
        self.files: dict[str, list[tuple[str, Mark]]] = {}
        self.begun: Begun | None = None
        self._path = path
        self._noted: dict[str, int] = {}
        for line in json_lines(path) if path.exists() else ():
            try:
                self._read(line)
            except (TypeError, ValueError, KeyError, AttributeError) as error:
                raise damaged(f'"{path}"', error) from error
        self._size = self._appended = 0

    def note(self, files: Mapping[str, list[tuple[str, Mark]]], begun: Begun | None = None) -> None:
        """Write down all files that were taken of each stream, and what the next step depends on.

        Args:
            files: The files of the streams that are read, which were only added to since.
            begun: The step, if one begins.
        """
        first = {n: self._noted.get(n, 0) for n in files}
        new = {n: taken[first[n] :] for n, taken in files.items() if first[n] < len(taken)}
        lines = [_files_line(new, {name: first[name] for name in new})] if new else []
        if begun is not None:
            lines.append(_begun_line(begun))
            self.begun = begun
        content = "".join(lines).encode()
        if content:
            append_durably(self._path, content)
        for name, taken in files.items():
            self.files[name], self._noted[name] = taken, len(taken)
        self._appended += len(content)
        if self._appended > max(self._size, _LEAST_BYTES):
            self.rewrite()

    def rewrite(self) -> None:
        """Write the file anew, without what is over, or was cut short."""
        lines = [_files_line({n: taken}, {n: 0}) for n, taken in self.files.items() if taken]
        if self.begun is not None:
            lines.append(_begun_line(self.begun))
        content = "".join(lines).encode()
        write_durably(self._path, content)
        self._size, self._appended = len(content), 0
        self._noted = {name: len(taken) for name, taken in self.files.items()}

    def cut(self, stream: str, count: int) -> list[tuple[str, Mark]]:
        """The first files of a stream; the others are forgotten.

        Raises:
            RunError: There are not so many.
        """
        known = self.files.get(stream, [])
        if len(known) < count:
            why = f'it names {len(known)} files of "{stream}", and there were {count} at least'
            raise damaged(f'"{self._path}"', why)
        self.files[stream] = known[:count]
        return self.files[stream]

    def keep_only(self, streams: Container[str]) -> None:
        """Forget the files of other streams, which are read from their beginnings if ever again."""
        self.files = {name: taken for name, taken in self.files.items() if name in streams}
        self._noted = {name: count for name, count in self._noted.items() if name in streams}

    def _read(self, line: object) -> None:
        match line:
            case {"files": dict(files), "first": dict(first)}:
                for name, taken in files.items():
                    before = self.files.get(name, [])
                    if first[name] > len(before):
                        raise ValueError(f'files of "{name}" are missing')
                    marked = [(str(path), Mark(int(s), int(c))) for path, s, c in taken]
                    self.files[name] = [*before[: first[name]], *marked]
            case {
                "begin": int(step),
                "ticks": list(ticks),
                "reads": list(reads),
                "taken": dict(taken),
                "ends": bool(ends),
                **more,
            }:
                turns = [str(name) for name, count in reads for _ in range(count)]
                noted = Noted(turns, [int(tick) for tick in ticks])
                leg = more.get("leg")
                self.begun = Begun(step, noted, taken, ends, None if leg is None else _leg(leg))
            case _:
                raise ValueError(f"{line} is no line of it")


def _files_line(files: Mapping[str, Sequence[tuple[str, Mark]]], first: Mapping[str, int]) -> str:
    written = {n: [(p, mark.size, mark.changed) for p, mark in taken] for n, taken in files.items()}
    return json.dumps({"files": written, "first": first}) + "\n"


def _leg(written: object) -> Leg:
    match written:
        case [int(batch), int(at)]:
            return Leg(batch, at)
        case _:
            raise ValueError(f"{written} is no leg of a replay")


def _begun_line(begun: Begun) -> str:
    line = {
        "begin": begun.step,
        "ticks": begun.noted.ticks,
        "reads": [(name, len(list(some))) for name, some in groupby(begun.noted.reads)],
        "taken": begun.taken,
        "ends": begun.ends,
    }
    if begun.leg is not None:
        line["leg"] = list(begun.leg)
    return json.dumps(line) + "\n"
