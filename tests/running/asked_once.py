"""A process that asks a pipeline of another one, read-only: what it is told, and then it ends.

Arguments: the checkpoint; texts and instants, as JSON. It prints the rows of all answers as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tidemill


def main(checkpoint: Path, questions: list[tuple[str, int]]) -> None:
    with tidemill.connect(checkpoint=checkpoint, read_only=True) as session:
        frames = [session.ask(text, at=at).frame for text, at in questions]
    sys.stdout.write(json.dumps([frame.rows() for frame in frames]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
