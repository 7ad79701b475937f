"""Files as blocks of bytes, decompressed as they are read, so that memory stays bounded.

A block ends where a row ends. A row that does not fit into a block is not read: it is told as one,
and what follows it is read on.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

__all__ = ["BLOCK", "LONGEST", "Block", "blocks", "chunks"]

BLOCK = 16 << 20
"""How much is read at a time, in bytes."""

LONGEST = 4 * BLOCK
"""How long a row may be at most, in bytes."""

_SHOWN = 256
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ZLIB = (b"\x78\x01", b"\x78\x9c", b"\x78\xda")


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a file.

    Attributes:
        content: The rows, each with the end of its line; or the begin of a row that is too long.
        line: The number of the first line, from 1.
        is_whole: Whether there are whole rows in it.
    """

    content: bytes
    line: int
    is_whole: bool = True


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """The content of a file, decompressed if it is compressed by gzip, zlib or zstd.

    Raises:
        OSError: It is damaged.
    """
    begin = file.read(len(_ZSTD))
    file.seek(0)
    if begin.startswith(_ZLIB):
        yield from _inflated(file)
        return
    source: BinaryIO | pa.NativeFile = file
    if begin.startswith(_GZIP):
        source = gzip.GzipFile(fileobj=file)
    elif begin.startswith(_ZSTD):
        source = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    try:
        while chunk := source.read(BLOCK):
            yield chunk
    except (EOFError, zlib.error) as error:
        raise OSError(f"it is compressed, and damaged: {error}") from error


def _inflated(file: BinaryIO) -> Iterator[bytes]:
    inflater = zlib.decompressobj()
    try:
        while not inflater.eof:
            packed = inflater.unconsumed_tail or file.read(1 << 20)
            if not packed:
                raise OSError("it is compressed, and ends too early")
            if chunk := inflater.decompress(packed, BLOCK):
                yield chunk
        if inflater.unused_data or file.read(1):
            raise OSError("it is compressed, and something follows that does not belong to it")
    except zlib.error as error:
        raise OSError(f"it is compressed, and damaged: {error}") from error


def blocks(
    content: Iterator[bytes], end_of_rows: Callable[[bytes], int], line: int = 1
) -> Iterator[Block]:
    """The rows of a file, block by block.

    Args:
        content: What is in the file, piece by piece.
        end_of_rows: Where the last whole row of a buffer ends; 0 if there is none.
        line: The number of the first line.
    """
    buffer, skips = b"", False
    for chunk in content:
        if skips:
            end = chunk.find(b"\n") + 1
            if not end:
                continue
            buffer, skips, line = chunk[end:], False, line + 1
        else:
            buffer += chunk
        while end := end_of_rows(buffer) or _end_of_line(buffer):
            yield Block(buffer[:end], line)
            line += buffer.count(b"\n", 0, end)
            buffer = buffer[end:]
        if len(buffer) > LONGEST:
            yield Block(buffer[:_SHOWN], line, is_whole=False)
            buffer, skips = b"", True
    if buffer:
        yield Block(buffer if buffer.endswith(b"\n") else buffer + b"\n", line)


def _end_of_line(buffer: bytes) -> int:
    """Where the first line ends, if it is taken for a row because no row has an end."""
    return buffer.find(b"\n") + 1 if len(buffer) > LONGEST else 0
