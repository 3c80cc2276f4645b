"""Parse blocks of delimited text with Arrow: text as text, plain numbers as numbers at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesfair.kernels.team import usable_cores

__all__ = ["PIECE", "BlockParser"]

PIECE = 1 << 20
"""Bytes that one thread parses at once."""

_ZEROS = b"0" * 200


class BlockParser:
    """Parse blocks of whole records of delimited text.

    `numbers` are those of the columns that are still read as numbers: one with anything but plain
    finite numbers in a block is text from there on.
    """

    def __init__(
        self, header: Sequence[str], delimiter: str, columns: Sequence[str],
        labels: Sequence[str], numbers: Sequence[str],
    ) -> None:  # fmt: skip
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        self._columns, self._labels = list(columns), set(labels)
        self.numbers = [c for c in numbers if c in columns]
        self.threads = usable_cores() > 1
        self._text = pa.string()
        self._encoded = pa.dictionary(pa.int32(), pa.string())
        self._names = list(header)
        self._parsing = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    def _types(self, numbers: Sequence[str]) -> dict[str, Any]:
        import pyarrow as pa

        types = {c: self._encoded if c in self._labels else self._text for c in self._columns}
        return types | dict.fromkeys(numbers, pa.float64())

    def empty(self) -> Any:
        """Return a table without rows."""
        import pyarrow as pa

        kinds = self._types(()).items()
        return pa.table({name: pa.array([], kind) for name, kind in kinds})

    def table(self, block: bytes, *, first: bool) -> Any:
        """Return the records of a block; the first one begins with the header.

        Raises
        ------
        pyarrow.ArrowInvalid
            Naming the record within the block ("Row #3").
        """
        import pyarrow as pa

        if not block:
            return self.empty()
        memory = pa.py_buffer(block)
        if self.threads:  # Arrow's own memory: they may let go of it when the interpreter is gone
            memory = pa.allocate_buffer(len(block))
            memoryview(memory).cast("B")[:] = block
        if self.numbers:
            try:
                found = self._parsed(memory, first, self.numbers, threads=self.threads)
            except pa.ArrowInvalid:  # no numbers, or no records
                found = self._parsed_as_text(memory, first)
                odd = [c for c in self.numbers if not _casts(found.column(c))]
            else:
                odd = _odd(found, self.numbers, block)
                if not odd:
                    return found
            self.numbers = [c for c in self.numbers if c not in odd]
        return self._parsed_as_text(memory, first)

    def _parsed_as_text(self, memory: Any, first: bool) -> Any:
        import pyarrow as pa

        if self.threads:
            try:
                return self._parsed(memory, first, (), threads=True)
            except pa.ArrowInvalid:  # they do not know the record, and take short ones only
                pass
        return self._parsed(memory, first, (), threads=False)

    def _parsed(self, memory: Any, first: bool, numbers: Sequence[str], *, threads: bool) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        reading = arrow_csv.ReadOptions(
            column_names=self._names,
            skip_rows_after_names=int(first),
            use_threads=threads,
            block_size=PIECE if threads else memory.size + 1,
        )
        converting = arrow_csv.ConvertOptions(
            include_columns=self._columns,
            column_types=self._types(numbers),
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            null_values=[""],
        )
        return arrow_csv.read_csv(
            pa.BufferReader(memory), read_options=reading, parse_options=self._parsing,
            convert_options=converting,
        )  # fmt: skip


def _casts(column: Any) -> bool:
    """Whether every text of a column is a plain number."""
    import pyarrow as pa

    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _odd(table: Any, numbers: Sequence[str], block: bytes) -> list[str]:
    """Return which of these columns hold infinity, NaN, or a 0 that too many digits have become."""
    odd: list[str] = []
    tiny: bool | None = None
    for name in numbers:
        for chunk in filter(len, table.column(name).chunks):
            start, values = chunk.offset, np.frombuffer(chunk.buffers()[1], np.float64)
            values = values[start : start + len(chunk)]  # missing ones are 0
            low, high = values.min(), values.max()
            if low <= 0.0 <= high and tiny is None:
                tiny = _may_underflow(block)
            if not (np.isfinite(low) and np.isfinite(high)) or (low <= 0.0 <= high and tiny):
                odd.append(name)
                break
    return odd


def _may_underflow(block: bytes) -> bool:
    """Whether text holds what may be too small for a number: three digits behind e-, or many 0."""
    values = np.frombuffer(block, np.uint8)
    at = np.flatnonzero(values[:-3] == ord("-"))
    at = at[(values[at - 1] | 32) == ord("e")]
    behind = values[at[:, None] + [1, 2, 3]] - ord("0") <= 9
    return bool(behind.all(axis=1).any()) or _ZEROS in block
