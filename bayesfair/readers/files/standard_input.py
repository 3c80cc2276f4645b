"""Standard input, pipes and UTF-16 text: kept in a file of UTF-8 while the program runs."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from bayesfair.errors import DataError

__all__ = ["as_utf8", "kept", "new_folder"]

_KEPT: dict[str, Path] = {}


def new_folder() -> Path:
    """Return a folder that is there while the program runs."""
    folder = Path(tempfile.mkdtemp(prefix="bayesfair-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def as_utf8(path: Path) -> Path:
    """Return UTF-16 text with its mark as a file of UTF-8 of the same name, with the same lines.

    Raises
    ------
    DataError
        If it is no UTF-16 throughout.
    """
    new = new_folder() / path.name
    try:
        with (
            path.open(encoding="utf-16", newline="") as old,
            new.open("w", encoding="utf-8", newline="") as file,
        ):
            shutil.copyfileobj(old, file)
    except UnicodeError as error:
        raise DataError(
            f"{path.name} begins as UTF-16 text, but is none ({error}); save it as UTF-8.",
            kind="not_utf8",
            source=path.name,
        ) from error
    return new


def kept(text: str, stream: Any = None) -> Path:
    """Return a file with all that a stream holds; the same stream is read once.

    Parameters
    ----------
    text : str
        ``-`` (standard input), or the path of a pipe.
    stream : file object, optional
        An open file or buffer, read from where it stands.

    Raises
    ------
    DataError
        If nothing comes, or it cannot be read.
    """
    if stream is None and text in _KEPT:
        return _KEPT[text]
    folder = new_folder()
    path = folder / "standard input" if text == "-" else folder / (Path(text).name or "stream")
    try:
        with path.open("wb") as file:
            if stream is not None:
                data = stream.read()
                file.write(data.encode("utf-8") if isinstance(data, str) else data)
            elif text == "-":
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with Path(text).open("rb") as source:
                    shutil.copyfileobj(source, file)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path.name} cannot be read ({error}). Write it to a file first.", kind="unreadable"
        ) from error
    if not path.stat().st_size:
        raise DataError(
            f"{path.name} is empty; a log was expected from it.", kind="empty", source=path.name
        )
    if stream is None:
        _KEPT[text] = path
    return path
