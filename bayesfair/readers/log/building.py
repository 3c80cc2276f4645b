"""From arrays to a `History`: order, missing rewards, delays; what was done is said in notices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base import numerals
from bayesfair.base.checks import check_choice, counted
from bayesfair.base.notices import Notice
from bayesfair.base.options import LOG_OPTIONS, given, refuse_without_effect
from bayesfair.errors import DataError, OptionError, ProbabilityError
from bayesfair.history import History
from bayesfair.history.probabilities import Resolution
from bayesfair.readers.files.tables import Source
from bayesfair.readers.log.columns import Layout
from bayesfair.readers.log.rounds import Rounds
from bayesfair.readers.log.tally import Tally

__all__ = [
    "Builder",
    "check_decimal",
    "grouped_by_arm",
    "in_order",
    "parse_missing",
    "refuse_unused",
    "tied",
]


def parse_missing(value: Any) -> str | float:
    """Return one of the words, or the number that stands for a missing reward.

    Examples
    --------
    >>> parse_missing("drop"), parse_missing("0"), parse_missing(0.5)
    ('drop', 0.0, 0.5)
    """
    if not isinstance(value, bool):
        try:
            number = numerals.number(value.strip()) if isinstance(value, str) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is not None and math.isfinite(number):
            return number
    return check_choice(value, "missing", ("error", "unobserved", "drop", "a number"))


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


@dataclass(frozen=True)
class Builder:
    """Make histories from rounds of one source.

    Attributes
    ----------
    layout : Layout
        Columns by part.
    source : str
        What messages and reports call the source.
    missing : str or float
        What to do with a missing reward.
    known_kind : str or None
        Kind of the `known_at` column.
    tolerance : float or None
        Of row sums.
    prior : mapping, array or None
        Outcomes before the log.
    n_rounds : int or None
        Rounds of the whole source, where `history` is given a part of it and the length is known;
        0 = not known.
    """

    layout: Layout
    source: str
    missing: str | float
    known_kind: str | None = None
    tolerance: float | None = None
    prior: Any = None
    n_rounds: int | None = None

    def place(self, rounds: Rounds, at: int, column: str) -> str:
        """Name a row and a column."""
        return f"row {int(rounds.row[at])} of {self.source}, column {column!r}"

    def history(
        self,
        rounds: Rounds,
        arms: tuple[str, ...],
        *,
        tally: Tally | None = None,
        offset: int = 0,
        resolution: Resolution | None = None,
        notices: Sequence[str] = (),
    ) -> History:
        """Return the validated history of rounds that are in their order.

        Parameters
        ----------
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

        Raises
        ------
        DataError, ProbabilityError
            Naming row, column, value and remedy.
        """
        tally = tally or Tally(np.zeros(len(arms), dtype=np.int64))
        known_at = self._known_rounds(rounds, offset)
        rounds, kept = self.settled(rounds, tally)
        known_until = rounds.known_until
        if known_until is not None:
            self._whole(rounds, known_until, str(self.layout.known_until))
        if kept is not None:  # round numbers of the source count the rows that were left out
            counted = np.concatenate([[0], np.cumsum(kept)])
            if known_at is not None:
                known_at = counted[np.minimum(known_at, len(kept))][kept]
            if known_until is not None:
                known_until = counted[np.clip(known_until.astype(np.int64), 0, len(kept))]
        if not len(rounds):
            raise DataError(
                f"{self.source} has no rounds left: {tally.total} rows were left out (missing="
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
                prior_counts=self.prior,
                source=self.source,
                n_skipped=tally.untold(self.missing),
                probability_tolerance=self.tolerance,
                notices=tuple(notices),
                resolution=resolution or Resolution(),
                missing=str(self.missing),
                reward_column=self.layout.reward,
                unused_columns=self.layout.unused,
            )
        except ProbabilityError as error:
            raise ProbabilityError(f"{error}{self._columns_of(str(error))}") from None
        for name in ("unique", "user"):
            if (prints := getattr(rounds, name)) is not None:
                history = history.with_prints(name, prints, getattr(self.layout, name))
        self._agreement(history)
        tally.look_at(rounds, history, self.layout.pattern)
        return history

    def _columns_of(self, message: str) -> str:
        """Name the column that a message about an arm's probability means."""
        layout = self.layout
        if not layout.probabilities:
            return f" (column {layout.propensity!r})" if layout.propensity else ""
        named = [c for label, c in layout.probabilities.items() if f"arm {label!r}" in message]
        return f" (column {named[0]!r})" if named else f" (columns {layout.pattern!r})"

    def _agreement(self, history: History) -> None:
        """Where both were asked for, the propensity must be the chosen arm's probability."""
        pi, propensity = history.selection_probability, history.propensity
        if pi is None or propensity is None:
            return
        chosen = pi[np.arange(history.n_rounds), history.arm]
        apart = np.abs(chosen - propensity)
        wrong = np.flatnonzero(apart > max(1e-6, 2 * history.resolution.unit))
        if wrong.size:
            t = int(wrong[0])
            arm = history.arms[history.arm[t]]
            raise ProbabilityError(
                f"{history.where(t)}, column {self.layout.propensity!r}: the propensity is "
                f"{propensity[t]:g}, but column {self.layout.probabilities[arm]!r} of the chosen "
                f"arm says {chosen[t]:g} ({counted(wrong.size, 'such row')}). Correct one, or pass "
                "propensity=False."
            )

    def settled(self, rounds: Rounds, tally: Tally) -> tuple[Rounds, NDArray[np.bool_] | None]:
        """Treat missing arms and rewards as asked; return what was kept, if not all was."""
        no_arm = rounds.arm < 0
        no_reward = np.isnan(rounds.reward)
        if no_arm.any():
            if self.missing != "drop":
                at = int(np.flatnonzero(no_arm)[0])
                raise DataError(
                    f"{self.place(rounds, at, self.layout.arm)}: the arm is empty "
                    f"({counted(int(no_arm.sum()), 'such row')}). "
                    "Fill it in, or pass missing='drop' to leave "
                    "such rows out.",
                    kind="missing_label",
                    row=int(rounds.row[at]),
                    column=self.layout.arm,
                )
            tally.no_arm += int(no_arm.sum())
        gone = no_reward & ~no_arm
        if gone.any():
            counts = np.bincount(rounds.arm[gone], minlength=len(tally.by_arm))
            if self.missing == "error":
                at = int(np.flatnonzero(gone)[0])
                raise DataError(
                    f"{self.place(rounds, at, self.layout.reward)}: the reward is missing "
                    f"({counted(int(gone.sum()), 'such row')}). "
                    "Pass missing='unobserved' to keep such rounds "
                    "without learning from them, missing='drop' to leave them out, or a number."
                )
            tally.by_arm += counts
        if self.missing == "drop" and (no_arm | no_reward).any():
            kept = ~(no_arm | no_reward)
            return rounds.take(kept), kept
        if isinstance(self.missing, float) and gone.any():
            filled = np.where(gone, self.missing, rounds.reward)
            return replace(rounds, reward=filled), None
        return rounds, None

    def _known_rounds(self, rounds: Rounds, offset: int) -> NDArray[np.int64] | None:
        """Return the first round that may use each reward."""
        known, column = rounds.known_at, self.layout.known_at
        if known is None or column is None:
            return None
        n_rounds = len(rounds)
        never = np.isnan(known) if known.dtype.kind == "f" else np.isnat(known)
        open_ = np.flatnonzero(never & ~np.isnan(rounds.reward))
        if open_.size:
            at = int(open_[0])
            raise DataError(
                f"{self.place(rounds, at, column)}: missing, but the reward is there "
                f"({counted(open_.size, 'such row')}). "
                "Say since when it is known, or remove the reward if it "
                "was never known."
            )
        if known.dtype.kind == "f":
            self._of_rounds(rounds, known, column, offset)
            odd = np.flatnonzero((known != np.floor(known)) & ~never)
            if odd.size:
                at = int(odd[0])
                raise DataError(
                    f"{self.place(rounds, at, column)}: {known[at]:g} is not a round number "
                    "(0-based, in the order of the rounds), and the order is no time that it could "
                    "be compared with."
                )
            # one beyond the end = never used within this log
            own = np.arange(offset, offset + n_rounds)
            early = np.flatnonzero(known <= own)
            if early.size:
                at = int(early[0])
                raise DataError(
                    f"{self.place(rounds, at, column)}: {known[at]:g} is not after its own round, "
                    f"{at + offset}. A reward can be known at the earliest in the next round "
                    "(rounds are counted from 0)."
                )
            return np.where(never, n_rounds + offset, known).astype(np.int64) - offset
        assert rounds.order is not None
        early = np.flatnonzero(known < rounds.order)
        if early.size:
            at = int(early[0])
            raise DataError(
                f"{self.place(rounds, at, column)}: {known[at]} lies before the round itself, "
                f"{rounds.order[at]} ({counted(early.size, 'such row')}). "
                "A reward cannot be known before the "
                "choice; check the two columns."
            )
        found = np.searchsorted(rounds.order, known, side="left")
        found[never] = n_rounds
        return np.maximum(found, np.arange(1, n_rounds + 1)).astype(np.int64)

    def check_known(self, rounds: Rounds) -> None:
        """Refuse numbers in `known_at` that count something else than the rounds of the log.

        Raises
        ------
        DataError
            Naming the row and its value.
        """
        if rounds.known_at is not None and self.layout.known_at is not None:
            self._of_rounds(rounds, rounds.known_at, self.layout.known_at, 0)

    def _of_rounds(
        self, rounds: Rounds, known: NDArray[np.float64], column: str, offset: int
    ) -> None:
        """Refuse numbers that count something else than rounds, such as seconds.

        Taken for rounds they would lie beyond the end of the log, and nothing would ever be learned
        without a word.
        """
        end = len(rounds) + offset if self.n_rounds is None else self.n_rounds
        if not end:  # a part of a source whose length is not known: asked again at its end
            return
        place, order = self.layout.order, rounds.order
        remedy = (
            "It must hold the first round that may use the reward (counted from 0, in the order of "
            "the rounds). Convert it, or pass known_at=False to use each reward in the next round."
        )
        far = np.flatnonzero(known > 10.0 * end + 1e6)
        if place is not None and order is not None and order.dtype.kind in "iuf":
            alike = (known > end) & (known >= order)
            if alike.any() and order.max() >= 2 * end and np.mean(known >= order) > 0.5:
                at = int(np.flatnonzero(alike)[0])
                raise DataError(
                    f"{self.place(rounds, at, column)}: {known[at]:.16g} looks like a value of "
                    f"{place!r}, the order column ({order[at]:.16g} in this row), not like one of "
                    f"{end} rounds. {remedy} (If both are times, write them as ISO times: then "
                    "they are compared.)"
                )
        if far.size:
            at = int(far[0])
            raise DataError(
                f"{self.place(rounds, at, column)}: {known[at]:.16g} lies far beyond the {end} "
                f"rounds of the log ({counted(far.size, 'such row')}). {remedy}"
            )

    def _whole(self, rounds: Rounds, values: NDArray[np.float64], column: str) -> None:
        odd = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)))
        if odd.size:
            at = int(odd[0])
            what = "missing" if np.isnan(values[at]) else f"{values[at]:g}"
            raise DataError(
                f"{self.place(rounds, at, column)}: {what}, but it must be the whole number of "
                f"rounds whose rewards are known ({counted(odd.size, 'such row')}). Correct it."
            )
        if np.abs(values).max(initial=0) > 2.0**53:
            at = int(np.abs(values).argmax())
            raise DataError(
                f"{self.place(rounds, at, column)}: {values[at]:g} lies beyond any round."
            )


def check_decimal(decimal: str) -> str:
    """Return the decimal sign, "." or ","."""
    if decimal not in (".", ","):
        raise OptionError(f"decimal={decimal!r} is not known. Options: '.', ','.")
    return decimal


def refuse_unused(
    function: Callable[..., Any], values: Mapping[str, Any], opened: Source, layout: Layout
) -> None:
    """Refuse options of a reader of logs that have no effect on the log at hand.

    Parameters
    ----------
    function : callable
        The reader, whose defaults tell what was given.
    values : mapping of str to value
        Its arguments.
    opened, layout
        The source, and which column plays which part.

    Raises
    ------
    OptionError
        Naming the option, and what it needs.
    """
    kinds = {"full"} if layout.probabilities else set()
    listing = [] if layout.offered_list is None else [layout.offered_list]
    if opened.holds_text(listing):
        kinds |= {"offered_text"}
    numbers = [layout.reward, layout.propensity, layout.order, layout.known_at, layout.known_until]
    named = [column for column in numbers if column is not None]
    if opened.holds_text([*named, *layout.probabilities.values()]):
        kinds |= {"text"}
    asked = given(function, values)
    asked.pop("delimiter", None)  # asked about when the source was opened
    refuse_without_effect(asked, kinds, LOG_OPTIONS, opened.name)
