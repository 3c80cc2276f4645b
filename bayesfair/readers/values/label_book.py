"""Labels are text: what each spelling means, which spellings are one, which only look alike.

Blanks around a label and the two Unicode encodings of one letter (NFC) are the only differences
that are removed, with a notice where this merges two spellings. Case is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import did_you_mean, listed
from bayesfair.base.label_notices import look_alike, merged_spellings
from bayesfair.base.labels import clean_label, in_order, text_of
from bayesfair.base.notices import Notice
from bayesfair.errors import ArmError, DataError
from bayesfair.readers.files.arrow_arrays import codes, plain

__all__ = ["LabelBook", "text_of"]


class LabelBook:
    """Number labels in the order in which they are met, and remember how they were spelt.

    Parameters
    ----------
    what : str
        What messages call a label: "arm", "item", "group".
    known : iterable of str, optional
        The only labels allowed; None = every label met is one.
    refuse : callable, optional
        Words the remedy for a label that is not known: takes it, returns a sentence.
    """

    def __init__(
        self,
        what: str,
        known: Iterable[str] | None = None,
        refuse: Callable[[str], str] | None = None,
    ) -> None:
        self.what = what
        self.open = known is None
        self.codes: dict[str, int] = {}
        self._raw: dict[str, int] = {}
        self._spellings: dict[str, dict[str, None]] = {}
        self._refuse = refuse
        for label in map(clean_label, known or ()):
            if label in self.codes:
                raise ArmError(
                    f"{what}s names {label!r} more than once; each {what} needs its own label."
                )
            self.codes[label] = len(self.codes)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels by number."""
        return tuple(self.codes)

    def code(self, raw: str | None) -> int:
        """Return the number of one spelling; -1 if it is missing, -2 if it is not known."""
        if raw is None:
            return -1
        found = self._raw.get(raw)
        if found is None:
            label = clean_label(raw)
            if not label:
                found = -1
            elif label in self.codes or self.open:
                found = self.codes.setdefault(label, len(self.codes))
                self._spellings.setdefault(label, {})[raw] = None
            else:
                return -2
            self._raw[raw] = found
        return found

    def encode(self, column: Any, where: Callable[[int], str]) -> NDArray[np.int32]:
        """Return the number of each row's label, -1 where it is missing.

        Parameters
        ----------
        column : pyarrow.ChunkedArray
            Labels of any simple type.
        where : callable
            Names the row at a position of the column, with the column.

        Raises
        ------
        ArmError
            If a label is not among the known ones.
        DataError
            If the column holds lists, records, or bytes that are no text.

        Notes
        -----
        Of a dictionary only the entries that some row uses become labels: data frames and files
        keep categories whose rows have been filtered away.
        """
        import pyarrow as pa

        column = plain(column)
        kind = column.type
        if pa.types.is_nested(kind):
            raise DataError(f"{where(0)}: {self.what}s must be simple values, not {kind}.")
        if not pa.types.is_dictionary(kind):
            try:
                column = column.dictionary_encode()
            except pa.ArrowException:
                raise DataError(f"{where(0)}: {self.what}s must be text, not {kind}.") from None
        out = np.empty(len(column), dtype=np.int32)
        start = 0
        for chunk in column.chunks:
            index = codes(chunk)
            values = chunk.dictionary.to_pylist()
            used = np.zeros(len(values) + 1, dtype=np.bool_)
            used[index] = True
            lookup = np.full(len(values) + 1, -1, dtype=np.int32)
            for i in np.flatnonzero(used[:-1]).tolist():
                try:
                    lookup[i] = self.code(text_of(values[i]))
                except UnicodeDecodeError:
                    at = start + int(np.flatnonzero(index == i)[0])
                    raise DataError(
                        f"{where(at)}: the {self.what} {values[i]!r} is not UTF-8 text. Write "
                        f"{self.what}s as text in the source."
                    ) from None
            stop = start + len(chunk)
            lookup.take(index, out=out[start:stop], mode="clip")
            start = stop
        unknown = np.flatnonzero(out == -2)
        if unknown.size:
            first = column[int(unknown[0])].as_py()
            others = {text_of(column[int(u)].as_py()) for u in unknown[:1000]}
            raise ArmError(self._unknown(where(int(unknown[0])), str(text_of(first)), others))
        return out

    def _unknown(self, place: str, raw: str, others: set[str | None]) -> str:
        label = clean_label(raw)
        remedy = self._refuse(label) if self._refuse else f"Add it to {self.what}s=..."
        count = f" ({len(others)} such labels: {listed(sorted(map(str, others)), 3)})"
        hint = did_you_mean(label, self.codes)
        if label.removesuffix(".0") in self.codes:  # a column of numbers with gaps, written as text
            hint = (
                f" Did you mean {label.removesuffix('.0')!r}? Write whole numbers without '.0', or "
                "name the columns as the labels are written."
            )
        return (
            f"{place}: {self.what} {label!r} is not among the {self.what}s {listed(self.codes)}"
            f"{count if len(others) > 1 else ''}.{hint} {remedy}"
        )

    def sort(self) -> NDArray[np.int32]:
        """Renumber the labels in their order (`in_order`); return new number by old number."""
        ordered = in_order(self.codes)
        rank = {label: i for i, label in enumerate(ordered)}
        new = np.array([rank[label] for label in self.codes], dtype=np.int32)
        self.codes = rank
        self._raw = {raw: (int(new[c]) if c >= 0 else c) for raw, c in self._raw.items()}
        return new

    def notices(self) -> list[Notice]:
        """Return what was merged, and what looks alike but was not."""
        spellings = {label: list(raws) for label, raws in self._spellings.items()}
        return merged_spellings(spellings, self.what) + look_alike(self.codes, self.what)
