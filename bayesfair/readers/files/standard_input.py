"""Streams that can be read once, such as standard input: kept in a file while the program runs."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from bayesfair.errors import DataError

__all__ = ["kept"]

_KEPT: dict[str, Path] = {}


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
    folder = Path(tempfile.mkdtemp(prefix="bayesfair-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
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
