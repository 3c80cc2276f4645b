"""The one way to write a file: beside its place, then in its place, whole or not at all.

Whatever ends a run (a kill, a full disk, a fault), the name holds the old content or the new one,
never a part. A link is followed and stays a link, the mode of a file is kept, a device or a pipe is
written to and never replaced. Drafts that a killed process left beside the file (of a device or a
pipe: in the folder for temporary files) are removed by the next one that writes it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bayesfair.errors import OptionError

__all__ = [
    "check_target", "drop_drafts", "held", "replacing", "tree_bytes", "write_bytes", "write_text",
    "write_tree",
]  # fmt: skip

_DRAFT = ".part"
_OPEN: set[Path] = set()
"""Drafts that this process has begun and not finished."""


def check_target(path: Any, option: str) -> Path:
    """Return where to write, or refuse what cannot be a file before any long work.

    Parameters
    ----------
    path : str or Path
        The file asked for.
    option : str
        What it was given as, for the message.

    Raises
    ------
    OptionError
        If it is no path, a folder, or lies in a folder that is not there.
    """
    try:
        target = Path(path)
    except TypeError:
        raise OptionError(
            f"{option}={path!r} must be the name of a file.", column=option, kind="target"
        ) from None
    name = str(path)
    if not name.strip() or "\0" in name or target.is_dir():
        raise OptionError(
            f"{option} {name[:200]!r} must be the name of a file.", column=option, kind="target"
        )
    if not target.parent.is_dir():
        raise OptionError(
            f"{option} {name[:200]!r}: there is no folder {str(target.parent)[:200]!r}. Make it "
            "first.",
            column=option,
            kind="target",
        )
    return target


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[Path]:
    """Give a draft to write; at the end of the block it takes the place of ``path``.

    If the block raises, the draft is removed and what was at ``path`` stays.

    Parameters
    ----------
    path : str or Path
        The file to write. A link is followed; a device or a pipe gets the content of the draft.

    Yields
    ------
    Path
        An empty file with the rights that the final one has. It may be opened by its name.

    Raises
    ------
    OSError
        If the file cannot be written; ``filename`` is that of ``path``, never of the draft.

    Examples
    --------
    >>> folder = tempfile.TemporaryDirectory()
    >>> place = Path(folder.name, "a.txt")
    >>> with replacing(place) as draft:
    ...     size = draft.write_text("whole")
    >>> place.read_text(), len(list(place.parent.iterdir()))
    ('whole', 1)
    >>> folder.cleanup()
    """
    if _is_direct(path):
        place = Path(tempfile.gettempdir(), Path(path).name)
        draft = place.with_name(_draft_name(place.name))
        with _naming(path, draft):
            _sweep(place)
            _OPEN.add(draft)
            try:
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                yield draft
                with draft.open("rb") as content, open(path, "wb") as out:
                    shutil.copyfileobj(content, out, 1 << 20)
            finally:
                draft.unlink(missing_ok=True)
                _OPEN.discard(draft)
        return
    target = Path(os.path.realpath(path))
    draft = target.with_name(_draft_name(target.name))
    with _naming(path, draft):
        _sweep(target)
        _OPEN.add(draft)
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            if target.exists():
                if not os.access(target, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
                _keep_rights(draft, target)
            yield draft
            _settle(draft)
            os.replace(draft, target)
            with contextlib.suppress(OSError):  # not every file system can do so for a folder
                _settle(target.parent)
        finally:
            draft.unlink(missing_ok=True)
            _OPEN.discard(draft)


def drop_drafts() -> None:
    """Remove what this process has begun to write: it is about to end at once.

    A file that is being put in its place at this moment is whole, or the old one.
    """
    for draft in tuple(_OPEN):
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def write_bytes(path: Any, content: bytes | memoryview) -> None:
    """Write a whole file; see `replacing`."""
    with replacing(path) as draft, draft.open("wb") as out:
        out.write(content)


def write_text(path: Any, text: str) -> None:
    """Write a whole text as UTF-8; see `replacing`."""
    write_bytes(path, text.encode("utf-8"))


def _is_direct(path: Any) -> bool:
    """Whether a path is a device or a pipe, or stands for an open file (``/dev/stdout``)."""
    there = os.path.exists(path) and not os.path.isfile(path)
    return there or os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/"))


def tree_bytes(tree: Any, encoding: Mapping[str, Any] | None = None) -> bytes:
    """Return an `xarray.DataTree` as the bytes of a NetCDF-4 file.

    It is made in memory: HDF5 on a full disk ends the process.
    """
    whole = io.BytesIO()
    tree.to_netcdf(whole, engine="h5netcdf", encoding=dict(encoding or {}))
    return whole.getvalue()


def write_tree(tree: Any, path: Any, encoding: Mapping[str, Any] | None = None) -> None:
    """Write an `xarray.DataTree` as NetCDF-4; see `replacing`."""
    write_bytes(path, tree_bytes(tree, encoding))


@contextlib.contextmanager
def held(path: Any) -> Iterator[None]:
    """Keep others who hold the same file out until the end of the block.

    Whoever reads a file, works, and replaces it compares and replaces within one such block: then
    of two who do so at the same time one sees what the other wrote. A file that is not there yet,
    a device, and a file system without locks are not held.

    Parameters
    ----------
    path : str or Path
        The file.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with contextlib.ExitStack() as stack:
        while os.path.isfile(path):
            try:
                place = os.open(path, os.O_RDONLY)
            except OSError:
                break
            closing = stack.enter_context(contextlib.ExitStack())
            closing.callback(os.close, place)
            try:
                fcntl.flock(place, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(place), os.stat(path)):
                    break
            except OSError:
                break
            closing.close()  # it was replaced meanwhile: hold the one that is there now
        yield


@contextlib.contextmanager
def _naming(path: Any, draft: Path) -> Iterator[None]:
    """Let errors of the system name the file that was asked for, not the draft."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename not in (None, str(draft), str(path)):
            raise  # about another file
        code = error.errno
        said = os.strerror(code) if code is not None else f"{error}".splitlines()[0]
        if code == errno.EBUSY:
            said = "mounted by itself, it cannot be replaced; mount its folder instead"
        raise OSError(code, said, str(path)) from error


def _keep_rights(draft: Path, target: Path) -> None:
    """Give the draft the mode and, where allowed, the owner of the file that it will replace."""
    found = target.stat()
    with contextlib.suppress(OSError):
        os.chown(draft, found.st_uid, found.st_gid)
    os.chmod(draft, stat.S_IMODE(found.st_mode))


def _settle(path: Path) -> None:
    """Have the disk hold a file, or the names in a folder, before going on."""
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def _here() -> str:
    """Return a short name of what process numbers mean here: the machine and its container."""
    with contextlib.suppress(OSError):
        number = os.stat("/proc/self/ns/pid").st_ino
        return hashlib.blake2b(
            f"{socket.gethostname()} {number}".encode(), digest_size=4
        ).hexdigest()
    return hashlib.blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


def _draft_name(name: str) -> str:
    # a name may be as long as the file system allows: the draft's must not be longer
    short = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return f".bayesfair-{short}-{_here()}-{os.getpid()}-{secrets.token_hex(3)}{_DRAFT}"


def _sweep(target: Path) -> None:
    """Remove drafts of this file that processes left which no longer run."""
    start = _draft_name(target.name).rsplit("-", 2)[0] + "-"
    for left in target.parent.glob(f"{start}*{_DRAFT}"):
        number = left.name[len(start) :].split("-")[0]
        if number.isdigit() and not _runs(int(number)):
            left.unlink(missing_ok=True)


def _runs(number: int) -> bool:
    if os.name == "nt":  # there, asking would end the process
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
