"""From arrays to a `History`: order, missing rewards, delays; what was done is said in notices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted, first_where
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, ProbabilityError
from bayesfair.history import History
from bayesfair.history.context import Context, ContextLabels
from bayesfair.history.probabilities import Resolution
from bayesfair.readers.log.counts_of_missing import Tally
from bayesfair.readers.log.reading import Reading
from bayesfair.readers.log.rounds import Rounds
from bayesfair.readers.log.waiting import waited

__all__ = ["check_known", "grouped_by_arm", "history_of", "in_order", "settled", "tied"]


def in_order(rounds: Rounds, column: str) -> tuple[Rounds, list[Notice]]:
    """Return the rounds sorted stably, with notices if rows moved or share their place."""
    order = rounds.order
    assert order is not None
    notes = []
    backwards = bool(np.all(order[1:] <= order[:-1])) and order[-1:] < order[:1]
    if np.any(order[1:] < order[:-1]):
        index = np.argsort(order, kind="stable")
        moved = int(np.count_nonzero(index != np.arange(len(index))))
        rounds = rounds.take(index)
        order = order[index]
        notes.append(
            Notice(
                f"rounds were sorted by {column!r}: {moved} of {len(index)} rows moved.",
                kind="sorted",
                column=column,
                n=moved,
            )
        )
    ties = int(np.count_nonzero(order[1:] == order[:-1]))
    notes += tied(ties, len(order), column, backwards=bool(backwards))
    return rounds, notes


def tied(ties: int, n: int, column: str, *, backwards: bool = False) -> list[Notice]:
    """Return what has to be said of rows that share their place: of most of them, more.

    `backwards`: the source itself ran from the last place to the first.
    """
    if not ties:
        return []
    text = (
        f"{counted(ties, 'row')} with the same {column!r} as the row before kept the order of the "
        "source."
    )
    if backwards:
        text += (
            " The source runs backwards, so such rows may well stand backwards too: the order of "
            "the rounds within one place is not known."
        )
    elif 2 * ties > n:
        text += " That is most of them: the order of the rounds within one place is not known."
    unknown = backwards or 2 * ties > n
    return [Notice(text, kind="order" if unknown else "tied_order", column=column, n=ties)]


def grouped_by_arm(arm: NDArray[np.int32]) -> Notice | None:
    """Return a notice if all rounds of each arm stand together, as no decisions do."""
    changes = int(np.count_nonzero(arm[1:] != arm[:-1]))
    n_arms = len(np.unique(arm))
    if n_arms < 2 or changes != n_arms - 1 or len(arm) < 4 * n_arms:
        return None
    return Notice(
        "rows are sorted by arm and no order column was used: beliefs before a round depend on the "
        "order of decisions. If this is not it, name the column that is, with order=...",
        kind="order",
    )


def _place(reading: Reading, rounds: Rounds, at: int, column: str) -> str:
    """Name a row and a column."""
    return f"row {int(rounds.row[at])} of {reading.name}, column {column!r}"


def history_of(
    reading: Reading,
    rounds: Rounds,
    arms: tuple[str, ...],
    *,
    tally: Tally | None = None,
    offset: int = 0,
    resolution: Resolution | None = None,
    notices: Sequence[str] = (),
    length: int | None = None,
    contexts: tuple[ContextLabels, ...] = (),
) -> History:
    """Return the validated history of rounds that are in their order.

    Parameters
    ----------
    reading : Reading
        How the log is read.
    rounds : Rounds
        In order; `arm` numbers positions in `arms`.
    arms : tuple of str
        Labels.
    tally : Tally, optional
        Where missing values are counted.
    offset : int
        Rounds before this part, which `known_at` counts as well.
    resolution : Resolution, optional
        How finely the parts before were logged.
    notices : sequence of str
        What is known of the source already.
    length : int, optional
        Rounds of the whole source, where these are a part of it and the length is known; 0 = not
        known.
    contexts : tuple of ContextLabels
        Labels of each column of the context.

    Raises
    ------
    DataError, ProbabilityError
        Naming row, column, value and remedy.
    """
    tally = tally or Tally(np.zeros(len(arms), dtype=np.int64))
    known_at = _known_rounds(reading, rounds, offset, length)
    if reading.waiting is not None:
        rounds, known_at, said = waited(reading, rounds, known_at)
        notices = (*notices, *said)
    rounds, kept = settled(reading, rounds, tally)
    known_until = rounds.known_until
    if known_until is not None:
        _whole(reading, rounds, known_until, str(reading.layout.known_until))
    if kept is not None:  # round numbers of the source count the rows that were left out
        counted = np.concatenate([[0], np.cumsum(kept)])
        if known_at is not None:
            known_at = counted[np.minimum(known_at, len(kept))][kept]
        if known_until is not None:
            known_until = counted[np.clip(known_until.astype(np.int64), 0, len(kept))]
    if not len(rounds):
        raise DataError(
            f"{reading.name} has no rounds left: {tally.total} rows were left out (missing="
            "'drop'). Check the column that holds the rewards."
        )
    try:
        history = History(
            rounds.arm,
            rounds.reward,
            selection_probability=rounds.pi,
            propensity=rounds.propensity,
            arms=arms,
            known_at=known_at,
            known_until=known_until,
            time=rounds.order,
            row=rounds.row,
            offered=rounds.offered,
            keep_prob=rounds.keep_prob,
            covered=rounds.covered,
            prior_counts=reading.prior,
            source=reading.name,
            n_skipped=tally.untold(reading.missing),
            probability_tolerance=reading.tolerance,
            notices=tuple(notices),
            resolution=resolution or Resolution(),
            missing="unobserved" if reading.waiting is not None else str(reading.missing),
            reward_column=reading.layout.reward,
            unused_columns=reading.layout.unused,
            context=None
            if rounds.context is None
            else Context.of(reading.layout.context, rounds.context, contexts),
        )
    except ProbabilityError as error:
        columns = reading.layout.probabilities
        own = columns.get(str(error.column)) if columns else reading.layout.propensity
        named = f"column {own!r}" if own else f"columns {reading.layout.pattern!r}"
        error.column = own
        raise error.with_message(f"{error} ({named})") from None
    for name in ("unique", "user"):
        if (prints := getattr(rounds, name)) is not None:
            history = history.with_prints(name, prints, getattr(reading.layout, name))
    _agreement(reading, history)
    tally.look_at(rounds, history, reading.layout.pattern)
    return history


def _agreement(reading: Reading, history: History) -> None:
    """Where both were asked for, the propensity must be the chosen arm's probability."""
    pi, propensity = history.selection_probability, history.propensity
    if pi is None or propensity is None:
        return
    chosen = pi[np.arange(history.n_rounds), history.arm]
    apart = np.abs(chosen - propensity)
    if wrong := first_where(apart > max(1e-6, 2 * history.resolution.unit)):
        arm = history.arms[history.arm[wrong.at]]
        raise ProbabilityError(
            f"{history.where(wrong.at)}, column {reading.layout.propensity!r}: the propensity is "
            f"{propensity[wrong.at]:g}, but column {reading.layout.probabilities[arm]!r} of the "
            "chosen "
            f"arm says {chosen[wrong.at]:g} ({counted(wrong.n, 'such row')}). Correct one, or pass "
            "that which is not of this rule as False (propensity=False, probabilities=False)."
        )


def settled(
    reading: Reading, rounds: Rounds, tally: Tally
) -> tuple[Rounds, NDArray[np.bool_] | None]:
    """Treat missing arms and rewards as asked; return what was kept, if not all was."""
    no_arm = rounds.arm < 0
    no_reward = np.isnan(rounds.reward)
    if no_arm.any():
        if reading.missing != "drop":
            at = int(np.flatnonzero(no_arm)[0])
            raise DataError(
                f"{_place(reading, rounds, at, reading.layout.arm)}: the arm is empty "
                f"({counted(int(no_arm.sum()), 'such row')}). "
                "Fill it in, or pass missing='drop' to leave "
                "such rows out.",
                kind="missing_label",
                row=int(rounds.row[at]),
                column=reading.layout.arm,
            )
        tally.no_arm += int(no_arm.sum())
    gone = no_reward & ~no_arm
    if gone.any():
        counts = np.bincount(rounds.arm[gone], minlength=len(tally.by_arm))
        if reading.missing == "error" and reading.waiting is None:
            at = int(np.flatnonzero(gone)[0])
            raise DataError(
                f"{_place(reading, rounds, at, reading.layout.reward)}: the reward is missing "
                f"({counted(int(gone.sum()), 'such row')}). "
                "Pass missing='unobserved' to keep such rounds "
                "without learning from them, missing='drop' to leave them out, or a number."
            )
        tally.by_arm += counts
    if reading.missing == "drop" and (no_arm | no_reward).any():
        kept = ~(no_arm | no_reward)
        return rounds.take(kept), kept
    if isinstance(reading.missing, float) and gone.any():
        filled = np.where(gone, reading.missing, rounds.reward)
        return replace(rounds, reward=filled), None
    return rounds, None


def _known_rounds(
    reading: Reading, rounds: Rounds, offset: int, length: int | None
) -> NDArray[np.int64] | None:
    """Return the first round that may use each reward."""
    known, column = rounds.known_at, reading.layout.known_at
    if known is None or column is None:
        return None
    n_rounds = len(rounds)
    never = np.isnan(known) if known.dtype.kind == "f" else np.isnat(known)
    if open_ := first_where(never & ~np.isnan(rounds.reward)):
        raise DataError(
            f"{_place(reading, rounds, open_.at, column)}: missing, but the reward is there "
            f"({counted(open_.n, 'such row')}). "
            "Say since when it is known, or remove the reward if it "
            "was never known."
        )
    if known.dtype.kind == "f":
        _of_rounds(
            reading, rounds, known, column, len(rounds) + offset if length is None else length
        )
        if odd := first_where((known != np.floor(known)) & ~never):
            raise DataError(
                f"{_place(reading, rounds, odd.at, column)}: {known[odd.at]:g} is not a round "
                "number "
                "(0-based, in the order of the rounds), and the order is no time that it could "
                "be compared with."
            )
        # one beyond the end = never used within this log
        own = np.arange(offset, offset + n_rounds)
        if early := first_where(known <= own):
            raise DataError(
                f"{_place(reading, rounds, early.at, column)}: {known[early.at]:g} is not after "
                "its own round, "
                f"{early.at + offset}. A reward can be known at the earliest in the next round "
                "(rounds are counted from 0)."
            )
        return np.where(never, n_rounds + offset, known).astype(np.int64) - offset
    assert rounds.order is not None
    if early := first_where(known < rounds.order):
        raise DataError(
            f"{_place(reading, rounds, early.at, column)}: {known[early.at]} lies before the "
            "round itself, "
            f"{rounds.order[early.at]} ({counted(early.n, 'such row')}). "
            "A reward cannot be known before the "
            "choice; check the two columns."
        )
    found = np.searchsorted(rounds.order, known, side="left")
    found[never] = n_rounds
    return np.maximum(found, np.arange(1, n_rounds + 1)).astype(np.int64)


def check_known(reading: Reading, rounds: Rounds, length: int) -> None:
    """Refuse numbers in `known_at` that count something else than the rounds of the log.

    Raises
    ------
    DataError
        Naming the row and its value.
    """
    if rounds.known_at is not None and reading.layout.known_at is not None:
        _of_rounds(reading, rounds, rounds.known_at, reading.layout.known_at, length)


def _of_rounds(
    reading: Reading, rounds: Rounds, known: NDArray[np.float64], column: str, end: int
) -> None:
    """Refuse numbers that count something else than rounds, such as seconds.

    Taken for rounds they would lie beyond the end of the log, and nothing would ever be learned
    without a word.
    """
    if not end:  # a part of a source whose length is not known: asked again at its end
        return
    place, order = reading.layout.order, rounds.order
    remedy = (
        "It must hold the first round that may use the reward (counted from 0, in the order of "
        "the rounds). Convert it, or pass known_at=False to use each reward in the next round."
    )
    far = np.flatnonzero(known > 10.0 * end + 1e6)
    if place is not None and order is not None and order.dtype.kind in "iuf":
        alike = (known > end) & (known >= order)
        if alike.any() and order.max() >= 2 * end and np.mean(known >= order) > 0.5:
            at = int(np.argmax(alike))
            raise DataError(
                f"{_place(reading, rounds, at, column)}: {known[at]:.16g} looks like a value of "
                f"{place!r}, the order column ({order[at]:.16g} in this row), not like one of "
                f"{end} rounds. {remedy} (If both are times, write them as ISO times: then "
                "they are compared.)"
            )
    if far.size:
        at = int(far[0])
        raise DataError(
            f"{_place(reading, rounds, at, column)}: {known[at]:.16g} lies far beyond the {end} "
            f"rounds of the log ({counted(far.size, 'such row')}). {remedy}"
        )


def _whole(reading: Reading, rounds: Rounds, values: NDArray[np.float64], column: str) -> None:
    if odd := first_where(~np.isfinite(values) | (values != np.floor(values))):
        what = "missing" if np.isnan(values[odd.at]) else f"{values[odd.at]:g}"
        raise DataError(
            f"{_place(reading, rounds, odd.at, column)}: {what}, but it must be the whole number "
            "of "
            f"rounds whose rewards are known ({counted(odd.n, 'such row')}). Correct it."
        )
    if np.abs(values).max(initial=0) > 2.0**53:
        at = int(np.abs(values).argmax())
        raise DataError(
            f"{_place(reading, rounds, at, column)}: {values[at]:g} lies beyond any round. "
            "Correct it."
        )
