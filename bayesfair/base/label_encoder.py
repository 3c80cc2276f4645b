"""The one encoder of labels: columns of arms, items and groups as positions among their labels.

Blanks around a label, the two Unicode encodings of one letter (NFC) and the ".0" of a whole number
are the only differences that are removed, with a notice where this merges two spellings. Case is
never changed. What may be one label or two, or may be none at all, is refused unless the caller has
named the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import codes, plain
from bayesfair.base.checks import as_sequence, did_you_mean, listed
from bayesfair.base.label_notices import like_missing, look_alike, merged_spellings, one_number
from bayesfair.base.labels import clean_label, in_order, labels_of, text_of
from bayesfair.base.notices import Notice
from bayesfair.errors import ArmError, DataError
from bayesfair.typing import Where

__all__ = ["Encoded", "LabelEncoder", "encoded", "in_order_met"]

_SAMPLE = 50_000


class Encoded(NamedTuple):
    """A column as positions in the labels seen; -1 = missing."""

    codes: NDArray[np.int32]
    labels: tuple[str, ...]


class LabelEncoder:
    """Number labels in the order in which they are met, and remember how they were spelt.

    Parameters
    ----------
    what : str
        What messages call a label: "arm", "item", "group".
    known : iterable, optional
        The only labels allowed, each taken for a label whatever it looks like; None = every label
        met is one.
    remedy : callable, optional
        Words the remedy for a label that is not known: takes it, returns a sentence.

    Examples
    --------
    >>> arms = LabelEncoder("arm")
    >>> arms.encode(["b", "a", None, " b"]).tolist(), arms.labels
    ([0, 1, -1, 0], ('b', 'a'))
    >>> arms.sort().tolist(), arms.labels
    ([1, 0, -1], ('a', 'b'))
    """

    def __init__(
        self,
        what: str = "item",
        known: Iterable[Any] | None = None,
        remedy: Callable[[str], str] | None = None,
    ) -> None:
        self.what = what
        self.open = known is None
        self.codes: dict[str, int] = {
            label: i for i, label in enumerate(labels_of(known, what) if known is not None else ())
        }
        self._raw: dict[str, int] = {}
        self._spellings: dict[str, dict[str, None]] = {}
        self._first: dict[str, str] = {}  # where a doubtful label stands first
        self._remedy = remedy

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

    def encode(self, values: Any, where: Where = "position {}".format) -> NDArray[np.int32]:
        """Return the number of each row's label, -1 where it is missing.

        Parameters
        ----------
        values : sequence, array, Arrow array or series of any data frame library
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
        quick = _of_strings(values) if isinstance(values, (list, tuple)) else None
        column: Any = None if quick else self._dictionaries(values, where)
        n_labels = len(self.codes)
        chunks = [quick] if quick else [(codes(c), c.dictionary.to_pylist()) for c in column.chunks]
        out = np.empty(sum(len(index) for index, _ in chunks), dtype=np.int32)
        start = 0
        for index, entries in chunks:
            lookup = np.array([*(self._raw.get(e, -2) for e in entries), -1], dtype=np.int32)
            used = np.zeros(len(lookup), dtype=np.bool_)
            if (lookup == -2).any():  # what was met before needs no look at the rows
                used[index] = lookup[index] == -2
            for i in np.flatnonzero(used).tolist():
                try:
                    lookup[i] = self.code(text_of(entries[i]))
                except UnicodeDecodeError:
                    at = start + int(np.flatnonzero(index == i)[0])
                    raise DataError(
                        f"{where(at)}: the {self.what} {entries[i]!r} is not UTF-8 text. Write "
                        f"{self.what}s as text in the source.",
                        kind="not_text",
                        value=repr(entries[i]),
                    ) from None
            stop = start + len(index)
            lookup.take(index, out=out[start:stop], mode="clip")
            start = stop
        if self.open and len(self.codes) > n_labels:
            self._note_doubts(out, where)
        unknown = np.flatnonzero(out == -2)
        if unknown.size:
            rows = [int(u) for u in unknown[:1000]]
            raw = [_at(column, values, row) for row in rows]
            raise self._unknown(where(rows[0]), clean_label(raw[0]), set(map(clean_label, raw)))
        return out

    def _dictionaries(self, values: Any, where: Where) -> Any:
        """Return a column of labels as dictionaries of Arrow."""
        import pyarrow as pa

        column = plain(_arrow(values, self.what))
        kind = column.type
        if pa.types.is_nested(kind):
            how = "Write one in each row"
            if pa.types.is_struct(kind):
                how = f"Name one of its fields behind a dot: {listed([f.name for f in kind], 6)}"
            raise DataError(
                f"{where(0)}: the {self.what}s are {kind}; a label is one value, text or a number. "
                f"{how}.",
                kind="not_simple",
                value=str(kind),
            )
        if pa.types.is_dictionary(kind):
            return column
        try:
            return column.dictionary_encode()
        except pa.ArrowException:
            raise DataError(
                f"{where(0)}: {self.what}s must be text, not {kind}.",
                kind="not_simple",
                value=str(kind),
            ) from None

    def _unknown(self, place: str, label: str, others: set[str]) -> ArmError:
        remedy = self._remedy(label) if self._remedy else (
            f"Add it to {self.what}s=..., or leave {self.what}s out to use the labels seen."
        )  # fmt: skip
        count = f" ({len(others)} such labels: {listed(sorted(others), 3)})"
        return ArmError(
            f"{place}: {self.what} {label!r} is not among the {self.what}s {listed(self.codes)}"
            f"{count if len(others) > 1 else ''}.{did_you_mean(label, self.codes)} {remedy}",
            kind="unknown_arm",
            value=label,
        )

    def sort(self) -> NDArray[np.int32]:
        """Renumber the labels that were met in their order (`in_order`), doubts refused (`check`).

        Returns
        -------
        (labels + 1,) array of int32
            New number by old number; the last entry, of -1, stays -1.
        """
        self.check()
        rank = {label: i for i, label in enumerate(in_order(self.codes))}
        old = self.codes
        new = np.full(max(old.values(), default=-1) + 2, -1, np.int32)
        for label, number in old.items():
            new[number] = rank[label]
        self.codes = rank
        self._raw = {raw: int(new[c]) for raw, c in self._raw.items()}
        return new

    def settled(self, *columns: NDArray[np.int32]) -> tuple[NDArray[np.int32], ...]:
        """Return columns of numbers with the labels in their order, once all were encoded.

        Labels that were met but are in none of the columns are forgotten. Known labels keep their
        order.
        """
        if not self.open:
            return columns
        used = np.zeros(len(self.codes) + 1, dtype=np.bool_)
        for column in columns:
            used[column] = True
        self.codes = {label: number for label, number in self.codes.items() if used[number]}
        self._raw = {raw: c for raw, c in self._raw.items() if used[c]}
        new = self.sort()
        return tuple(new[column] for column in columns)

    # -- doubts ----------------------------------------------------------------------------------

    def _note_doubts(self, out: NDArray[np.int32], where: Where) -> None:
        """Note where labels stand first that may be none, or the same as others."""
        labels = self.labels
        doubtful = {*like_missing(labels), *(a for group in one_number(labels) for a in group)}
        for label in doubtful - self._first.keys():
            rows = np.flatnonzero(out == self.codes[label])
            if rows.size:
                self._first[label] = f"{where(int(rows[0]))}: "

    def check(self, declared: str | None = None, *, apart: bool = True) -> None:
        """Refuse labels that nobody declared and that may be none, or one in two spellings.

        With `apart` false two spellings of one number may stand: `alike` says of them.

        Raises
        ------
        ArmError
            Naming the first row of each.
        """
        if not self.open:
            return
        what, article = self.what, "an" if self.what[0] in "aeiou" else "a"
        for label in like_missing(label for label in self.codes if label != declared):
            raise ArmError(
                f"{self._first.get(label, '')}{label!r} spells a missing {what}. Where none is "
                f"known, leave the field empty; if it is the label of {article} {what}, "
                f"{_declare(what)}.",
                kind="label_like_missing",
                column=what,
                value=label,
            )
        if apart and (doubt := self.alike()) is not None:
            raise doubt

    def alike(self) -> ArmError | None:
        """Return the error of labels that write one number in different ways; None without any."""
        what = self.what
        for group in one_number(self.codes) if self.open else []:
            places = "; ".join(f"{self._first.get(a, '')}{a!r}" for a in group[:3])
            return ArmError(
                f"{what}s that write one number in different ways ({places}) may be one {what} or "
                f"several. If they are one, give it one spelling in the source; if not, "
                f"{_declare(what)}.",
                kind="labels_alike",
                column=what,
                value=group,
            )
        return None

    def notices(self) -> list[Notice]:
        """Return what was merged, and what looks alike but was not."""
        spellings = {a: list(raws) for a, raws in self._spellings.items() if a in self.codes}
        return merged_spellings(spellings, self.what) + look_alike(self.codes, self.what)


def _declare(what: str) -> str:
    return {
        "arm": "name all arms with arms=...", "item": "name all items with items=...",
    }.get(what, "give it another name")  # fmt: skip


def encoded(values: Any, what: str = "label") -> Encoded:
    """Return positions and distinct labels of one column, nothing but its own labels known.

    Examples
    --------
    >>> encoded(["b", "a", "b", None])
    Encoded(codes=array([ 0,  1,  0, -1], dtype=int32), labels=('b', 'a'))
    """
    encoder = LabelEncoder(what)
    return Encoded(encoder.encode(values), encoder.labels)


def _at(column: Any, values: Any, row: int) -> str:
    """Return the text in one row."""
    return str(text_of(values[row] if column is None else column[row].as_py()))


def _arrow(values: Any, what: str) -> Any:
    """Return a column in chunks of Arrow, whatever it came as."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if not isinstance(values, (list, tuple, np.ndarray)):
        if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "columns"):
            return pa.chunked_array(values)
        whole = hasattr(values, "to_numpy") and hasattr(values, "__len__")  # not one time stamp
        values = values.to_numpy() if whole else as_sequence(values, f"a column of {what}s")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise DataError(
            f"a column of {what}s must be one-dimensional, got shape {values.shape}.", kind="shape"
        )
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        values = values.astype(object)  # Arrow ends fixed-width text at its first NUL
    try:
        found = pa.array(values)
    except (ValueError, TypeError, OverflowError, pa.ArrowException):  # NaT among texts: ValueError
        found = pa.array([text_of(value) for value in values], type=pa.string())
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _of_strings(values: list[Any] | tuple[Any, ...]) -> tuple[NDArray[Any], list[str]] | None:
    """Encode a long list of strings without copying their text; None if it holds anything else."""
    if len(values) <= 1000:
        return None
    for seen in (values[:_SAMPLE], values):  # most often the first rows know all labels
        try:
            distinct = set(seen)
        except TypeError:
            return None
        if len(distinct) > 256 or not all(type(value) is str for value in distinct):
            return None
        labels = sorted(distinct)
        try:
            # one call that looks all of them up: twice as fast as a loop over map()
            found = itemgetter(*values)({label: i for i, label in enumerate(labels)})
        except (KeyError, TypeError):
            continue
        return np.frombuffer(bytes(found), np.uint8), labels
    return None


def in_order_met(
    key: NDArray[np.int64], size: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return keys numbered in the order in which they are met, and where each is met first.

    Parameters
    ----------
    key : (n,) array of int
    size : int, optional
        Keys lie in 0..size-1: no sorting where a table of all of them is small.

    Examples
    --------
    >>> import numpy as np
    >>> [found.tolist() for found in in_order_met(np.array([7, 2, 7, 0]))]
    [[0, 1, 0, 2], [0, 1, 3]]
    """
    if size is not None and size <= len(key):
        first_of = np.full(size, len(key))
        first_of[key[::-1]] = np.arange(len(key) - 1, -1, -1)
        seen = np.flatnonzero(first_of < len(key))
        first, which = first_of[seen], np.empty(size, np.int64)
        which[seen] = np.arange(len(seen))
        which = which[key]
    else:
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[which.ravel()], first[order]
