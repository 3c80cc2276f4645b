"""How kernels are compiled, and where the machine code is kept between runs.

numba stamps each cached function with its own file alone, but machine code holds what the function
calls in other files as well: after an update of one file the others would go on computing with
the old one. So everything is thrown away as soon as any kernel's source changes.

Where nothing can be written (a hardened container), machine code that was made beforehand by
``bayesfair warm-up`` is read in place; without it the kernels are compiled anew in each process.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

__all__ = ["compiled", "drop_stale", "kernel_cache"]

_FOLDER = Path(__file__).parent
_STAMP = "kernels.stamp"


def _stamp(folder: Path) -> str:
    """Return a digest of the names and contents of the sources in a folder.

    Of the contents, as numba's own stamps are: a copy of the files, in an image for example, keeps
    what was compiled for them.
    """
    digest = hashlib.sha256()
    for source in sorted(folder.rglob("*.py")):
        digest.update(f"{source.name}\0".encode())
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()


def _is_fresh(cache: Path, stamp: str) -> bool:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (cache / _STAMP).read_text(encoding="ascii") == stamp
    return False


def drop_stale(folder: Path = _FOLDER, cache: Path | None = None) -> int:
    """Delete the compiled kernels of other sources than these; return the number of files.

    Parameters
    ----------
    folder : Path
        Of the sources.
    cache : Path, optional
        Where the compiled kernels lie; by default in the ``__pycache__`` of the sources.

    Notes
    -----
    Where the cache cannot be written, nothing is deleted.
    """
    cache = folder / "__pycache__" if cache is None else cache
    stamp = _stamp(folder)
    if _is_fresh(cache, stamp):
        return 0
    dropped = 0
    with contextlib.suppress(OSError):
        for pattern in ("*.nbi", "*.nbc"):
            for file in cache.glob(pattern):
                file.unlink(missing_ok=True)
                dropped += 1
        cache.mkdir(parents=True, exist_ok=True)
        (cache / _STAMP).write_text(stamp, encoding="ascii")
    return dropped


def kernel_cache() -> tuple[Path | None, bool]:
    """Return the folder of the compiled kernels, and whether it can be written.

    Returns
    -------
    folder : Path or None
        numba's choice where one can be written: ``NUMBA_CACHE_DIR``, else beside the sources, else
        in the user's cache. Otherwise the first of them that holds kernels compiled from these
        very sources; None where there is none.
    writable : bool
    """
    places = _places()
    for place in places:
        if _can_write(place):
            return place, True
    stamp = _stamp(_FOLDER)
    return next((place for place in places if _is_fresh(place, stamp)), None), False


def _places() -> list[Path]:
    """Return where numba looks, in its order."""
    file = __file__
    locators = caching.UserWideCacheLocator, caching.InTreeCacheLocator
    found = [Path(one(kernel_cache, file).get_cache_path()) for one in locators[::-1]]
    if numba.config.CACHE_DIR:
        found.insert(0, Path(caching.UserProvidedCacheLocator(kernel_cache, file).get_cache_path()))
    return found


def _can_write(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError:
        return False
    return True


_CACHE, _WRITABLE = kernel_cache()


class _OneFolder(caching.InTreeCacheLocator):  # type: ignore[misc]  # numba carries no types
    """The machine code of every kernel lies in one folder, whichever folder its source is in."""

    def get_cache_path(self) -> str:
        return str(_CACHE)

    def ensure_cache_path(self) -> None:
        """Need no place to write: whether there is one was found out when this was imported."""


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]  # as above
    _locator_classes = (_OneFolder,)


class _Cache(caching.FunctionCache):  # type: ignore[misc]  # as above
    _impl_class = _Implementation

    def save_overload(self, sig: object, data: object) -> None:
        """Keep what was compiled; where nothing can be written, for this process alone."""
        if _WRITABLE:
            super().save_overload(sig, data)


if _WRITABLE:
    drop_stale(cache=_CACHE)
elif _CACHE is None:
    warnings.warn(
        "compiled code cannot be kept: neither the folder of bayesfair nor the user's cache can be "
        "written, so each run compiles anew what it needs (up to a minute). Let NUMBA_CACHE_DIR "
        "name a folder that can be written, or run 'bayesfair warm-up' once where it can.",
        RuntimeWarning,
        stacklevel=2,
    )


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator of every kernel: compiled by numba, kept on disk where that is possible.

    Parameters
    ----------
    **options
        Of ``numba.njit``; ``nogil=True`` is always set, for threads to share the work.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(nogil=True, **options)(function)
        if _CACHE is not None:
            # numba keeps one cache a folder and reads none that it cannot write; there is no
            # public way to ask for another
            kernel._cache = _Cache(function)
        return kernel

    return decorate
