"""What is said of labels: spellings that were merged, labels that look alike or like no label."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from bayesfair.base.notices import Notice

__all__ = ["look_alike", "merged_spellings"]

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d{1,3})?", re.ASCII)
_MISSING = frozenset({"nan", "none", "null", "nat", "<na>"})


def look_alike(labels: Iterable[str], what: str = "label") -> list[Notice]:
    """Return notices about labels that look the same to a reader but were kept apart.

    They differ in case, in the width of their letters, in the number of inner blanks or in
    characters that are not shown (a zero-width space, a byte-order mark), or write one number in
    two ways. Labels that spell a missing value are named as well.

    Examples
    --------
    >>> look_alike(["A", "a", "b"], "arm")
    ["arms that differ only in case were kept apart: 'A', 'a'. If they are the same, give them one \
spelling in the source."]
    """
    labels = list(labels)
    groups: dict[str, list[str]] = {}
    for label in labels:
        shown = label
        if not label.isascii():
            shown = "".join(c for c in label if unicodedata.category(c) != "Cf")
            shown = unicodedata.normalize("NFKC", shown)
        groups.setdefault(" ".join(shown.split()).casefold(), []).append(label)
    alike = [group for group in groups.values() if len(group) > 1]
    cased = [group for group in alike if len({label.casefold() for label in group}) == 1]
    others = [group for group in alike if group not in cased]
    found = []
    for kind, difference, show in (
        (cased, "differ only in case", repr),
        (others, "look alike (they differ in blanks, in characters not shown or in width)", ascii),
    ):
        if kind:
            text = "; ".join(", ".join(map(show, group[:6])) for group in kind[:3])
            more = f" and {len(kind) - 3} more such groups" if len(kind) > 3 else ""
            found.append(Notice(
                f"{what}s that {difference} were kept apart: {text}{more}. If they are the same, "
                "give them one spelling in the source.",
                kind="look_alike", column=what, n=len(kind),
            ))  # fmt: skip
    return found + _same_number(labels, what) + _like_missing(labels, what)


def _same_number(labels: Iterable[str], what: str) -> list[Notice]:
    """Return a notice of labels that write one number in different ways, if there are any."""
    groups: dict[Decimal, list[str]] = {}
    for label in labels:
        if _NUMBER.fullmatch(label):
            groups.setdefault(Decimal(label), []).append(label)
    alike = [group for group in groups.values() if len(group) > 1]
    if not alike:
        return []
    text = "; ".join(", ".join(map(repr, group[:6])) for group in alike[:3])
    more = f" and {len(alike) - 3} more such groups" if len(alike) > 3 else ""
    return [
        Notice(
            f"{what}s that are the same number written in different ways were kept apart, as text "
            f"is: {text}{more}. If they are the same, give them one spelling in the source.",
            kind="labels_alike",
            column=what,
            value=alike[0],
            n=len(alike),
        )
    ]


def _like_missing(labels: Iterable[str], what: str) -> list[Notice]:
    """Return a notice of labels that spell a missing value, if there are any."""
    words = [label for label in labels if label.casefold() in _MISSING]
    if not words:
        return []
    article = "an" if what[0] in "aeiou" else "a"
    return [
        Notice(
            f"{', '.join(map(repr, words))} spell{'s' if len(words) == 1 else ''} a missing value, "
            f"but {'is text, and was' if len(words) == 1 else 'are text, and were'} read as the "
            f"label of {article} {what}. Where none is known, leave the "
            "field empty in the source.",
            kind="label_like_missing",
            column=what,
            value=words,
            n=len(words),
        )
    ]


def merged_spellings(spellings: Mapping[str, Sequence[str]], what: str = "label") -> list[Notice]:
    """Return a notice of the labels that stand for more than one spelling, if there are any.

    Parameters
    ----------
    spellings : mapping of str to sequence of str
        Label -> how it was written.
    what : str
        What to call a label.

    Examples
    --------
    >>> merged_spellings({"a": ["a", "a "], "b": ["b"]}, "arm")[0][-28:]
    "only: 'a', 'a ' read as 'a'."
    """
    merged = {label: sorted(raws) for label, raws in sorted(spellings.items()) if len(raws) > 1}
    if not merged:
        return []
    shown = "; ".join(
        f"{', '.join(ascii(raw) for raw in raws)} read as {label!r}"
        for label, raws in list(merged.items())[:3]
    )
    more = f" and {len(merged) - 3} more" if len(merged) > 3 else ""
    return [
        Notice(
            f"spellings of one {what} were merged, differing in surrounding blanks or in the "
            f"encoding of their letters only: {shown}{more}.",
            kind="merged_spellings",
            column=what,
            n=len(merged),
        )
    ]
