"""Labels of users as they are shown: any text is safe, none breaks the layout."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from bayesfair.base.shown import shortened, visible

__all__ = ["LONGEST", "Labels", "clean", "labels_of_page"]

LONGEST = 80
"""Longer labels are cut in tables and sentences; the JSON in the file holds them whole."""

_PAIR = ("group", "group_other")

_KEPT = {"\n", "\t"}


def clean(value: Any) -> str:
    """Return text without what HTML cannot hold: control characters and lone surrogates.

    Examples
    --------
    >>> [hex(ord(c)) for c in clean("a" + chr(0))]
    ['0x61', '0xfffd']
    """
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(c) in {"Cc", "Cs"} and c not in _KEPT
        else c
        for c in str(value)
    )


class Labels:
    """The labels of one page: each shown in the same way everywhere, no two of them alike.

    Long ones are cut in the middle (`bayesfair.base.shown.shortened`), and carry the whole text as
    ``title=``.

    Parameters
    ----------
    labels : iterable of str
        All labels of the page.

    Examples
    --------
    >>> str(Labels(["a", "b" * 100]).shown("a"))
    'a'
    """

    def __init__(self, labels: Iterable[object]) -> None:
        whole = list(dict.fromkeys(str(label) for label in labels))
        self._short = dict(zip(whole, shortened(whole, LONGEST), strict=True))

    @property
    def cut(self) -> bool:
        """Whether any of them is cut."""
        return any(len(visible(label)) > len(short) for label, short in self._short.items())

    def text(self, label: object) -> str:
        """Return a label as it is shown, where only text can stand."""
        known = self._short.get(str(label))
        return shortened([label], LONGEST)[0] if known is None else known

    def shown(self, label: object) -> Any:
        """Return a label as HTML: safe, and whole in ``title=`` if it is cut."""
        from markupsafe import Markup, escape

        short, whole = self.text(label), visible(label)
        if short == whole:
            return escape(clean(short))
        return Markup('<span title="{}">{}</span>').format(clean(whole), clean(short))


def labels_of_page(numbers: dict[str, Any]) -> Labels:
    """Return the labels in the numbers of an audit, or of several."""
    found: list[object] = []
    value = numbers.get("value", {"rules": ()})
    for one in value.get("groups", {"": value}).values():
        found += [rule["rule"] for rule in one["rules"]]
    for label, audit in numbers.get("groups", {"": numbers}).items():
        found += [label, audit["log"]["source"]]
        found += [arm["arm"] for arm in audit.get("arms", ())]
        found += [row[key] for row in audit.get("arm_groups", ()) for key in _PAIR]
        found += [q["quantity"] for q in audit.get("prior_sensitivity", {}).get("quantities", ())]
    return Labels(found)
