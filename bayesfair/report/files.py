"""The files a report is about: their names, sizes and digests."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from bayesfair.errors import DataError
from bayesfair.readers.files.paths import files_of
from bayesfair.typing import FilePath

__all__ = ["Digest", "digests"]

_MOST = 20


class Digest(NamedTuple):
    """A file: its name without folders, its size in bytes, its SHA-256 in hexadecimal."""

    name: str
    size: int
    sha256: str


def digests(source: FilePath | None) -> list[Digest]:
    """Return the digests of the files that a path, a folder or a glob means.

    Of more than 20 files one digest stands for all: that of the lines that ``sha256sum`` prints
    for them, in the order in which they are read.
    """
    if source is None:
        return []
    found = []
    for path in files_of(str(source))[0]:
        try:
            with path.open("rb") as file:
                value = hashlib.file_digest(file, "sha256").hexdigest()
            found.append(Digest(path.name, path.stat().st_size, value))
        except OSError as error:
            raise DataError(
                f"cannot read {path.name!r} to give its digest: {error.strerror or error}."
            ) from None
    if len(found) <= _MOST:
        return found
    lines = "".join(f"{one.sha256}  {one.name}\n" for one in found)
    total = sum(one.size for one in found)
    return [Digest(f"{len(found)} files", total, hashlib.sha256(lines.encode()).hexdigest())]
