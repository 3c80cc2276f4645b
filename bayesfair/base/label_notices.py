"""What is said of labels: spellings that were merged, labels that look alike or like no label."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from bayesfair.base.notices import Notice

__all__ = ["like_missing", "look_alike", "merged_spellings", "one_number"]

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d{1,3})?", re.ASCII)
_MISSING = frozenset({"nan", "none", "null", "nat", "na", "n/a", "<na>", "#n/a", "\\n"})


def look_alike(labels: Iterable[str], what: str = "label") -> list[Notice]:
    """Return notices about labels that look the same to a reader but were kept apart.

    They differ in case, in the width of their letters, in the number of inner blanks or in
    characters that are not shown (a zero-width space, a byte-order mark), or write one number in
    two ways.

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
    return found + _same_number(labels, what)


def one_number(labels: Iterable[str]) -> list[list[str]]:
    """Return the labels that write one number in different ways, together.

    Examples
    --------
    >>> one_number(["1", "01", "2", "1e0"])
    [['1', '01', '1e0']]
    """
    groups: dict[Decimal, list[str]] = {}
    for label in labels:
        if _NUMBER.fullmatch(label):
            groups.setdefault(Decimal(label), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def like_missing(labels: Iterable[str]) -> list[str]:
    """Return the labels that spell a missing value.

    Examples
    --------
    >>> like_missing(["a", "None", "NA", "none here"])
    ['None', 'NA']
    """
    return [label for label in labels if label.casefold() in _MISSING]


def _same_number(labels: Iterable[str], what: str) -> list[Notice]:
    """Return a notice of labels that write one number in different ways, if there are any."""
    alike = one_number(labels)
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
            f"spellings of one {what} were merged, differing in surrounding blanks, in the "
            f"encoding of their letters or in the '.0' of a whole number only: {shown}{more}.",
            kind="merged_spellings",
            column=what,
            n=len(merged),
        )
    ]
