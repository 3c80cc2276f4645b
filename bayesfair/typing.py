"""Names for types that many signatures share: arrays, seeds, sources, models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

__all__ = [
    "Column",
    "FilePath",
    "Flags",
    "Floats",
    "Ints",
    "Labels",
    "Model",
    "Numbered",
    "Progress",
    "Seed",
    "Source",
    "Where",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

Where = Callable[[int], str]
"""Says of a row where it stands, for messages."""

type Progress = bool | Callable[[int, int | None, str], object] | None
"""True: a line on stderr. A function is called as ``(done, total, what)``: 3, 10, "rounds"."""

type Seed = int | np.integer[Any] | np.random.Generator
"""What is drawn from: a whole number from 0 on gives the same draws each time."""

type Labels = Sequence[object]
"""Of arms or items: text, numbers, or what has a text."""

type Column = ArrayLike | Sequence[object]
"""One value for each row: an array, a list, a column of a data frame."""

type FilePath = str | os.PathLike[str]

type Source = (
    FilePath | IO[Any] | IntoFrame | Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]
)
"""What logs are read from: files, data frames (pandas, Polars, Arrow, DuckDB), records."""


class Numbered(Protocol):
    """What tells its numbers: an audit of a log, of several, or of duels."""

    def to_dict(self) -> dict[str, Any]:
        """Return them, JSON-ready."""


type Model = str | ModuleType | Callable[..., Any]
"""The name of a shipped model, or one's own ``build(data) -> pymc.Model``."""
