"""A file or frame with fields of its records as columns: `action.id` is `id` of column `action`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bayesfair.base.arrow_arrays import plain

__all__ = ["WithFields", "with_fields"]


def with_fields(part: Any, fields: Sequence[str]) -> Any:
    """Return a `Part` with each of these fields that lies in a column of records, else as it is."""
    found: dict[str, tuple[str, ...]] = {}
    for field in dict.fromkeys(fields):
        column, *path = field.split(".")
        if path and field not in part.header and column in part.header and "{arm}" not in field:
            head = part.sample([column], 1)
            if head is not None and _inside(head.column(column), path) is not None:
                found[field] = (column, *path)
    return WithFields(part, found) if found else part


def _inside(column: Any, path: Sequence[str]) -> Any:
    """Return what lies at a path in a column of records; None if it has no such field."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in path:
        column = plain(column)
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pc.struct_field(column, name)
    return column


@dataclass(frozen=True)
class WithFields:
    """A file or frame with such fields behind its own columns; see `Part`."""

    part: Any
    fields: dict[str, tuple[str, ...]]

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.part.name)

    @property
    def header(self) -> tuple[str, ...]:
        """Its columns, the fields last."""
        return (*self.part.header, *self.fields)

    @property
    def n_rows(self) -> int | None:
        """Rows, where they are known."""
        rows: int | None = self.part.n_rows
        return rows

    @property
    def notices(self) -> tuple[str, ...]:
        """What was done to make a table of it."""
        return tuple(getattr(self.part, "notices", ()))

    def ranges(self) -> list[tuple[WithFields, int]]:
        """Return parts of it, and the rows that precede them."""
        split = getattr(self.part, "ranges", lambda: [(self.part, 0)])
        return [(replace(self, part=own), before) for own, before in split()]

    def holds_text(self, column: str) -> bool:
        """Whether a column is text, or may be."""
        return column in self.fields or self.part.holds_text(column)

    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield record batches of the columns."""
        import pyarrow as pa

        for batch in self.part.batches(self._own(columns), labels):
            yield from self._with(pa.Table.from_batches([batch]), columns).to_batches()

    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any:
        """Return the columns of all rows."""
        return self._with(self.part.table(self._own(columns), labels), columns)

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return the first rows, None if they cannot be had."""
        found = self.part.sample(self._own(columns), n)
        return None if found is None else self._with(found, columns)

    def _own(self, columns: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(self.fields[c][0] if c in self.fields else c for c in columns))

    def _with(self, rows: Any, columns: Sequence[str]) -> Any:
        import pyarrow as pa

        held = {}
        for c in columns:
            column, *path = self.fields.get(c, (c,))
            found = _inside(rows.column(column), path)
            held[c] = pa.nulls(rows.num_rows) if found is None else found
        return pa.table(held)
