"""Parquet files: record batches in constant memory, and whole tables; row 1 is the first row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bayesfair.base.arrow_arrays import valid_text
from bayesfair.errors import DataError
from bayesfair.readers.files.headers import column_names

__all__ = ["ParquetPart", "open_parquet"]

_PARTITION = 2_000_000
"""Most rows that one worker of a cluster reads at a time, if row groups are no larger."""

_ROWS, _VALUES = 1 << 17, 1 << 22
"""Most rows (twice as many where they are a row group), and values in all columns, that are decoded
at a time: 32 MB."""


@dataclass(frozen=True)
class ParquetPart:
    """One Parquet file, with the constant columns that its folder names give (`day=2024-01-05`)."""

    path: Path
    name: str
    header: tuple[str, ...]
    raw: dict[str, str]
    constants: dict[str, str | None]
    n_rows: int
    nested: frozenset[str] = frozenset()  # lists and records, which have no column of their name
    text: frozenset[str] = frozenset()
    groups: tuple[int, ...] | None = None  # row groups, if not all

    def ranges(self) -> list[tuple[ParquetPart, int]]:
        """Return parts of a few row groups each, and the rows that precede them.

        Of the same file they are always the same, whoever reads them.
        """
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        found: list[tuple[ParquetPart, int]] = []
        held: list[int] = []
        before = n = 0
        for g, size in enumerate(sizes):
            if held and n + size > _PARTITION:
                found.append((self._of(held, n), before))
                held, before, n = [], before + n, 0
            held.append(g)
            n += size
        return [*found, (self._of(held, n), before)]

    def _of(self, groups: list[int], n_rows: int) -> ParquetPart:
        return replace(self, groups=tuple(groups), n_rows=n_rows)

    def holds_text(self, column: str) -> bool:
        """Whether a column is stored as text."""
        return column in self.text or column in self.constants

    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield batches of rows with these columns, as Arrow tables."""
        import pyarrow as pa

        stored = [self.raw[c] for c in columns if c in self.raw]
        try:
            with self._opened(labels) as file:
                for batch in self._decoded(file, stored):
                    yield pa.record_batch(self._arrays(batch, columns), names=list(columns))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._damaged(error) from error

    def _decoded(self, file: Any, stored: list[str]) -> Iterator[Any]:
        """Yield batches; a row group that fits is decoded whole: two thirds of the time."""
        most = _VALUES // max(1, len(stored))

        def fits(group: int) -> bool:
            n = file.metadata.row_group(group).num_rows
            return bool(stored) and _ROWS // 2 <= n <= min(2 * _ROWS, most)

        rows = max(1 << 12, min(_ROWS, most))
        groups = range(file.num_row_groups) if self.groups is None else self.groups
        for whole, some in groupby(groups, fits):
            if whole:
                for group in some:
                    yield from file.read_row_group(group, columns=stored).to_batches()
            else:
                yield from file.iter_batches(rows, row_groups=list(some), columns=stored)

    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any:
        """Return all rows of these columns as an Arrow table."""
        import pyarrow as pa

        stored = [self.raw[c] for c in columns if c in self.raw]
        try:
            with self._opened(labels) as file:
                table = (
                    file.read(columns=stored)
                    if self.groups is None
                    else file.read_row_groups(self.groups, columns=stored)
                )
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._damaged(error) from error
        return pa.table(self._arrays(table, columns), names=list(columns))

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return the first rows, None if they are damaged: the reading says where."""
        import pyarrow as pa

        stored = [self.raw[c] for c in columns if c in self.raw]
        try:
            with self._opened(()) as file:
                batch = next(file.iter_batches(batch_size=n, columns=stored), None)
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            return None
        if batch is None:
            return None
        rows = pa.Table.from_batches([batch])
        return pa.table(self._arrays(rows, columns), names=list(columns))

    def _opened(self, labels: Sequence[str]) -> Any:
        import pyarrow.parquet as pq

        encoded = [self.raw[c] for c in labels if c in self.raw and c not in self.nested]
        # reading ahead of a whole file would hold all of it in memory; of a column, a little is at
        # hand at a time: what is decompressed from it still lies in the cache
        return pq.ParquetFile(
            self.path, pre_buffer=False, buffer_size=1 << 16, read_dictionary=encoded
        )

    def _arrays(self, rows: Any, columns: Sequence[str]) -> list[Any]:
        import pyarrow as pa

        return [
            valid_text(rows.column(self.raw[c]), c, self.name)
            if c in self.raw
            else pa.repeat(pa.scalar(self.constants[c], pa.string()), rows.num_rows)
            for c in columns
        ]

    def _damaged(self, error: Exception) -> DataError:
        if isinstance(error, FileNotFoundError):
            return DataError(
                f"{self.name} was there when the log was opened, and is gone. Put it back, or read "
                "the log anew.", kind="no_file", value=str(self.path), source=self.name,
            )  # fmt: skip
        return DataError(
            f"{self.name} is damaged and cannot be read to its end ({str(error)[:200]}); copy it "
            "again or write it anew."
        )


def open_parquet(path: Path, base: Path | None) -> ParquetPart:
    """Open a Parquet file; columns in the names of its folders below `base` count too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names, n_rows = file.schema_arrow.names, file.metadata.num_rows
            kinds = file.schema_arrow.types
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path.name} starts as Parquet, but its end is missing or damaged: the file is "
            f"truncated ({str(error)[:120]}). Copy it again or write it anew."
        ) from error
    constants: dict[str, str | None] = {}
    for folder in path.relative_to(base).parent.parts if base else ():
        key, equal, value = folder.partition("=")
        if equal and key not in names:
            missing = value == "__HIVE_DEFAULT_PARTITION__"
            constants[key] = None if missing else unquote(value)
    header = column_names((*names, *constants), path.name)
    raw = dict(zip(header, names, strict=False))
    typed = zip(header, kinds, strict=False)
    nested = frozenset(column for column, kind in typed if pa.types.is_nested(kind))
    typed = zip(header, kinds, strict=False)
    text = frozenset(column for column, kind in typed if _is_text(kind))
    return ParquetPart(path, path.name, header, raw, constants, n_rows, nested, text)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return not (
        pa.types.is_nested(inner) or pa.types.is_primitive(inner) or pa.types.is_decimal(inner)
    )
