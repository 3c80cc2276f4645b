"""Who won a duel: words and item names turned into outcomes; nothing unknown is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import check_choice, counted, did_you_mean, first_where, listed
from bayesfair.base.label_encoder import Encoded
from bayesfair.base.labels import by_label
from bayesfair.base.notices import Notice
from bayesfair.base.numerals import number
from bayesfair.base.options import no_effect
from bayesfair.errors import DataError, OptionError
from bayesfair.typing import Where

__all__ = [
    "OUTCOMES",
    "OUTCOME_WORDS",
    "Outcomes",
    "no_sides",
    "resolve_first",
    "resolve_outcomes",
]

OUTCOMES = ("left", "right", "tie", "both_bad")
OUTCOME_WORDS: dict[str, str] = {
    "left": "left",
    "model_a": "left",
    "right": "right",
    "model_b": "right",
    "tie": "tie",
    "tie (bothbad)": "both_bad",
    "both_bad": "both_bad",
}
_FEW = 10  # duels of which chance lets one side win them all
_FIRST_WORDS = {"left": 1, "model_a": 1, "right": -1, "model_b": -1, "neither": 0}


class Outcomes(NamedTuple):
    """Outcome of every row (position in `OUTCOMES`; -1 = skip it) and what was noticed."""

    outcome: NDArray[np.int8]
    n_unknown: int
    notices: tuple[str, ...]


def no_sides(option: str, value: object, remedy: str) -> OptionError:
    """Return the error for what asks for a side where only winner and loser are known."""
    return OptionError(
        f"{option}={value!r} asks who stood on the left, and winner and loser do not say: the "
        f"winner would count as the one on the left. {remedy}, or duels with left, right and "
        "winner.",
        kind="no_sides",
        column=option,
        value=value,
    )


def _one_side(outcome: NDArray[np.int8]) -> list[Notice]:
    """Say that one side won every duel: what is called left and right may be winner and loser."""
    n, low = len(outcome), int(outcome.min(initial=9))
    if n < _FEW or low not in (0, 1) or (outcome != low).any():
        return []
    return [
        Notice(
            f"The item on the {OUTCOMES[low]} won all of {n} duels: these columns may be winner "
            "and loser, which do not say who stood where. If so, read them as winner= and loser=.",
            kind="one_side_won",
            value=OUTCOMES[low],
            n=n,
        )
    ]


def _checked_words(outcomes: Mapping[object, str] | None) -> dict[str, str]:
    if outcomes is None:
        return OUTCOME_WORDS
    if not isinstance(outcomes, Mapping):
        raise OptionError(
            f"outcomes={outcomes!r:.60} must map words to what they mean, such as {{'A': 'left'}}.",
            kind="option_value",
            column="outcomes",
        )
    return {
        word: check_choice(meaning, f"outcomes[{word!r}]", OUTCOMES)
        for word, meaning in by_label(outcomes, "word", "outcomes").items()
    }


def _number(text: str) -> float | None:
    value = number(text)
    return value if value is not None and isfinite(value) else None


def _as_word(label: str, words: Mapping[str, str], items: Mapping[str, int]) -> str:
    """Return the word that a label stands for as a number: 0.5 and .5, 1 and 1.0 are the same."""
    value = None if label in words or label in items else _number(label)
    if value is None:
        return label
    return next((word for word in words if _number(word) == value), label)


def _reading(
    labels: tuple[str, ...],
    words: Mapping[str, object],
    items: Mapping[str, int],
    asked: str | None,
) -> str:
    """Tell a column of sides from a column of item names, or refuse."""
    if asked is not None:
        return check_choice(asked, "winner_is", ("side", "item"))
    if found := _is_doubtful(labels, words, items):
        both = [label for label in found if label in items and label in words]
        raise OptionError(
            f"the winner column can be read in two ways: {listed(found)} are "
            f"{'both item names and outcome words' if both else 'item names and sides mixed'}. "
            'Say winner_is="item" or winner_is="side", or give outcomes={word: meaning}.'
        )
    return "item" if any(label in items and label not in words for label in labels) else "side"


def _is_doubtful(
    labels: tuple[str, ...], words: Mapping[str, object], items: Mapping[str, int]
) -> list[str]:
    """Return the labels that make a column one of sides and one of item names."""
    names = [label for label in labels if label in items and label not in words]
    sides = [
        label
        for label in labels
        if words.get(label) in ("left", "right", 1, -1) and label not in items
    ]
    both = [label for label in labels if label in items and label in words]
    return both or ([*names[:2], *sides[:2]] if names and sides else [])


def _shares(words: list[str]) -> bool:
    """Whether all words are numbers from 0 to 1, and some are neither an end nor a half."""
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return False
    return all(0 <= x <= 1 for x in numbers) and not {0, 0.5, 1}.issuperset(numbers)


def _unknown_words(
    encoded: Encoded, labels: tuple[str, ...], unknown: list[int], known: list[str], where: Where
) -> str:
    """Name unknown outcome words with their counts."""
    counts = np.bincount(encoded.codes[encoded.codes >= 0], minlength=len(labels))
    named = ", ".join(f"{labels[u]!r} ({counts[u]})" for u in unknown[:6])
    more = f" and {len(unknown) - 6} more words" if len(unknown) > 6 else ""
    at = int(np.flatnonzero(encoded.codes == unknown[0])[0])
    hint = next((h for u in unknown if (h := did_you_mean(labels[u], known))), "")
    if _shares([labels[u] for u in unknown]):
        hint = (
            " Shares of a win are read by read_comparisons (in the shell, `bayesfair fit`) from "
            "two columns, the left item's and the right one's (1 minus it): wins=['p', 'q'] in "
            "place of winner=."
        )
    return (
        f"{counted(int(counts[unknown].sum()), 'row')} with an unknown outcome: {named}{more}; "
        f"the first is {where(at)}. Known words: {listed(known)}, or the name of one of the "
        f"two items.{hint} "
        'Map them with outcomes={"A": "left", ...}, or leave them out with unknown="skip".'
    )


class Words(NamedTuple):
    """What the words of a column of outcomes mean; see `Comparisons.from_duels`."""

    outcomes: Mapping[object, str] | None = None
    winner_is: str | None = None
    both_bad: str = "tie"
    unknown: str = "error"


def resolve_outcomes(
    winner: Encoded,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    items: tuple[str, ...],
    *,
    asked: Words,
    where: Where,
) -> Outcomes:
    """Return the outcome of every duel.

    Parameters
    ----------
    winner : Encoded
        Winner column: sides, tie words, or names of the winning item (never both at once).
    left, right : (N,) arrays of int
        Positions of the two items in `items`; -1 = missing.
    asked : Words
        `outcomes` replace the usual words; numbers are compared by value: .5, "0.5" and 0.50 are
        one word. `winner_is` is needed only where an item is named like a side. Unknown words are
        refused, or their rows left out and counted.
    where : function of int
        Names a row.

    Raises
    ------
    DataError
        Unknown words, with counts; a winner that took no part in its duel, with its row.
    """
    check_choice(asked.unknown, "unknown", ("error", "skip"))
    words = _checked_words(asked.outcomes)
    position = {item: i for i, item in enumerate(items)}
    labels = tuple(_as_word(label, words, position) for label in winner.labels)
    reading = _reading(labels, words, position, asked.winner_is)
    as_outcome = np.full(len(labels) + 1, -1, np.int8)  # the last entry serves code -1
    as_item = np.full(len(labels) + 1, -1, np.int32)
    strange = []
    for i, label in enumerate(labels):
        meaning = words.get(label)
        if reading == "item" and meaning not in ("tie", "both_bad") and label in position:
            as_item[i] = position[label]
        elif meaning is not None and (reading == "side" or meaning in ("tie", "both_bad")):
            as_outcome[i] = OUTCOMES.index(meaning)
        else:
            strange.append(i)
    n_unknown = 0
    notices: list[str] = []
    if asked.outcomes is not None and not set(words) & set(labels):
        given = dict(asked.outcomes)
        notices.append(no_effect("outcomes", given, "none of these words occurs"))
    if asked.unknown == "skip" and not strange:
        notices.append(no_effect("unknown", asked.unknown, "every outcome is known"))
    if strange:
        text = _unknown_words(winner, labels, strange, list(words), where)
        if asked.unknown == "error":
            raise DataError(text, kind="unknown_outcomes")
        n_unknown = int(np.isin(winner.codes, strange).sum())
        rows = "row" if n_unknown == 1 else "rows"
        notices.append(Notice(
            f"{n_unknown} {rows} with an unknown outcome left out on request.",
            kind="unknown_outcomes", column="unknown", n=n_unknown,
        ))  # fmt: skip
    outcome = as_outcome[winner.codes]
    if reading == "item":
        won = as_item[winner.codes]
        outcome = np.where((won >= 0) & (won == left), np.int8(0), outcome)
        outcome = np.where((won >= 0) & (won == right), np.int8(1), outcome)
        if stranger := first_where((won >= 0) & (outcome < 0) & (left >= 0) & (right >= 0)):
            raise DataError(
                f"{where(stranger.at)}: the winner {items[won[stranger.at]]!r} is neither "
                f"{items[left[stranger.at]]!r} nor "
                f"{items[right[stranger.at]]!r} ({stranger.n} such rows). Correct the winner "
                "column."
            )
    notices += _one_side(outcome)
    return Outcomes(outcome, n_unknown, tuple(notices))


def resolve_first(
    first: Encoded,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    items: tuple[str, ...],
    where: Where,
    *,
    sides: bool = True,
) -> NDArray[np.int8]:
    """Return which item was shown first: 1 = left, -1 = right, 0 = neither (or missing).

    Parameters
    ----------
    first : Encoded
    left, right : (N,) arrays of int
    items : tuple of str
    where : function of int
        Names a row.
    sides : bool
        Whether left and right are places: of winners and losers only names will do.

    Raises
    ------
    DataError
        A value that is no side and not one of the two items, with its row; a side where there are
        none.
    """
    labels = first.labels
    position = {item: i for i, item in enumerate(items)}
    reading = _reading(labels, _FIRST_WORDS, position, None)
    if not sides and reading == "side":
        told = np.array([_FIRST_WORDS.get(label, 0) != 0 for label in labels] + [False])
        if side_told := first_where(told[first.codes]):
            raise DataError(
                f"{where(side_told.at)}: shown first is {labels[first.codes[side_told.at]]!r}, and "
                "winner and loser do not say who stood on that side. Write the name of the item "
                "that was first.",
                kind="no_sides",
                column="first",
                value=labels[first.codes[side_told.at]],
            )
    side = np.array([_FIRST_WORDS.get(label, 9) for label in labels] + [0], np.int8)[first.codes]
    if reading == "item":
        shown = np.array([position.get(label, -2) for label in labels] + [-1], np.int32)
        which = shown[first.codes]
        side = np.where(which == left, np.int8(1), np.where(which == right, np.int8(-1), side))
    if bad := first_where(side == 9):
        raise DataError(
            f"{where(bad.at)}: shown first is {labels[first.codes[bad.at]]!r}, expected one of "
            f"{listed(_FIRST_WORDS)}, the name of one of the two items, or nothing."
        )
    return side
