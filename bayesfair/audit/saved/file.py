"""The file of a saved audit as bytes: sealed when it is written, checked before it is opened.

The last line of the file, behind the NetCDF-4 data, which no reader of those minds, holds the
layout and a digest of all bytes before it. Whatever a reader of the file can see is under it:
numbers, labels, attributes, versions. Nothing is parsed before the digest fits.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import listed
from bayesfair.errors import DataError, OptionError

__all__ = ["FORMAT", "Opened", "Origin", "lacking", "opened", "seal_of", "sealed"]

FORMAT = 16
"""Layout of the file. 1 held numbers only, 2 and 3 not all that checks and verdicts need, 4 one
group of tables for each log, 5 and 6 no learned priors or no checkpoints, 11 and 12 a part of the
question only."""

_MAGIC = b"\x89HDF\r\n\x1a\n"
_SEAL = "\nbayesfair-audit format={:05d} blake2b={}\n"
_LENGTH = len(_SEAL.format(0, "0" * 64))
_PATTERN = re.compile(rb"\nbayesfair-audit format=(\d{5}) blake2b=([0-9a-f]{64})\n")

_MOST_PACKED = 1100
"""No more bytes than so many come out of one byte of compressed data (zlib: 1032)."""


class Opened(NamedTuple):
    """A file that is as it was saved."""

    name: str
    file: Any  # h5py.File
    seal: str

    def array(self, at: str, name: str) -> NDArray[Any]:
        """Return the numbers of one variable.

        Raises
        ------
        DataError
            If there is none, or it claims to hold more than the file can.
        """
        import h5py

        place, data = f"{at}/{name}", self.file
        for step in (at, name):
            inner = isinstance(data, h5py.Group) and step in data
            if not inner or not isinstance(data.get(step, getlink=True), h5py.HardLink):
                raise lacking(self.name, f"the variable {place!r}")
            data = data[step]
        if not isinstance(data, h5py.Dataset):
            raise lacking(self.name, f"the variable {place!r}")
        plain = data.dtype.kind in "fiu" and data.shape is not None
        if not plain or data.external or data.is_virtual:
            raise lacking(self.name, f"plain numbers in {place!r}")
        if data.size * data.dtype.itemsize > _MOST_PACKED * data.id.get_storage_size() + 1024:
            raise DataError(
                f"{self.name}: {place!r} claims {data.size * data.dtype.itemsize} bytes, more than "
                "the file can hold. bayesfair never wrote it.",
                kind="hostile_file",
                source=self.name,
            )
        return np.asarray(data[()])


@dataclass
class Origin:
    """The file that an audit was loaded from, as it was then; all that go on from it share this.

    Parameters
    ----------
    path : str
        Where it is.
    seal : str
        Its digest.
    """

    path: str
    seal: str

    @classmethod
    def of(cls, path: Any, seal: str) -> Origin:
        """Remember a file that was read."""
        return cls(os.path.realpath(path), seal)

    def check(self, path: Any) -> None:
        """Refuse to replace the file if it is no longer the one that was read.

        Raises
        ------
        DataError
            If somebody replaced it meanwhile.
        """
        if os.path.realpath(path) != self.path or not os.path.exists(path):
            return
        if seal_of(path) != self.seal:
            raise DataError(
                f"{str(path)!r} was replaced since this audit was read from it, by another run "
                "that went on from it too: saving now would lose what that one added. Go on from "
                "the file as it is now (load it and resume again), or save under another name.",
                kind="replaced",
                source=str(path),
            )

    def replaced(self, path: Any, line: bytes) -> None:
        """Remember what was written in the place of the file."""
        found = _PATTERN.fullmatch(line)
        if os.path.realpath(path) == self.path and found is not None:
            self.seal = found[2].decode()


def sealed(content: Any) -> bytes:
    """Return the last line of a file with this content."""
    return _SEAL.format(FORMAT, _digest(hashlib.blake2b(content, digest_size=32))).encode()


def _digest(whole: Any, layout: int = FORMAT) -> str:
    whole.update(b"%05d" % layout)
    return str(whole.hexdigest())


def seal_of(path: Any) -> str | None:
    """Return the digest that a file says it has; None without one."""
    try:
        with open(path, "rb") as stream:
            found = _last_line(stream)
    except OSError:
        return None
    return None if found is None else found[2].decode()


def _last_line(stream: BinaryIO) -> re.Match[bytes] | None:
    stream.seek(max(stream.seek(0, os.SEEK_END) - _LENGTH, 0))
    return _PATTERN.fullmatch(stream.read(_LENGTH))


@contextlib.contextmanager
def opened(path: Any) -> Iterator[Opened]:
    """Open a saved audit, if it is whole and unchanged.

    Raises
    ------
    DataError
        If it is missing, no NetCDF file, no audit, of another layout, or not as it was saved.
    OptionError
        If `path` is no path.
    """
    import h5py

    if not isinstance(path, (str, os.PathLike)):
        raise OptionError(f"cannot load an audit from {path!r}: give the path of a file.")
    if "\0" in str(path) or not os.path.isfile(path):
        raise DataError(
            f"no file {str(path)!r}; write one with Audit.save or bayesfair audit --save.",
            kind="no_file",
        )
    name = Path(path).name
    try:
        stream = open(path, "rb")
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror}.", kind="no_file") from None
    with stream:
        seal = _checked(stream, name)
        try:
            file = h5py.File(stream, "r")
        except Exception as error:
            raise _unreadable(name, error) from None
        with file:
            yield Opened(name, file, seal)


def _checked(stream: BinaryIO, name: str) -> str:
    """Return the seal of a file that is as it was saved.

    Raises
    ------
    DataError
        Saying what it is instead.
    """
    line = _last_line(stream)
    if line is None:
        raise _unsealed(stream, name)
    layout, seal = int(line[1]), line[2].decode()
    size = stream.seek(0, os.SEEK_END) - _LENGTH
    stream.seek(0)
    whole = hashlib.blake2b(digest_size=32)
    while size:
        block = stream.read(min(size, 1 << 20))
        if not block:
            break
        whole.update(block)
        size -= len(block)
    if _digest(whole, layout) != seal:
        raise _changed(name)
    if layout != FORMAT:
        raise _other_layout(name, layout, "another version")
    stream.seek(0)
    return seal


def _unsealed(stream: BinaryIO, name: str) -> DataError:
    """Return what is wrong with a file without the last line."""
    import h5py

    stream.seek(0)
    if stream.read(len(_MAGIC)) != _MAGIC:
        return _unreadable(name, None)
    try:
        with h5py.File(stream, "r") as file:
            attrs, there = dict(file.attrs), list(file)
            written = np.asarray(attrs.get("bayesfair_format", 1))
            layout = int(written.item()) if written.dtype.kind in "iu" else FORMAT
            made = str(attrs.get("bayesfair", "?"))[:40]
    except Exception as error:
        return _unreadable(name, error)
    if "bayesfair_audit" not in attrs:
        return DataError(
            f"{name} is a NetCDF file but holds no bayesfair audit (it has "
            f"{listed(there) if there else 'no groups'}); Audit.save writes one.",
            kind="no_audit",
            source=name,
        )
    return _changed(name) if layout == FORMAT else _other_layout(name, layout, made)


def _unreadable(name: str, error: Exception | None) -> DataError:
    said = "" if error is None else f": {(str(error).splitlines() or [type(error).__name__])[0]}"
    return DataError(
        f"{name} is not a NetCDF-4 file that can be read, or only a part of one{said}.",
        kind="unreadable",
        source=name,
    )


def _changed(name: str) -> DataError:
    return DataError(
        f"{name} is not as it was saved: it was cut, changed, or written again by another program. "
        "An audit cannot go on from changed numbers; audit the log again.",
        kind="changed",
        source=name,
    )


def _other_layout(name: str, layout: int, made: str) -> DataError:
    by = made if made.startswith("another") else f"bayesfair {made}"
    if layout > FORMAT:
        return DataError(
            f"{name} was written by {by} in format {layout}, newer than format {FORMAT} that this "
            "version reads. Upgrade bayesfair.",
            kind="new_format",
            value=layout,
            source=name,
        )
    return DataError(
        f"{name} was written by {by} in format {layout}, which lacks what this version goes on "
        f"from; it reads format {FORMAT}. Audit the log again and save it, or go on with {by} (the "
        "old numbers are JSON in the file's attribute bayesfair_audit).",
        kind="old_format",
        value=layout,
        source=name,
    )


def lacking(name: str, what: str) -> DataError:
    """Return the refusal of a file that lacks something although its digest fits."""
    return DataError(
        f"{name} lacks {what}: no version of bayesfair wrote it so. Audit the log again and save "
        "it with Audit.save.",
        kind="malformed",
        source=name,
    )
