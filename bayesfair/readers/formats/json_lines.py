"""Long files of JSON lines or of one array, block by block: a first pass finds the columns.

The numbers and labels are those of the file read whole: what a column holds is settled over all
blocks before any of them is handed on.
"""

from __future__ import annotations

import re
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
_SAMPLE = 1 << 20  # bytes of the first rows

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
    plain : bool
        Whether columns are what the keys of the records hold, and no more.
    notices : tuple of str
    """

    source: JsonLines
    convert: Convert
    header: tuple[str, ...]
    types: dict[str, Any]
    n_rows: int
    plain: bool = False
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
        for table in self._tables(columns, head=self.source.lines):
            found.append(table)
            if sum(map(len, found)) >= n:
                break
        return pa.concat_tables(found).slice(0, n)

    def _tables(self, columns: Sequence[str], *, head: bool = False) -> Iterator[Any]:
        import pyarrow as pa

        raw = dict(zip(self.header, self.types, strict=True))
        for found in _converted(self.source, self.convert, self.types, self.plain, head=head):
            held = set(found.column_names)
            yield pa.table({
                c: self._whole(found.column(raw[c]), raw[c])
                if raw[c] in held else pa.nulls(found.num_rows, self.types[raw[c]])
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


def open_blocks(source: JsonLines, convert: Convert, *, plain: bool = False) -> JsonBlocks:
    """Read the file once, and settle its columns; `plain`: `convert` makes one of each key.

    Raises
    ------
    DataError
        Naming the first line that cannot be read.
    """
    types: dict[str, Any] = {}
    n_rows = 0
    for found in _converted(source, convert, types, plain):
        n_rows += found.num_rows
        for field in found.schema:
            before = types.get(field.name)
            types[field.name] = field.type if before is None else _both(before, field.type)
    header = column_names(list(types), source.name)
    return JsonBlocks(source, convert, header, types, n_rows, plain)


def _converted(
    source: JsonLines, convert: Convert, types: dict[str, Any], plain: bool, *, head: bool = False
) -> Iterator[Any]:
    """Yield a table of each block of records, by Arrow where it reads as is read here.

    `types`, as far as they are known, may grow meanwhile. `head`: of some of the first lines.
    """
    row = 0
    if not (plain and source.lines):
        for records in [source.head()] if head else source.records():
            if records:
                yield convert(records, row)
            row += len(records)
        return
    line = 1
    for block in [source.first_lines(_SAMPLE)] if head else source.blocks():
        if not types:  # the first lines tell, as a rule, what the others hold
            schema = convert(source.head(), 0).schema
            types.update(zip(schema.names, schema.types, strict=True))
        found = _by_arrow(block, types)
        if found is None and (records := source.records_of(block, row + 1, line)):
            found = convert(records, row)
        if found is not None:
            row += found.num_rows
            yield found
        line += block.count(b"\n")


_TWO = re.compile(rb"\}[ \t\r]*\{")  # records in a line
_TINY = re.compile(rb"[eE]-[0-9]{3}")


def _by_arrow(block: bytes, types: Mapping[str, Any]) -> Any:
    """Return a block as a table of these columns, None where it has to be looked at.

    Arrow takes words for numbers, numbers that are too small to be held, and several records in a
    line; halves of characters, escaped, it may take. All else that it takes is JSON.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if _TWO.search(block) or (b"\\u" in block and (b"\\ud" in block or b"\\uD" in block)):
        return None
    parse = arrow_json.ParseOptions(
        explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="error"
    )
    read = arrow_json.ReadOptions(block_size=len(block) + 1, use_threads=False)
    try:
        if not block.isascii():
            block.decode()
        found = arrow_json.read_json(pa.py_buffer(block), read, parse)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    n_lines = block.count(b"\n") + (block[-1:] != b"\n")
    numbers = [column for chunked in found.columns for column in _floats(chunked)]
    if found.num_rows != n_lines or not all(map(_finite, numbers)):
        return None
    return None if any(map(_has_zero, numbers)) and _may_be_tiny(block) else found


def _may_be_tiny(block: bytes) -> bool:
    """Whether a block may hold numbers that are too small to be held."""
    exponents = b"e-" in block or b"E-" in block
    return b"0" * 300 in block or (exponents and _TINY.search(block) is not None)


def _floats(column: Any) -> list[Any]:
    """Return the columns of floats in a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_struct(column.type):
        inner = [pc.struct_field(column, i) for i in range(column.type.num_fields)]
        return [one for field in inner for one in _floats(field)]
    if pa.types.is_list(column.type):
        return _floats(pc.list_flatten(column))
    return [column] if pa.types.is_floating(column.type) else []


def _finite(column: Any) -> bool:
    import pyarrow.compute as pc

    return pc.all(pc.is_finite(column)).as_py() is not False


def _has_zero(column: Any) -> bool:
    import pyarrow.compute as pc

    return pc.any(pc.equal(column, 0.0)).as_py() is True


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
