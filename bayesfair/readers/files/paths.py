"""Files that a path, a folder or a glob means."""

from __future__ import annotations

import errno
import functools
import glob
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayesfair.base.checks import did_you_mean, listed
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.files.standard_input import kept, new_folder

__all__ = ["files_of", "kind_of", "single_file"]

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_TEXT_SUFFIXES = {".csv", ".tsv", ".txt"}
_JSON_SUFFIXES = {".json", ".jsonl", ".ndjson", ".dsjson"}
_TABLE_SUFFIXES = {".arrow": "Arrow", ".feather": "Arrow", ".orc": "ORC", ".vw": "Vowpal Wabbit"}


def _natural(path: Path) -> list[Any]:
    """Sort part-2 before part-10."""
    return [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", str(path))]


def _is_log(path: Path, base: Path | None = None) -> bool:
    """Leave out what tools write beside the data: `_SUCCESS`, `_delta_log/`, `.part.crc`."""
    names = path.relative_to(base).parts if base else path.parts[-1:]
    return path.is_file() and not any(name.startswith((".", "_")) for name in names)


def kind_of(path: Path) -> str:
    """Return what a file's name says that it is: "Parquet", "JSON", "Arrow", "text", ... or ""."""
    suffixes = {s.lower() for s in path.suffixes}
    if suffixes & {".parquet", ".pq"}:
        return "Parquet"
    if suffixes & _JSON_SUFFIXES:
        return "JSON"
    for suffix, kind in _TABLE_SUFFIXES.items():
        if suffix in suffixes:
            return kind
    return "text" if suffixes & _TEXT_SUFFIXES else ""


def single_file(source: Any, what: str) -> Path:
    """Return the path of a source that is one file: JSON and ballots are not joined.

    Parameters
    ----------
    source : path
        A file, or a glob that means one.
    what : str
        What messages call its kind: ``"JSON"``.

    Raises
    ------
    DataError
        If there is no such file, or more than one.
    OptionError
        If `source` is no path.
    """
    text = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise OptionError(
            f"{what} is read from a file: give its path, got {type(source).__name__}.",
            kind="not_a_file",
            column="source",
        )
    with _explained(text):
        path = Path(text).expanduser()
        if path.is_dir():
            raise DataError(
                f"{text!r} is a folder; {what} is read from one file. Name the file.",
                kind="not_a_file",
                value=text,
            )
        files, _ = _found(text)
        if len(files) > 1:
            raise DataError(
                f"{text!r} matches {len(files)} files ({listed([p.name for p in files], 3)}); "
                f"{what} is read from one file. Name one of them, or join them first.",
                kind="not_a_file",
                value=text,
            )
        with files[0].open("rb"):  # may it be read?
            return files[0]


def files_of(text: str) -> tuple[list[Path], Path | None]:
    """Return the files that a path means, and the folder above them where it names one.

    Raises
    ------
    DataError
        If there are none, or they cannot be read.
    """
    with _explained(text):
        return _found(text)


@contextmanager
def _explained(text: str) -> Iterator[None]:
    """Word what the file system says of a path."""
    try:
        yield
    except PermissionError as error:
        raise DataError(
            f"no permission to read {error.filename or text!r}; change its permissions, or copy "
            "the log to where it may be read."
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        shown = text if len(text) <= 80 else f"{text[:80]}... ({len(text)} characters)"
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(
            f"{shown!r} is no path that can be opened ({reason}). Give a CSV or Parquet file, a "
            "folder of them, or a glob.",
            kind="unreadable",
            value=shown,
        ) from error


def _readable(folder: Path, *, deep: bool) -> None:
    """Refuse a folder that may not be listed; a search would silently find nothing in it."""

    def refuse(error: OSError) -> None:
        raise error

    for _ in os.walk(folder, onerror=refuse):
        if not deep:
            break
    if not os.access(folder, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


@functools.cache
def _fetched(text: str) -> tuple[list[Path], Path | None]:
    """Return what an address means, copied beside the running program (fsspec)."""
    said = f"{text!r} is an address, which "
    try:
        import fsspec
    except ImportError:
        raise DataError(
            f"{said}is read where fsspec is installed: pip install 'bayesfair[remote]'. Or "
            "download the log first, or pass a frame of pandas, Polars or DuckDB.",
            kind="not_local",
            value=text,
        ) from None
    try:
        remote, path = fsspec.core.url_to_fs(text)
        if not remote.isfile(path) and remote.isdir(path):
            folder = new_folder() / (str(path).rstrip("/").rpartition("/")[2] or "log")
            remote.get(path, str(folder), recursive=True)
            return _found(str(folder))
        one = not glob.has_magic(path) or remote.isfile(path)
        names = [path] if one else sorted(remote.glob(path))
        local = [new_folder() / str(name).rstrip("/").rpartition("/")[2] for name in names]
        for name, target in zip(names, local, strict=True):
            remote.get_file(name, str(target))
    except DataError:
        raise
    except Exception as error:  # each file system has its own kinds
        raise DataError(
            f"{said}could not be read ({type(error).__name__}: {str(error)[:200]}). Download the "
            "log first, or pass a frame of pandas, Polars or DuckDB.",
            kind="not_local",
            value=text,
        ) from error
    if not local:
        raise DataError(f"no file matches {text!r}.", kind="no_file", value=text)
    return sorted(local, key=lambda path: _natural(Path(path.name))), None


def _found(text: str) -> tuple[list[Path], Path | None]:
    if not text.strip():  # Python takes it for the working folder
        raise DataError(
            "the path is empty. Give a CSV or Parquet file, a folder of them, or a glob.",
            kind="not_a_file",
            value=text,
        )
    path = Path(text).expanduser()
    if path.is_file():
        return [path], None
    if _ADDRESS.match(text):
        return _fetched(text)
    if text == "-" or (path.exists() and not path.is_dir()):  # what can be read once
        return [kept(text)], None
    if path.is_dir():
        _readable(path, deep=True)
        inside = [p for p in path.rglob("*") if _is_log(p, path) and kind_of(p)]
        kinds = {kind_of(p) for p in inside}
        if not inside:
            raise DataError(
                f"folder {text!r} holds no Parquet, JSON or CSV files, nor Arrow or ORC."
            )
        if len(kinds) > 1:
            ends = Counter(p.name[p.name.index(".") :] for p in inside)
            most = os.path.join(text, f"*{ends.most_common(1)[0][0]}")
            raise DataError(
                f"folder {text!r} holds both {' and '.join(sorted(kinds))} files; name one kind, "
                f"for example {most!r}.",
                kind="mixed_formats",
                value=text,
            )
        return sorted(inside, key=_natural), path
    if glob.has_magic(text):
        fixed = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
        if fixed.is_dir():
            _readable(fixed, deep=False)
        found = [Path(p) for p in glob.glob(str(path), recursive=True)]
        found = [p for p in found if _is_log(p, fixed)]
        if not found:
            raise DataError(f"no file matches {text!r}.")
        return sorted(found, key=_natural), None
    near = path.parent if path.parent.is_dir() else Path()
    known = [p.name for p in near.iterdir()] if path.parent.is_dir() else []
    ballots = path.suffix.lower() in (".soc", ".soi", ".toc", ".toi")
    rest = "" if ballots else " Give a CSV or Parquet file, a folder of them, or a glob."
    raise DataError(
        f"no such file: {text!r}.{did_you_mean(path.name, known)}{rest}",
        kind="no_file",
        value=text,
    )
