"""Decompress xz: Python's own reader takes whatever stands behind the last stream for nothing."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any

__all__ = ["XzStream"]

_PIECE = 1 << 16


class XzStream(io.RawIOBase):
    """A readable stream of what an xz file holds: one or more streams, each whole, and padding.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    lzma.LZMAError
        While it is read: if it is damaged, or holds something else behind a stream.
    EOFError
        If it is truncated.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""  # compressed, not looked at yet
        self._one: lzma.LZMADecompressor | None = lzma.LZMADecompressor()

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 bytes say that the file ends."""
        while True:
            one = self._next()
            if one is None:
                return 0
            if one.needs_input and not self._rest:
                self._rest = self._file.read(_PIECE)
                if not self._rest:
                    raise EOFError("the file ends within a compressed stream")
            found = one.decompress(self._rest, max_length=len(buffer))
            self._rest = one.unused_data if one.eof else b""
            if found:
                buffer[: len(found)] = found
                return len(found)

    def _next(self) -> lzma.LZMADecompressor | None:
        """Return what decompresses the stream at hand, None behind the last one."""
        if self._one is not None and self._one.eof:
            self._one = None
            self._rest = self._rest.lstrip(b"\0")  # padding
            while not self._rest:
                found = self._file.read(_PIECE)
                if not found:
                    return None
                self._rest = found.lstrip(b"\0")
            self._one = lzma.LZMADecompressor()
        return self._one
