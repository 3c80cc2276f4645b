"""One column that says which arms were on offer: lists of labels, masks of 0 and 1, or their text.

A list such as [1, 0] is a mask where it cannot be a list of labels, a list of labels where it
cannot be a mask; where it may be either, it is refused.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import plain
from bayesfair.base.checks import listed
from bayesfair.base.json_text import BadJson, once_each
from bayesfair.base.label_encoder import LabelEncoder
from bayesfair.base.labels import clean_label, text_of
from bayesfair.errors import DataError
from bayesfair.readers.log.nested import meaning
from bayesfair.typing import Where

__all__ = ["Offers"]

Offer = list[Any] | tuple[str, ...] | dict[str, Any]
_BRACKETS = {("[", "]"), ("{", "}"), ("(", ")")}
_MARKS = {"0": False, "1": True, "0.0": False, "1.0": True}


class Offers:
    """Read a column of offers, table by table.

    Parameters
    ----------
    book : LabelEncoder
        The arms; open where they are not known beforehand.
    delimiter : str
        What separates the labels in plain text.
    """

    def __init__(self, book: LabelEncoder, delimiter: str) -> None:
        self.book = book
        self.delimiter = delimiter
        self._masks: bool | None = None  # what 0 and 1 mean, once that is certain

    def read(self, column: Any, where: Where) -> NDArray[np.bool_]:
        """Return the arms on offer, ``(rows, arms)``; each different list is looked up once.

        Raises
        ------
        DataError
            Naming the first row whose list has no meaning, or two.
        """
        lists: dict[Any, int] = {}
        first: list[int] = []
        which = np.empty(len(column), dtype=np.int64)
        for at, value in enumerate(plain(column).to_pylist()):
            key = repr(value) if isinstance(value, (list, dict)) else value
            if key not in lists:
                lists[key] = len(first)
                first.append(at)
            which[at] = lists[key]
        values = []
        for at in first:
            value = column[at].as_py()
            try:
                values.append(self._parsed(value))
            except BadJson as error:
                raise DataError(
                    f"{where(at)}: {str(value)[:80]!r} is no list of the arms on offer ({error}).",
                    kind="bad_offer",
                    value=str(value)[:80],
                ) from None
        self._decide(values, first, where)
        codes = [self._codes(value, where, at) for value, at in zip(values, first, strict=True)]
        masks = np.zeros((len(codes), len(self.book.labels)), dtype=bool)
        for mask, present in zip(masks, codes, strict=True):
            mask[present] = True
        return masks[which]

    def lists(self, column: Any) -> list[list[str] | None]:
        """Return the labels that each row lists, None where it is no list of labels."""
        return [self._listed(value) for value in plain(column).to_pylist()]

    def _listed(self, value: Any) -> list[str] | None:
        try:
            found = None if value is None else self._parsed(value)
        except BadJson:
            return None
        labels = [_label(x) for x in found] if isinstance(found, (list, tuple)) else [None]
        return None if None in labels else [clean_label(str(label)) for label in labels]

    def _parsed(self, value: Any) -> Offer:
        """Return labels or marks as a list, labels alone as a tuple, marks by label as a dict."""
        if isinstance(value, str):
            return self._from_text(value)
        if isinstance(value, list):  # an Arrow map is a list of pairs
            return once_each(value) if value and isinstance(value[0], tuple) else value
        if isinstance(value, dict):
            return value
        return [] if value is None else [value]

    def _from_text(self, value: str) -> Offer:
        text = value.strip()
        parts = value.split(self.delimiter)
        if len(text) < 2 or (text[0], text[-1]) not in _BRACKETS or text in self.book.codes:
            return tuple(parts)
        found = meaning(text)
        if isinstance(found, (list, dict)):
            return found
        if isinstance(found, set):
            return sorted(found, key=str)
        inside = text[1:-1]
        if self.delimiter not in inside:  # as Postgres and Spark write lists
            fields = next(csv.reader([inside], skipinitialspace=True), [])
            return [field.strip().strip("'") for field in fields]
        plain_text = self.book.open or all(self.book.code(part) >= 0 for part in parts)
        return tuple(parts if plain_text else inside.split(self.delimiter))

    def _decide(self, values: Sequence[Any], first: list[int], where: Where) -> None:
        """Settle whether lists of 0 and 1 are masks."""
        if self._masks is not None:
            return
        lists = [(v, at) for v, at in zip(values, first, strict=True) if isinstance(v, list) and v]
        if not lists or not all(_is_mark(x) for v, _ in lists for x in v):
            self._masks = False
            return
        labels = set(self.book.labels)
        sure = any(isinstance(x, bool) for v, _ in lists for x in v)
        repeated = any(len(set(map(_mark, v))) < len(v) for v, _ in lists)
        if sure or repeated or not {"0", "1"} & labels:
            self._masks = True
            return
        lengths = {len(v) for v, _ in lists}
        if lengths != {2}:  # one label each, or lists of several lengths: no mask
            self._masks = False
            return
        value, at = lists[0]
        raise DataError(
            f"{where(at)}: {value!r} may list the arms '0' and '1', or say of two arms which is on "
            "offer (a mask). Write true and false for a mask, or the labels as text such as "
            f"{self.delimiter.join('01')!r}.",
            kind="ambiguous_mask",
            value=repr(value),
        )

    def _codes(self, value: Any, where: Where, at: int) -> list[int]:
        if isinstance(value, dict):
            if not all(x is None or _is_mark(x) for x in value.values()):
                raise DataError(
                    f"{where(at)}: {value!r:.80} says neither 0 nor 1 of each arm, so it is no "
                    "list of the arms on offer.",
                    kind="bad_offer",
                    value=repr(value)[:80],
                )
            value = [label for label, x in value.items() if x is not None and _mark(x)]
        elif self._masks and isinstance(value, list) and value:
            value = self._marked(value, where, at)
        elif isinstance(value, list) and len(set(map(_label, value))) < len(value):
            raise DataError(
                f"{where(at)}: {value!r:.80} lists an arm twice. Correct it; a mask holds nothing "
                "but 0 and 1.",
                kind="bad_offer",
                value=repr(value)[:80],
            )
        codes = [c for label in value if (c := self.book.code(_label(label))) != -1]
        if not codes:
            raise DataError(
                f"{where(at)}: no arm is on offer. List the labels, separated by "
                f"{self.delimiter!r}.",
                kind="no_offer",
            )
        if min(codes) < 0:
            label = next(x for x in value if self.book.code(_label(x)) == -2)
            raise DataError(
                f"{where(at)}: {_label(label)!r} is not among the arms {listed(self.book.labels)}. "
                f"Labels are separated by {self.delimiter!r} (offered_delimiter); add the arm to "
                "arms=... or correct it.",
                kind="unknown_arm",
                value=_label(label),
            )
        return codes

    def _marked(self, value: list[Any], where: Where, at: int) -> list[str]:
        """Return the labels that a mask marks."""
        labels = self.book.labels
        if self.book.open:  # the arms are not known, unless they are numbered
            if not all(x.isdigit() and str(int(x)) == x and int(x) < len(value) for x in labels):
                raise DataError(
                    f"{where(at)}: {value!r:.80} is a mask of {len(value)} arms, which does not "
                    "say whose they are. Pass the arms in their order with arms=...",
                    kind="arms_needed",
                    value=repr(value)[:80],
                )
            labels = tuple(map(str, range(len(value))))
            for label in labels:
                self.book.code(label)
        if len(value) != len(labels):
            raise DataError(
                f"{where(at)}: {value!r:.80} is a mask of {len(value)} arms, but there are "
                f"{len(labels)}: {listed(labels)}.",
                kind="bad_offer",
                value=repr(value)[:80],
            )
        for x in value:
            if not _is_mark(x):
                raise DataError(
                    f"{where(at)}: {x!r} in a mask of 0 and 1 says nothing. Correct it.",
                    kind="bad_offer",
                    value=repr(x),
                )
        return [label for label, x in zip(labels, value, strict=True) if _mark(x)]


def _is_mark(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str)) and (
        isinstance(value, bool) or str(value).strip() in _MARKS
    )


def _mark(value: Any) -> bool:
    return bool(value) if not isinstance(value, str) else _MARKS[value.strip()]


def _label(value: Any) -> str | None:
    """Return the text of a label; NumPy and JSON may have written a whole number as 1.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return text_of(value)
