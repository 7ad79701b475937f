"""JSON files that people can read and that are quickly written: a line for each entry.

Law: ``json.loads(json_lines(content)) == content``, for what JSON can say. An indentation would do
as much for readers, but the encoder that can indent is many times slower, and these files are
written anew whenever a query comes or goes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["json_lines"]


def json_lines(content: Mapping[str, object]) -> bytes:
    """An object with a line for each entry, and for each entry of an entry that is an object.

    >>> print(json_lines({"format": 1, "queries": {"q1": [1, 2], "q2": []}, "none": {}}).decode())
    {
    "format": 1,
    "queries": {
    "q1": [1, 2],
    "q2": []
    },
    "none": {}
    }
    <BLANKLINE>
    """
    return (_lines({key: _entry(value) for key, value in content.items()}) + "\n").encode()


def _entry(value: object) -> str:
    if isinstance(value, dict) and value:
        return _lines({key: json.dumps(one) for key, one in value.items()})
    return json.dumps(value)


def _lines(entries: Mapping[str, str]) -> str:
    inside = ",\n".join(f"{json.dumps(key)}: {text}" for key, text in entries.items())
    return f"{{\n{inside}\n}}"
