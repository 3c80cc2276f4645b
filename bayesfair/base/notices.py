"""What a result says beside its numbers: a sentence with its kind and its evidence as fields."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Self

from bayesfair.base.json_text import from_json
from bayesfair.errors import DataError

__all__ = ["Notice", "few_draws", "notices_from_json", "notices_to_json", "unique"]

_FIELDS = ("row", "column", "value", "n")


class Notice(str):
    """A sentence for readers that programs can tell apart without reading it.

    It is the sentence itself (``in``, ``==`` and printing work on the words); what it is about
    stands beside it.

    Parameters
    ----------
    text : str
        The whole sentence.
    kind : str
        A short name of what was found, such as ``"context"``; the same for every wording.
    row : int, optional
        Row of the file (the header is row 1), where one row is meant.
    column : str, optional
        Column of the source, or name of the option.
    value : optional
        What stood there, or the number that the sentence rests on; JSON-ready.
    n : int, optional
        How many rows, rounds or items are concerned.

    Examples
    --------
    >>> found = Notice("2 rewards were not observed.", kind="unobserved", n=2)
    >>> found, found.kind, found.n
    ('2 rewards were not observed.', 'unobserved', 2)
    """

    __slots__ = ("column", "kind", "n", "row", "value")

    kind: str
    row: int | None
    column: str | None
    value: Any
    n: float | None

    def __new__(
        cls,
        text: str,
        *,
        kind: str,
        row: int | None = None,
        column: str | None = None,
        value: Any = None,
        n: float | None = None,
    ) -> Self:
        """Make the sentence and keep its fields."""
        new = super().__new__(cls, text)
        new.kind, new.row, new.column, new.value, new.n = kind, row, column, value, n
        return new

    def __reduce__(self) -> Any:
        """Keep the fields in copies and across processes."""
        return _restored, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Return ``kind`` and ``text``, and the other fields where they are known."""
        known = {name: getattr(self, name) for name in _FIELDS}
        return {
            "kind": self.kind,
            "text": str(self),
            **{name: value for name, value in known.items() if value is not None},
        }

    @classmethod
    def of(cls, found: Any) -> Self:
        """Return a notice from itself, from `to_dict`, or from a bare sentence (kind ``note``)."""
        if isinstance(found, cls):
            return found
        if isinstance(found, dict):
            fields = {name: found[name] for name in _FIELDS if name in found}
            return cls(str(found["text"]), kind=str(found["kind"]), **fields)
        return cls(str(found), kind="note")


def _restored(record: dict[str, Any]) -> Notice:
    return Notice.of(record)


def unique(found: Iterable[str]) -> tuple[Notice, ...]:
    """Return notices in their order, each sentence once."""
    return tuple({str(text): Notice.of(text) for text in reversed(list(found))}.values())[::-1]


def notices_to_json(found: Iterable[str]) -> str:
    """Return notices as JSON text, for the attributes of a tree or of a file."""
    return json.dumps([Notice.of(text).to_dict() for text in found], ensure_ascii=False)


def notices_from_json(text: Any) -> list[Notice]:
    """Return the notices in an attribute that `notices_to_json` wrote."""
    remedy = "Write the file again, or fit again."
    what = "the attribute that holds the notices"
    found = from_json(str(text or "[]"), what, remedy=remedy)
    try:
        return [Notice.of(one) for one in found]
    except (KeyError, TypeError) as error:
        raise DataError(f"{what} holds no list of notices ({error}). {remedy}") from None


def few_draws(n: int) -> tuple[Notice, ...]:
    """Return what is to be said where no draw can lie beyond the ends of a 95 % interval."""
    if n >= 40:
        return ()
    text = (
        f"{n} draws are too few: with fewer than 40 none lies beyond either end of an interval of "
        "95 %, and a probability near 0 or 1, with what is concluded from it, may be chance. "
        "Ask for more (draws=4000 is the default)."
    )
    return (Notice(text, kind="few_draws", column="draws", n=n),)
