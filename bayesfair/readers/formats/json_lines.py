"""Long files of JSON lines or of one array, block by block: a first pass finds the columns.

The numbers and labels are those of the file read whole: what a column holds is settled over all
blocks before any of them is handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayesfair.base.labels import text_of
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError
from bayesfair.readers.duels.arena import JsonLines
from bayesfair.readers.files.headers import column_names

__all__ = ["JsonBlocks", "open_blocks"]

_ROWS = 1 << 16

Convert = Callable[[Sequence[Mapping[str, Any]], int], Any]
"""From records, and how many stand before them, to an Arrow table."""


@dataclass(frozen=True)
class JsonBlocks:
    """One file of JSON lines, or of one array of records, that is never held whole.

    Attributes
    ----------
    source : JsonLines
        Its records.
    convert : callable
        Makes a table of some of them.
    header : tuple of str
        Column names, trimmed.
    types : dict of str to pyarrow.DataType
        By the name of a column as it stands in the file.
    n_rows : int
    notices : tuple of str
    """

    source: JsonLines
    convert: Convert
    header: tuple[str, ...]
    types: dict[str, Any]
    n_rows: int
    notices: tuple[Notice, ...] = ()

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.source.name

    def holds_text(self, column: str) -> bool:
        """Whether a column is text."""
        import pyarrow as pa

        kinds = dict(zip(self.header, self.types.values(), strict=True))
        return bool(pa.types.is_string(kinds[column]))

    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield record batches of the columns."""
        for table in self._tables(columns):
            yield from table.to_batches(max_chunksize=_ROWS)

    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any:
        """Return the columns of all rows."""
        import pyarrow as pa

        return pa.concat_tables(list(self._tables(columns)))

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return the first rows."""
        import pyarrow as pa

        found: list[Any] = []
        for table in self._tables(columns):
            found.append(table)
            if sum(map(len, found)) >= n:
                break
        return pa.concat_tables(found).slice(0, n)

    def _tables(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        raw = dict(zip(self.header, self.types, strict=True))
        row = 0
        for records in self.source.records():
            if not records:
                continue
            found = self.convert(records, row)
            row += len(records)
            held = set(found.column_names)
            yield pa.table({
                c: self._whole(found.column(raw[c]), raw[c])
                if raw[c] in held else pa.nulls(len(records), self.types[raw[c]])
                for c in columns
            })  # fmt: skip

    def _whole(self, column: Any, name: str) -> Any:
        """Return a block's column in the type that it has over all blocks."""
        import pyarrow as pa

        kind = self.types[name]
        if column.type == kind:
            return column
        values = column.to_pylist()
        if pa.types.is_string(kind):
            return pa.chunked_array([pa.array(map(text_of, values), kind)])
        try:
            return pa.chunked_array([pa.array(values, kind)])
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise DataError(
                f"key {name!r} of {self.name} holds values of several kinds ({str(error)[:120]}). "
                "Write them alike.", kind="bad_value", column=name, source=self.name,
            ) from error  # fmt: skip


def open_blocks(source: JsonLines, convert: Convert) -> JsonBlocks:
    """Read the file once, and settle its columns.

    Raises
    ------
    DataError
        Naming the first line that cannot be read.
    """
    types: dict[str, Any] = {}
    n_rows = 0
    for records in source.records():
        if not records:
            continue
        found = convert(records, n_rows)
        n_rows += len(records)
        for field in found.schema:
            before = types.get(field.name)
            types[field.name] = field.type if before is None else _both(before, field.type)
    header = column_names(list(types), source.name)
    return JsonBlocks(source, convert, header, types, n_rows)


def _both(one: Any, other: Any) -> Any:
    """Return the type that holds the values of two blocks as it would those of one."""
    import pyarrow as pa

    if one == other:
        return one
    schemas = [pa.schema([("x", kind)]) for kind in (one, other)]
    words = pa.string()
    null = pa.types.is_null(one) or pa.types.is_null(other)
    numeric = all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in (one, other))
    nested = pa.types.is_nested(one) and pa.types.is_nested(other)
    if not (null or numeric or nested):
        return words
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowException, TypeError):
        return words
