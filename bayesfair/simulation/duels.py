"""Run a duelling rule on known Plackett-Luce worths, logging who is paired how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import NUMBERS, takes
from bayesfair.base.checks import as_generator, as_numbers
from bayesfair.base.labels import by_label
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError
from bayesfair.kernels.simulation.counts_and_means import choose
from bayesfair.policies.duels import FairSDDTS
from bayesfair.simulation.arms import check_whole

__all__ = ["DuelLog", "simulate_duels"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class DuelLog:
    r"""Duels and the exact probabilities with which the pairs were drawn.

    Parameters
    ----------
    left, right : (T,) arrays of int
        Positions in `items`; equal = a duel of an item with itself, which has no outcome.
    outcome : (T,) array
        1 = left won, 0 = right won, NaN = no outcome.
    pair_probability : (T, k, k) array
        ``[t, i, j]``: probability that round t duels i (left) with j (right); sums to 1 per round.
    selection_probability : (T, k) array
        :math:`\pi_t(i)` under `slot`; rows sum to 1.
    items : tuple of str
        Labels.
    slot : str
        ``"first"``: law of the left item; ``"mean"``: half the probability of taking part.
    source : str
        What reports call the data.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: FloatArray
    pair_probability: FloatArray
    selection_probability: FloatArray
    items: tuple[str, ...]
    slot: str = "first"
    source: str = "simulated duels"

    def __post_init__(self) -> None:
        """Freeze the arrays and check that they belong together."""
        n_rounds, k = len(self.left), len(self.items)
        shapes = {
            "right": (n_rounds,),
            "outcome": (n_rounds,),
            "pair_probability": (n_rounds, k, k),
            "selection_probability": (n_rounds, k),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                got = getattr(self, name).shape
                raise DataError(f"{name} has shape {got}, expected {shape}.")
        for name in ("left", *shapes):
            view = getattr(self, name).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @property
    def n_rounds(self) -> int:
        """Number of duels, T."""
        return self.left.size

    @property
    def propensity(self) -> FloatArray:
        """Probability of the ordered pair that was drawn, ``(T,)``."""
        return np.asarray(self.pair_probability[np.arange(self.n_rounds), self.left, self.right])

    def to_comparisons(self) -> Comparisons:
        """Return the duels that have an outcome, for fitting; the others are counted."""
        known = ~np.isnan(self.outcome)
        labels = np.array(self.items, dtype=object)
        return Comparisons.from_duels(
            labels[self.left[known]].tolist(),
            labels[self.right[known]].tolist(),
            np.where(self.outcome[known] == 1, "left", "right").tolist(),
            items=self.items,
            winner_is="side",
            source=self.source,
            n_skipped=int((~known).sum()),
            keep_rows=True,
        )

    def fairness_regret(self, worth: Any) -> FloatArray:
        r"""Return :math:`TV(P^*, \pi_t)` per round, ``(T,)``: P* is the worth share.

        Parameters
        ----------
        worth : (k,) array or mapping of label to worth
            True worths, positive, of any scale.
        """
        share = _worths(worth)[1]
        return np.asarray(np.maximum(share - self.selection_probability, 0.0).sum(axis=1))

    def __repr__(self) -> str:
        return (
            f"DuelLog({self.source}: {self.n_rounds} duels of {len(self.items)} items, "
            f"slot={self.slot!r}, {int(np.isnan(self.outcome).sum())} without outcome)"
        )


@takes(worth=NUMBERS)
def simulate_duels(
    policy: FairSDDTS,
    worth: ArrayLike | Mapping[str, float],
    n_rounds: int,
    *,
    seed: Any,
    n_runs: int | None = None,
) -> Any:
    r"""Run a duelling rule on items with known worths and return all pair probabilities.

    The left item wins with probability :math:`\nu_l / (\nu_l + \nu_r)`.

    Parameters
    ----------
    policy : FairSDDTS
        The rule.
    worth : (k,) array or mapping of label to worth
        :math:`\nu` > 0, of any scale.
    n_rounds : int
        T.
    seed : int or numpy Generator
        Required. Run r is the same however many runs are asked for.
    n_runs : int, optional
        None = one run, returned by itself.

    Returns
    -------
    DuelLog or dict of str to DuelLog

    Warns
    -----
    BayesfairWarning
        If exploration would fill the run.

    Examples
    --------
    >>> log = simulate_duels(FairSDDTS(C=5), {"a": 3, "b": 2, "c": 1}, 200, seed=1)
    >>> log.pair_probability.shape, log.selection_probability[0].round(3)
    ((200, 3, 3), array([0.333, 0.333, 0.333]))
    """
    if not isinstance(policy, FairSDDTS):
        raise OptionError(f"policy={policy!r} is no duelling rule; use FairSDDTS.")
    n_rounds = check_whole(n_rounds, "n_rounds", 0)
    items, share = _worths(worth)
    rule = policy.for_run(len(items), n_rounds)
    count = 1 if n_runs is None else check_whole(n_runs, "n_runs", 1)
    runs = {
        str(r): _one_run(rule, (items, share), n_rounds, rng, f"{rule.name} run {r}")
        for r, rng in enumerate(as_generator(seed).spawn(count))
    }
    return runs["0"] if n_runs is None else runs


def _one_run(
    rule: FairSDDTS,
    truth: tuple[tuple[str, ...], FloatArray],
    n_rounds: int,
    rng: np.random.Generator,
    source: str,
) -> DuelLog:
    items, share = truth
    k = len(items)
    deciding, paying = rng.spawn(2)
    decide, pay = deciding.random(n_rounds), paying.random(n_rounds)
    left, right = np.empty(n_rounds, np.int32), np.empty(n_rounds, np.int32)
    outcome, pairs = np.full(n_rounds, np.nan), np.empty((n_rounds, k, k))
    state = rule.start(k)
    current = rule.pair_probability(state)
    for t in range(n_rounds):
        pairs[t] = current
        i, j = divmod(int(choose(current.ravel(), decide[t])), k)
        left[t], right[t] = i, j
        if i != j:
            outcome[t] = float(pay[t] < share[i] / (share[i] + share[j]))
            state = rule.update(state, i, j, outcome[t])
            current = rule.pair_probability(state)
    pi = rule.slot_probability(pairs)
    return DuelLog(left, right, outcome, pairs, pi, items, rule.slot, source)


def _worths(worth: Any) -> tuple[tuple[str, ...], FloatArray]:
    if isinstance(worth, Mapping):
        named = by_label(worth, "item", "worth")
        items, values = tuple(named), as_numbers(list(named.values()), "worth").ravel()
    else:
        values = as_numbers(worth, "worth").ravel()
        items = tuple(str(i) for i in range(values.size))
    if not values.size or not np.all(np.isfinite(values) & (values > 0)):
        raise DataError(f"worth={worth!r} must be positive and finite for every item.")
    return items, values / values.sum()
