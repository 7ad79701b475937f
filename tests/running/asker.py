"""A process that asks a pipeline of another one, read-only, as fast as it can, until it is told.

Arguments: the checkpoint; a file that ends it when it is there; the stream. It prints each answer
as a line of JSON: the instant, and the rows; and each error that says that something is not kept
any more.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tidemill

TEXT = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM {} [RANGE 20] GROUP BY k ORDER BY k"


def main(checkpoint: Path, end: Path, stream: str = "s") -> None:
    with tidemill.connect(checkpoint=checkpoint, read_only=True) as session:
        earlier = 0
        while not end.exists():
            for at in (None, max(earlier - 15, 0)):
                try:
                    answer = session.ask(TEXT.format(stream), at=at, wait=5)
                except tidemill.RunError as error:
                    told = {"error": error.message}
                else:
                    earlier = answer.at
                    told = {"at": answer.at, "known": answer.known, "rows": answer.frame.rows()}  # type: ignore[dict-item]
                sys.stdout.write(json.dumps(told) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
