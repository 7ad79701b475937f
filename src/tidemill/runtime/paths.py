"""Paths: where the files of a source are, and words for names that can be the names of files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from tidemill.runtime.files import READERS

if TYPE_CHECKING:
    from tidemill.runtime.connectors import Place

__all__ = ["file_path", "word_of"]

_SCHEME = "://"

_LONG = 100
"""Longer words are not fit for the name of a file."""


def file_path(place: Place) -> Path | None:
    """Where the files are that this host, and every worker, opens; ``None`` if there are none."""
    if place.kind not in READERS:
        return None
    if _SCHEME not in place.path:
        return Path(place.path).absolute()
    is_here = place.path.startswith("file:")
    return Path(unquote(urlparse(place.path).path)).absolute() if is_here else None


def word_of(name: str) -> str:
    """A name of lower-case letters, digits and underscores, different for different names.

    Every other character, underscores too, is written as its number between underscores. A long
    name is written as its digest after one underscore, as no other name is.

    >>> word_of("Bid"), word_of("a b"), word_of("a_20_b")
    ('bid', 'a_20_b', 'a_5f_20_5f_b')
    """
    word = "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name.lower())
    return word if 0 < len(word) < _LONG else "_" + hashlib.sha256(word.encode()).hexdigest()
