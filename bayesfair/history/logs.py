"""Many logs of one source: validated together, each made into a history when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.html import Shown
from bayesfair.history.history import History
from bayesfair.history.probabilities import units_of

__all__ = ["Logs", "Together", "logs_in"]


class Together(NamedTuple):
    """The rounds of G logs one after the other.

    Attributes
    ----------
    rounds : History
        All of them; what is validated of it holds of each log.
    bounds : (G + 1,) array of int
        Log g has the rounds bounds[g] to bounds[g + 1] - 1.
    written : (n, k) array or None
        The probabilities as they were written, before rows were rescaled; None without.
    gone : (G,) array of bool
        Whether rewards are missing in a log, as written.
    told : (G,) array of bool
        Whether reading a log has something to say of it that it does not say of all.
    """

    rounds: History
    bounds: NDArray[np.int64]
    written: NDArray[np.float64] | None
    gone: NDArray[np.bool_]
    told: NDArray[np.bool_]

    @property
    def n_rounds(self) -> NDArray[np.int64]:
        """Rounds of each log, (G,)."""
        return np.diff(self.bounds)

    def units(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the resolution of each log (see `Resolution.unit`), and how many values it has.

        Not to be used of logs in which arms come and go; 0 and 0 without a whole rule.
        """
        if self.written is None:
            return np.zeros(len(self.told)), np.zeros(len(self.told), np.int64)
        return units_of(np.nan_to_num(self.written), self.bounds)

    def counts(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the different outcomes of logs of 0/1 rewards, and which of them each log has.

        Returns
        -------
        counts : (U, k, 2) array
            Successes and failures that were observed, by arm.
        which : (G,) array of int
        """
        rounds, k, n_logs = self.rounds, self.rounds.n_arms, len(self.bounds) - 1
        known = ~np.isnan(rounds.reward)
        place = np.repeat(np.arange(n_logs), self.n_rounds)[known] * k + rounds.arm[known]
        seen = np.bincount(place, minlength=n_logs * k)
        won = np.bincount(place, weights=rounds.reward[known], minlength=n_logs * k)
        both = np.stack([won, seen - won], axis=1).reshape(n_logs, 2 * k)
        different, which = np.unique(both, axis=0, return_inverse=True)
        return different.reshape(-1, k, 2), which.ravel()


class Logs(Mapping[str, History], Shown):
    """Logs by the label of their group, as a dict has them; each is made when it is asked for.

    Parameters
    ----------
    labels : sequence of str
        In their order.
    make : callable
        Returns the log of a label.
    together : Together
        All of them, in the same order.
    source_of : callable
        Returns what errors and reports call the log of a label.
    """

    def __init__(
        self,
        labels: Sequence[str],
        make: Callable[[str], History],
        together: Together,
        source_of: Callable[[str], str],
    ) -> None:
        self._places = {label: g for g, label in enumerate(labels)}
        self._make = make
        self._made: dict[str, History] = {}
        self.together = together
        self.source_of = source_of

    @property
    def n_arms(self) -> int:
        """Number of arms, the same for all logs."""
        return self.together.rounds.n_arms

    @cached_property
    def one(self) -> History:
        """One of the logs, for what all of them share."""
        return self[next(iter(self))]

    def __getitem__(self, label: str) -> History:
        if label not in self._made:
            self._places[label]  # a KeyError, as of a dict
            self._made[label] = self._make(label)
        return self._made[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, label: object) -> bool:
        return label in self._places

    def __repr__(self) -> str:
        whole = self.together.rounds
        return f"Logs({len(self)} logs, {whole.n_rounds} rounds, {whole.n_arms} arms)"


def logs_in(data: Any) -> list[Any]:
    """Return the logs of a mapping, or the one log; `Logs` as the one that their rounds make."""
    if isinstance(data, Logs):
        return [data.together.rounds]
    return list(data.values()) if isinstance(data, Mapping) else [data]
