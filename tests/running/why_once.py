"""A process that asks why, read-only, of a pipeline of another one: what it is told, as JSON.

Arguments: the checkpoint; statements, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tidemill


def main(checkpoint: Path, texts: list[str]) -> None:
    with tidemill.connect(checkpoint=checkpoint, read_only=True) as session:
        told = [json.loads(session.why(text).json()) for text in texts]
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
