"""Compiled kernels on disk: thrown away as soon as any kernel's source changes.

numba stamps each cached function with its own file alone, but machine code holds what the function
calls in other files as well: after an update of one file the others would go on computing with
the old one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

__all__ = ["drop_stale"]

_STAMP = "kernels.stamp"


def _stamp(folder: Path) -> str:
    """Return a digest of the names, sizes and times of the sources in a folder."""
    with os.scandir(folder) as entries:
        sources = sorted(
            (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns)
            for entry in entries
            if entry.name.endswith(".py")
        )
    return hashlib.sha256(repr(sources).encode()).hexdigest()


def drop_stale(folder: Path = Path(__file__).parent) -> int:
    """Delete the compiled kernels of other sources than these; return the number of files.

    Parameters
    ----------
    folder : Path
        Of the sources; the compiled ones lie in its ``__pycache__``.

    Notes
    -----
    Where the folder cannot be written, nothing is deleted: numba then keeps its cache elsewhere, by
    path, and an installation that cannot be written is replaced as a whole.
    """
    cache = folder / "__pycache__"
    stamp = _stamp(folder)
    with contextlib.suppress(OSError):
        if (cache / _STAMP).read_text(encoding="ascii") == stamp:
            return 0
    dropped = 0
    with contextlib.suppress(OSError):
        for pattern in ("*.nbi", "*.nbc"):
            for file in cache.glob(pattern):
                file.unlink(missing_ok=True)
                dropped += 1
        cache.mkdir(exist_ok=True)
        (cache / _STAMP).write_text(stamp, encoding="ascii")
    return dropped
