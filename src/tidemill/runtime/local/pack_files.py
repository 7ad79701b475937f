"""State at rest in files: packs that are written once, and a manifest that names them.

commit.json     the manifest: how far the pipeline has come, and where its state is
packs/          the state of operators

A pack has a name that no other attempt has. It is flushed, and its name is, before the manifest is
replaced, which is the one moment at which a step is done; only then do packs go that are over. The
first line of the manifest is the digest of the others, so that any change is found.

Law: after a crash at any moment the manifest is that of a step as a whole, and every pack that it
names is there.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from typing import TYPE_CHECKING

from tidemill.runtime.damage import damaged
from tidemill.runtime.durable import make_directory, sync_directory, write_durably

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

__all__ = ["MANIFEST", "PackFiles"]

MANIFEST = "commit.json"

_PACK = re.compile(r"\d{8,}-[0-9a-f]{8}(\.\d+)?\.pack")


class PackFiles:
    """Packs and their manifest in a checkpoint.

    Args:
        directory: The checkpoint.
    """

    def __init__(self, directory: Path) -> None:
        self._manifest = directory / MANIFEST
        self._packs = directory / "packs"
        self._text: str | None = None
        self._is_written = False
        self._over: list[Path] = []

    def manifest(self) -> str | None:
        """What was written last; ``None`` at first.

        Raises:
            RunError: It is damaged.
        """
        try:
            content = self._manifest.read_bytes()
        except FileNotFoundError:
            return None
        digest, _, text = content.partition(b"\n")
        if digest != _digest(text):
            raise damaged(f'"{self._manifest}"', "it is not what was written")
        return text.decode()

    def write_manifest(self, text: str) -> None:
        """Replace the manifest with the next ``commit``."""
        self._text = text

    def read(self, name: str) -> bytes:
        """A pack.

        Raises:
            LookupError: It is not there.
        """
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError as error:
            raise LookupError(f'"{self._path(name)}" is missing') from error

    def write(self, name: str, blob: bytes) -> None:
        """A new pack."""
        if not self._packs.is_dir():
            make_directory(self._packs)
        with self._path(name).open("xb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        self._is_written = True

    def remove(self, name: str) -> None:
        """Forget a pack, once a manifest is there that does not name it."""
        self._over.append(self._path(name))

    def commit(self) -> None:
        """Let what has been written be what there is, all at once."""
        assert self._text is not None, "something has been saved"
        if self._is_written:
            sync_directory(self._packs)
            self._is_written = False
        text = self._text.encode()
        write_durably(self._manifest, _digest(text) + b"\n" + text)
        while self._over:
            self._over.pop().unlink(missing_ok=True)

    def tidy(self, named: Container[str]) -> None:
        """Remove packs that no manifest names: those of steps that were not finished.

        Args:
            named: The packs that the manifest names.
        """
        for path in self._packs.glob("*.pack"):
            if _PACK.fullmatch(path.name) and path.stem not in named:
                path.unlink()

    def _path(self, name: str) -> Path:
        return self._packs / f"{name}.pack"


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=16).hexdigest().encode()
