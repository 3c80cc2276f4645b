"""What is counted while a log is read, over all its parts, and said once at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted, listed
from bayesfair.base.notices import Notice
from bayesfair.base.options import no_effect
from bayesfair.history import History
from bayesfair.readers.log.columns import Layout
from bayesfair.readers.log.rounds import Rounds

__all__ = ["Tally", "empty_columns", "nothing_missing"]


def empty_columns(never: NDArray[np.bool_], layout: Layout) -> list[Notice]:
    """Return a notice of probability columns that are empty throughout, if there are any."""
    columns = np.array([*layout.probabilities.values()], dtype=object)
    if not len(columns) or not never.any():
        return []
    arms = np.array([*layout.probabilities], dtype=object)
    return [
        Notice(
            f"{'column' if never.sum() == 1 else 'columns'} {listed(columns[never])} held no "
            f"probability in any round: {listed(arms[never])} never on offer. If these are no "
            "arms, name the arms with arms=...",
            kind="never_on_offer",
            column=str(columns[never][0]),
            n=int(never.sum()),
        )
    ]


def nothing_missing(missing: str | float, *, lacks: bool) -> list[Notice]:
    """Return the notice that `missing` had nothing to do, unless a reward or an arm lacks."""
    if missing == "error" or lacks:
        return []
    return [no_effect("missing", missing, "no reward and no arm is missing")]


@dataclass
class Tally:
    """What was missing so far, by arm, and what did not fit; carried through the parts of a scan.

    Attributes
    ----------
    by_arm : (k,) array
        Missing rewards.
    no_arm : int
        Rows without an arm.
    told : int
        Rows that some part already counts as left out.
    never : (k,) array of bool
        Arms that had no probability in any row so far.
    n_apart, largest, apart : int, float, str
        Rows whose propensity, found beside all probabilities and not used, differs from the chosen
        arm's probability; by how much at most; where.
    """

    by_arm: NDArray[np.int64]
    no_arm: int = 0
    told: int = 0
    never: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    n_apart: int = 0
    largest: float = 0.0
    apart: str = ""

    @property
    def total(self) -> int:
        """Rows with a missing reward or arm."""
        return int(self.by_arm.sum()) + self.no_arm

    def untold(self, missing: str | float) -> int:
        """Return how many rows were left out since this was last asked."""
        told, self.told = self.told, self.total
        return self.total - told if missing == "drop" else 0

    def look_at(self, rounds: Rounds, history: History, pattern: str) -> None:
        """Note empty probability columns, and a propensity that contradicts the probabilities."""
        pi = history.selection_probability
        if pi is None:
            return
        if not self.never.size:
            self.never = np.ones(history.n_arms, dtype=np.bool_)
        self.never &= np.isnan(pi[0])  # most columns are settled by the first row
        for j in np.flatnonzero(self.never):
            self.never[j] = np.isnan(pi[:, j]).all()
        if rounds.spare is None:
            return
        chosen = pi[np.arange(history.n_rounds), history.arm]
        apart = np.abs(chosen - rounds.spare)
        wrong = apart > max(1e-6, 2 * history.resolution.unit)
        self.n_apart += int(np.count_nonzero(wrong))
        if wrong.any():
            t = int(np.argmax(np.where(wrong, apart, -1.0)))
            if apart[t] > self.largest:
                self.largest = float(apart[t])
                column = pattern.replace("{arm}", history.arms[history.arm[t]])
                self.apart = (
                    f"row {int(rounds.row[t])} of {history.source}: {rounds.spare[t]:g} against "
                    f"{chosen[t]:g} in {column!r}"
                )

    def notices(self, missing: str | float, arms: Sequence[str], layout: Layout) -> list[Notice]:
        """Return what was done with missing values, counted by arm, and what did not fit."""
        found = []
        rewards = int(self.by_arm.sum())
        left_out = "left out (missing='drop')"
        if rewards:
            counts = [f"{a!r} {n}" for a, n in zip(arms, self.by_arm, strict=True) if n]
            more = f" and {len(counts) - 8} more" if len(counts) > 8 else ""
            done = {
                "unobserved": "these rounds count in every fairness number, beliefs are not "
                "updated (missing='unobserved')",
                "error": "the log ends before their time is over (waiting=), these rounds count in "
                "every fairness number, beliefs are not updated",
                "drop": f"these rows were {left_out}",
            }.get(str(missing), f"read as reward {missing} (missing={missing!r})")
            verb = "is" if rewards == 1 else "are"
            found.append(Notice(
                f"{counted(rewards, 'reward')} {verb} missing (by arm: {', '.join(counts[:8])}"
                f"{more}): {done}.",
                kind="missing_rewards", column=layout.reward, value=missing, n=rewards,
            ))  # fmt: skip
        if layout.by is None:  # groups: said of all of them together
            found += nothing_missing(missing, lacks=bool(self.total))
        if self.no_arm:
            rows = "this row was" if self.no_arm == 1 else "these rows were"
            verb = "is" if self.no_arm == 1 else "are"
            text = f"{counted(self.no_arm, 'arm')} {verb} missing: {rows} {left_out}."
            found.append(Notice(text, kind="missing_arms", column=layout.arm, n=self.no_arm))
        if layout.by is None:  # an arm may be on offer in another group
            found += empty_columns(self.never, layout)
        if self.n_apart:
            found.append(Notice(
                f"column {layout.spare!r} contradicts the columns {layout.pattern!r} in "
                f"{counted(self.n_apart, 'row')}, by {self.largest:.3g} at most ({self.apart}). "
                f"The columns were used; pass probabilities=False to use {layout.spare!r}.",
                kind="propensity_apart", column=layout.spare, value=self.largest, n=self.n_apart,
            ))  # fmt: skip
        return found
