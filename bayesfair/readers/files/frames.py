"""Data frames in memory, of whatever library, through narwhals: none of them is imported here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesfair.base.arrow_arrays import valid_text
from bayesfair.base.checks import shown
from bayesfair.base.json_text import BadJson, once_each
from bayesfair.base.labels import text_of
from bayesfair.errors import DataError
from bayesfair.readers.files.headers import column_names

__all__ = ["Frame", "open_frame"]


@dataclass(frozen=True)
class Frame:
    """A data frame seen through narwhals.

    Attributes
    ----------
    native : object
        The narwhals frame, eager or lazy.
    header : tuple of str
        Column names, trimmed.
    raw : dict
        Trimmed name -> name as it stands in the frame.
    n_rows : int or None
        None for a lazy frame.
    notices : tuple of str
        What was done to make a table of the source.
    """

    native: Any
    header: tuple[str, ...]
    raw: dict[str, str]
    n_rows: int | None
    name: str = "data frame"
    notices: tuple[str, ...] = ()

    def holds_text(self, column: str) -> bool:
        """Whether a column is text, or holds objects of any kind."""
        import narwhals as nw

        kind = self.native.collect_schema()[self.raw[column]]
        return kind in (nw.String, nw.Object, nw.Categorical, nw.Enum, nw.Binary, nw.Unknown)

    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield record batches of the columns."""
        yield from self.table(columns, labels).to_batches(max_chunksize=1 << 16)

    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any:
        """Return the columns as an Arrow table; columns of Python objects become text."""
        import pyarrow as pa

        frame = self._collected(self.native, columns)
        arrays = [
            valid_text(_arrow(frame.get_column(self.raw[c]), c), c, self.name) for c in columns
        ]
        return pa.table(arrays, names=list(columns))

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return the first rows; a column that cannot be read is empty here."""
        import pyarrow as pa

        frame = self._collected(self.native.head(n), columns)
        arrays = []
        for column in columns:
            try:
                found = _arrow(frame.get_column(self.raw[column]), column)
                arrays.append(valid_text(found, column, self.name))
            except DataError:
                arrays.append(pa.chunked_array([pa.nulls(len(frame))]))
        return pa.table(arrays, names=list(columns))

    def _collected(self, frame: Any, columns: Sequence[str]) -> Any:
        import narwhals as nw

        frame = frame.select([self.raw[c] for c in columns])
        return frame.collect("pyarrow") if isinstance(frame, nw.LazyFrame) else frame


def open_frame(source: Any) -> Frame | None:
    """Return the frame, or None if ``source`` is no data frame.

    Raises
    ------
    DataError
        If two columns have the same name.
    """
    import narwhals as nw
    import pyarrow as pa

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    try:
        frame = nw.from_native(source)
    except TypeError:
        return None
    except nw.exceptions.DuplicateError as error:
        raise DataError(f"data frame names a column more than once: {error}") from error
    if frame.implementation.is_pandas():
        frame = nw.from_native(_with_index(frame.to_native()))
    lazy = isinstance(frame, nw.LazyFrame)
    names = frame.collect_schema().names() if lazy else frame.columns
    header = column_names([text_of(name) or "" for name in names], "data frame")
    if not all(isinstance(name, str) for name in names):  # numbered columns, as pandas gives them
        frame = nw.from_native(frame.to_native().set_axis(list(header), axis=1))
        names = header
    raw = dict(zip(header, names, strict=True))
    return Frame(frame, header, raw, None if lazy else len(frame))


def _with_index(frame: Any) -> Any:
    """Return a pandas frame whose index is a column where it has a name, holds times or falls.

    A frame that is indexed by its times would lose them otherwise, and with them its order; row
    numbers that fall say that the rows were turned round.
    """
    index = frame.index
    taken = {}
    present = {str(column).strip() for column in frame.columns}
    for level, named in enumerate(index.names):
        values = index.get_level_values(level)
        kind = getattr(values.dtype, "kind", "")
        told = kind == "M" or (kind in {"i", "u"} and index.nlevels == 1 and _falls(values))
        name = "(index)" if named is None and told else named
        if name is not None and str(name).strip() not in present:
            taken[str(name)] = values
    if not taken or frame.columns.nlevels > 1:
        return frame
    frame = frame.copy(deep=False)
    for place, (name, values) in enumerate(taken.items()):
        frame.insert(place, name, values)
    return frame


def _falls(values: Any) -> bool:
    return bool(len(values) > 2 and values.is_unique and values.is_monotonic_decreasing)


def _arrow(series: Any, column: str) -> Any:
    import narwhals as nw
    import pyarrow as pa

    if series.dtype != nw.Object:
        try:
            array = series.to_arrow()
        # what a library's own types (decimals, objects, dates out of range) make of the conversion
        except (pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError):
            array = _from_values(series, column)
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    # A column of Python objects may mix types (True, "no", 0; times with and without zone). Arrow
    # would convert some of them silently; as text each value stays what it says.
    missing = series.is_null().to_list()
    values = [None if gone else v for v, gone in zip(series.to_list(), missing, strict=True)]
    try:
        values = [_plain(v) for v in values]
    except BadJson as error:
        raise DataError(
            f"column {column!r} of data frame: {error}.", kind="duplicate_field", column=column
        ) from None
    if any(isinstance(v, (list, tuple, dict)) for v in values):
        try:
            return pa.chunked_array([pa.array(values)])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # of several kinds: their text says the same, and is refused by row where it is used
            texts = [None if v is None else v if isinstance(v, str) else _text(v) for v in values]
            return pa.chunked_array([pa.array(texts, pa.string())])
    try:
        texts = [text_of(v) for v in values]
    except UnicodeDecodeError as error:
        raise DataError(
            f"column {column!r} of data frame holds bytes that are not UTF-8 text: "
            f"{error.object[:40]!r}. Write the column as text."
        ) from None
    return pa.chunked_array([pa.array(texts, pa.string())])


def _text(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # thousands of digits
        return f"[{shown(value)}]"


def _plain(value: Any) -> Any:
    """Return arrays as lists, and pairs (what pandas makes of a map) as a record."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    pairs = isinstance(value, list) and value and isinstance(value[0], tuple)
    return once_each(value) if pairs and all(len(pair) == 2 for pair in value) else value


def _from_values(series: Any, column: str) -> Any:
    """Convert value by value what a library cannot hand over whole, such as sparse columns."""
    import pyarrow as pa

    try:
        return pa.array(series.to_list())
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"column {column!r} of data frame holds {series.dtype}, which cannot be read; convert "
            "it to text or numbers first."
        ) from error
