"""Data frames of Dask: a partition is computed by whoever reads it, here or on a worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bayesfair.errors import BayesfairError, DataError
from bayesfair.readers.files.frames import Frame, open_frame

__all__ = ["DaskPart", "dask_parts"]


@dataclass(frozen=True)
class DaskPart:
    """One partition of a Dask data frame.

    Attributes
    ----------
    frame : dask.dataframe.DataFrame
        With this partition alone.
    like : Frame
        An empty frame with its columns.
    name : str
        What errors call it.
    held : bool
        Whether workers hold it (`persist`): then it is asked of them, which a worker cannot.
    """

    frame: Any
    like: Frame
    name: str
    held: bool
    n_rows: int | None = None

    @property
    def header(self) -> tuple[str, ...]:
        """Column names, trimmed."""
        return self.like.header

    def holds_text(self, column: str) -> bool:
        """Whether a column is text, or holds objects of any kind."""
        return self.like.holds_text(column)

    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield record batches of the columns."""
        yield from self._opened(columns).batches(columns, labels)

    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any:
        """Return the columns as an Arrow table."""
        return self._opened(columns).table(columns, labels)

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return the first rows."""
        return self._opened(columns).sample(columns, n)

    def _opened(self, columns: Sequence[str]) -> Frame:
        stored = [self.like.raw[c] for c in columns]
        stored = [c for c in stored if c in self.frame.columns]  # the others are of its index
        try:
            found = self.frame[stored].compute(scheduler=None if self.held else "synchronous")
        except BayesfairError:
            raise
        except Exception as error:  # of the caller's own graph: whatever it may be
            raise DataError(
                f"{self.name} could not be computed ({type(error).__name__}: {str(error)[:200]}). "
                "Compute it without bayesfair to see why.",
                kind="unreadable", source=self.name,
            ) from error  # fmt: skip
        frame = open_frame(found)
        assert frame is not None
        return frame


def dask_parts(source: Any) -> tuple[DaskPart, ...] | None:
    """Return the partitions of a Dask data frame in their order, None for anything else."""
    module = type(source).__module__
    if not module.startswith(("dask.dataframe", "dask_expr")) or not hasattr(source, "columns"):
        return None
    like = open_frame(source._meta)
    assert like is not None
    graph = source.__dask_graph__()
    held = any(type(value).__name__ == "Future" for value in graph.values())
    n = source.npartitions
    return tuple(
        DaskPart(source.partitions[i], like, f"partition {i} of {n}", held) for i in range(n)
    )
