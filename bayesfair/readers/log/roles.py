"""What no column can be: two parts that exclude each other, or the context of an unknown arm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bayesfair.base.checks import listed
from bayesfair.base.labels import text_of
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.log.columns import KNOWN_AT, PROPENSITY, Layout, names_in, rule_as_context

__all__ = ["for_arms", "refuse_two_roles"]

_ALONE = {
    "arm": "the arm that was chosen",
    "reward": "the reward of the choice",
    "propensity": "the chosen arm's probability",
}
"""Parts whose column can be no other part."""
_OTHERS = (
    "order", "by", "offered", "known_at", "known_until", "round", "chosen", "unique", "user",
    "context", "keep_prob", "constant_within",
)  # fmt: skip


def refuse_two_roles(asked: Mapping[str, Any], header: Sequence[str]) -> None:
    """Refuse a column in two parts that exclude each other.

    Raises
    ------
    OptionError
        Naming both options, if one column is the arm, the reward or the propensity and something
        else, or tells when the reward was known and is said to be known before the choice.
    """
    defaults = {"propensity": PROPENSITY, "known_at": None if asked["known_until"] else KNOWN_AT}
    columns = {}
    for name in (*_ALONE, *_OTHERS):
        value = defaults.get(name) if asked[name] is None else asked[name]
        several = isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping))
        found = names_in(value) if several else []  # what is no name is refused where it is used
        columns[name] = {(text_of(c) or "").strip() for c in found}.intersection(header)
    for other in (*_OTHERS, "propensity", "reward"):
        late = other == "context"
        for part in (*_ALONE, *(["known_at"] if late else [])):
            both = sorted(columns[other] & columns[part])
            if other == part or not both:
                continue
            what = _ALONE.get(part, "when the reward was known")
            why = "it is known after the choice alone" if late else ""
            raise OptionError(
                f"column {both[0]!r} cannot be both: {part}={both[0]!r} ({what}) and "
                f"{other}={both[0]!r}{': ' * bool(why)}{why}. Name another column with one of "
                "them, or leave it out.",
                kind="two_roles", column=other, value=both[0],
            )  # fmt: skip


def for_arms(
    layout: Layout, arms: Sequence[str], source: str, *, strict: bool = True
) -> tuple[Layout, list[int]]:
    """Return the layout with the context of these arms alone, and which of its columns stay.

    Parameters
    ----------
    layout : Layout
    arms : sequence of str
        Labels.
    source : str
        Name of the log.
    strict : bool
        Whether a column that lacks is refused, and one that is left out is told of.

    Raises
    ------
    DataError
        If an arm has no column, although the pattern names one for each.
    OptionError
        If a column of the context holds the rule's own probability of an arm.
    """
    known, left = set(arms), []
    for label, column in layout.withheld.items():
        if label in known and strict:
            raise rule_as_context(column)
    for pattern, found in layout.context_of_arms.items():
        lost = [arm for arm in arms if arm not in found]
        if lost and strict:
            column = pattern.replace("{arm}", lost[0])
            raise DataError(
                f"{source} has no column {column!r}: context={pattern!r} names a column for each "
                f"arm, and {listed(lost)} {'has' if len(lost) == 1 else 'have'} none (there are "
                f"{listed(found.values())}). Add it, or name the columns by themselves.",
                kind="missing_column", column=column, value=lost[0], source=source,
            )  # fmt: skip
        left += [column for label, column in found.items() if label not in known]
    alone = {c for c in layout.context if not any(
        c in found.values() for found in layout.context_of_arms.values())}  # fmt: skip
    wanted = alone | {
        found[arm] for found in layout.context_of_arms.values() for arm in arms if arm in found
    }
    kept = [i for i, column in enumerate(layout.context) if column in wanted]
    if len(kept) == len(layout.context):
        return layout, kept
    note = Notice(
        "columns of the context for arms that are not in the log were not used: "
        f"{listed(dict.fromkeys(left))}.",
        kind="arms_left_out", column="context", n=len(left),
    )  # fmt: skip
    return replace(
        layout,
        context=tuple(layout.context[i] for i in kept),
        context_of_arms={
            pattern: {label: column for label, column in found.items() if label in known}
            for pattern, found in layout.context_of_arms.items()
        },
        notices=(*layout.notices, *([note] if strict else [])),
    ), kept
