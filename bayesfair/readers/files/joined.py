"""A source with one more column: the labels of several of its columns, joined."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesfair.base.label_encoder import LabelEncoder
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError
from bayesfair.readers.files.headers import missing_column
from bayesfair.readers.files.tables import Part, Source
from bayesfair.typing import Where

__all__ = ["JoinedPart", "joined_label", "with_joined"]


def joined_label(labels: Iterable[str]) -> str:
    """Return labels as one, such that no others give the same: what holds a comma is quoted.

    Examples
    --------
    >>> joined_label(["phone", "US"]), joined_label(["a, b", "c"]), joined_label(["a", "b, c"])
    ('phone, US', '"a, b", c', 'a, "b, c"')
    """
    words = []
    for label in labels:
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow([label])
        words.append(line.getvalue())
    return ", ".join(words)


def with_joined(source: Source, columns: Sequence[str], option: str) -> tuple[Source, str]:
    """Return the source with a column that joins the labels of these, and what it is called.

    Raises
    ------
    DataError
        If one of them is not there.
    """
    for column in columns:
        if column not in source.header:
            raise missing_column(column, option, source.name, source.header)
    name = joined_label(columns)
    while name in source.header:
        name = f"{name} "
    parts = tuple(JoinedPart(part, tuple(columns), name) for part in source.parts)
    return replace(source, header=(*source.header, name), parts=parts), name


def _within(place: str) -> Where:
    return lambda at: f"{place}, value {at + 1}"


@dataclass(frozen=True)
class JoinedPart:
    """A file or frame with the joined column behind its own; see `Part`."""

    part: Part
    columns: tuple[str, ...]
    joined: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.part.name

    @property
    def header(self) -> tuple[str, ...]:
        """Its columns, the joined one last."""
        lost = set(self.columns) - set(self.part.header)
        return self.part.header if lost else (*self.part.header, self.joined)

    @property
    def n_rows(self) -> int | None:
        """Rows, where they are known."""
        return self.part.n_rows

    def holds_text(self, column: str) -> bool:
        """Whether a column is text."""
        return column == self.joined or self.part.holds_text(column)

    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield record batches of the columns."""
        own, encoders = self._own(columns), self._encoders()
        for batch in self.part.batches(own, [*labels, *self.columns]):
            yield self._with(batch, columns, encoders)

    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any:
        """Return the columns of all rows."""
        found = self.part.table(self._own(columns), [*labels, *self.columns])
        return self._with(found, columns, self._encoders())

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return the first rows, None if they cannot be had."""
        found = self.part.sample(self._own(columns), n)
        return None if found is None else self._with(found, columns, self._encoders())

    def _own(self, columns: Sequence[str]) -> list[str]:
        more = self.columns if self.joined in columns else ()
        return list(dict.fromkeys([*(c for c in columns if c != self.joined), *more]))

    def _encoders(self) -> list[LabelEncoder]:
        return [LabelEncoder("group") for _ in self.columns]

    def _with(self, rows: Any, columns: Sequence[str], encoders: Sequence[LabelEncoder]) -> Any:
        import pyarrow as pa

        if self.joined not in columns:
            return rows.select(list(columns))
        key = np.zeros(rows.num_rows, np.int64)
        for name, encoder in zip(self.columns, encoders, strict=True):
            place = f"column {name!r} of {self.name}"
            codes = encoder.encode(rows.column(name), _within(place))
            encoder.check()
            if said := [n for n in encoder.notices() if Notice.of(n).kind == "merged_spellings"]:
                raise DataError(
                    f"{place}: {said[0]} Where groups are made of several columns, write each "
                    "label in one way.",
                    kind="two_spellings",
                    column=name,
                    source=self.name,
                )
            key = np.where((codes < 0) | (key < 0), -1, key * len(encoder.labels) + codes)
        seen, inverse = np.unique(key, return_inverse=True)
        words: list[str | None] = []
        for found in seen.tolist():
            number, label = found, list[str]()
            for encoder in reversed(encoders):
                number, code = divmod(number, len(encoder.labels) or 1)
                label.append(encoder.labels[code] if encoder.labels else "")
            words.append(joined_label(reversed(label)) if found >= 0 else None)
        column = pa.array(words, pa.string()).take(pa.array(inverse))
        return rows.append_column(self.joined, column).select(list(columns))
