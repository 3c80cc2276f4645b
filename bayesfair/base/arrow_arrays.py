"""From Arrow to NumPy without a detour.

Arrow's own `to_numpy` imports pandas where it is installed, which takes longer than reading a small
log. DLPack shares the memory of numbers and loads nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.errors import DataError

__all__ = ["characters", "codes", "is_missing", "pieces", "plain", "taken", "valid_text", "whole"]


def _shared(array: Any) -> NDArray[Any]:
    """Return the memory of a chunk of numbers without missing values."""
    return np.from_dlpack(array)


def pieces(column: Any) -> list[NDArray[Any]]:
    """Return the chunks of a column of numbers, booleans or times as arrays.

    Missing numbers become NaN (integers are then floats); times are datetime64, and must not be
    missing. Nothing is copied where nothing has to be converted.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [piece.tolist() for piece in pieces(pa.chunked_array([[1.5, None]]))]
    [[1.5, nan]]
    >>> pieces(pa.chunked_array([pa.array([0, 1], pa.timestamp("s"))]))[0]
    array(['1970-01-01T00:00:00', '1970-01-01T00:00:01'], dtype='datetime64[s]')
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        unit = f"datetime64[{kind.unit}]"
        return [_shared(chunk.view(pa.int64())).view(unit) for chunk in column.chunks]
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    if column.null_count:
        if not pa.types.is_floating(kind):
            column = column.cast(pa.float64())
        column = column.fill_null(float("nan"))
    return [_shared(chunk) for chunk in column.chunks]


def whole(column: Any) -> NDArray[Any]:
    """Return a column as one array; see `pieces`."""
    found = pieces(column)
    if not found:
        return np.zeros(0)
    return found[0] if len(found) == 1 else np.concatenate(found)


def taken(column: Any, rows: NDArray[np.int64]) -> Any:
    """Return a column at these positions, in their order."""
    import pyarrow as pa

    where = pa.py_buffer(np.ascontiguousarray(rows, np.int64))
    return column.take(pa.Array.from_buffers(pa.int64(), len(rows), [None, where]))


def is_missing(column: Any) -> NDArray[np.bool_]:
    """Return where a column has no value."""
    import pyarrow.compute as pc

    return np.asarray(whole(pc.is_null(column)), dtype=np.bool_)


def characters(chunk: Any) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Return the bytes of a chunk of text, and where each text begins, (n + 1,).

    Examples
    --------
    >>> import pyarrow as pa
    >>> held, begins = characters(pa.array(["no", "a", None, "bc"])[1:])
    >>> bytes(held), begins.tolist()
    (b'abc', [0, 1, 1, 3])
    """
    import pyarrow as pa

    kind = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
    _, ends, data = chunk.buffers()
    if not len(chunk) or data is None:
        return np.empty(0, np.uint8), np.zeros(len(chunk) + 1, kind)
    begins = np.frombuffer(ends, kind)[chunk.offset : chunk.offset + len(chunk) + 1]
    return np.frombuffer(data, np.uint8)[begins[0] : begins[-1]], begins - begins[0]


def codes(chunk: Any) -> NDArray[Any]:
    """Return the positions of a dictionary-encoded chunk, the dictionary's length where missing."""
    import pyarrow as pa

    indices = chunk.indices
    if indices.null_count:  # narrow indices may have no number left for "missing"
        indices = indices.cast(pa.int64()).fill_null(len(chunk.dictionary))
    return _shared(indices)


def plain(column: Any) -> Any:
    """Return a column without the wrappings that most of Arrow's functions do not know.

    UUIDs become their text, other extension types what they store, run-end encoding is undone.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_struct(kind) and len(set(names := [f.name for f in kind])) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(
            f"a column of records has two fields {twice!r}; rename or remove one of them.",
            kind="duplicate_field",
            value=twice,
        )
    if isinstance(kind, pa.UuidType):
        texts = [None if v is None else str(v) for v in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if isinstance(kind, pa.BaseExtensionType):
        return plain(column.cast(kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        import pyarrow.compute as pc

        return pa.chunked_array([pc.run_end_decode(c) for c in column.chunks], kind.value_type)
    return column


def valid_text(column: Any, name: str, source: str) -> Any:
    """Return a column of a file or frame, whose text nobody has checked yet.

    Raises
    ------
    DataError
        If bytes in a column of text are no UTF-8.
    """
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_primitive(kind):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"column {name!r} of {source} is damaged ({str(error)[:120]}). Text must be UTF-8: "
            "write the column anew.",
            kind="not_utf8",
            column=name,
            source=source,
        ) from None
    return column
