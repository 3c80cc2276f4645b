"""Beliefs before each round under any PyMC model: few fits, draws carried between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import HISTORY, constructed, takes
from bayesfair.base.checks import as_generator, check_in_range
from bayesfair.base.notices import Notice
from bayesfair.errors import ConvergenceError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.logs import coded_of
from bayesfair.history import History
from bayesfair.history.cells import reward_cells
from bayesfair.inference.arms import options_in_label_order, total_draws
from bayesfair.inference.contract import contract_of
from bayesfair.inference.predictive import PredictiveLaw
from bayesfair.inference.refit import Draws, Refitter
from bayesfair.inference.reweight import Pool
from bayesfair.inference.sampler import Sampler
from bayesfair.inference.tree import seed_label
from bayesfair.rewards.base import Rewards
from bayesfair.typing import Floats, Model, Seed

__all__ = ["SequentialBeliefs", "sequential_beliefs"]


KHAT_LIMIT = 0.7  # Vehtari et al. (2024): above it, weighted means are unreliable


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class SequentialBeliefs:
    """Beliefs before each round, under a model without a closed form.

    Attributes
    ----------
    rewards : Rewards
        Posterior predictive law of each arm's reward before each round, batch ``(T,)``. Exact in
        form for Bernoulli and Finite; for Poisson and Normal a `Finite` law on cells.
    mean, mean_mcse : (T, k) arrays
        Predictive mean reward and its Monte-Carlo standard error, in reward units.
    best_arm_probability, best_arm_mcse : (T, k) arrays
        P* averaged over joint draws, right for dependent arms too, and its standard error; NaN for
        arms not on offer.
    khat : (T,) array
        Pareto k-hat of the weights; -inf where they have no tail, as at a fit itself.
    ess : (T,) array
        Effective number of draws.
    fit_rounds : tuple of int
        Rounds before which the model was fitted.
    n_compiled : int
        How often the model had to be compiled.
    model, family, prior : str
        What was fitted.
    seed : int or str
    dim : str or None
        What the model's rewards differ by: time (``"bin"``), ``"context"``, ``"round"``, nothing.
    """

    rewards: Rewards
    mean: Floats
    mean_mcse: Floats
    best_arm_probability: Floats
    best_arm_mcse: Floats
    khat: Floats
    ess: Floats
    fit_rounds: tuple[int, ...]
    n_compiled: int
    model: str
    family: str
    prior: str
    seed: int | str
    notices: tuple[str, ...] = ()
    dim: str | None = None

    @property
    def n_fits(self) -> int:
        """Number of fits."""
        return len(self.fit_rounds)

    @property
    def worst_khat(self) -> float:
        """Largest k-hat over rounds."""
        return float(self.khat.max(initial=-np.inf))

    def __repr__(self) -> str:
        return (
            f"SequentialBeliefs({self.model}: {len(self.khat)} rounds from {self.n_fits} fits, "
            f"worst k-hat {self.worst_khat:.2f}, smallest ESS {self.ess.min(initial=np.inf):.0f})"
        )


@takes(history=HISTORY)
def sequential_beliefs(
    history: History,
    *,
    model: Model,
    seed: Seed,
    draws: int = 4000,
    min_ess: float = 200.0,
    max_fits: int = 100,
    cores: int | None = None,
    model_options: Mapping[str, Any] | None = None,
    sampler: Mapping[str, Any] | None = None,
) -> SequentialBeliefs:
    """Return the beliefs before each round under a PyMC model of the arms.

    The model is fitted before the first and the last round, then in between wherever the draws of
    the two neighbouring fits, weighted by the likelihood of the rewards since, do not suffice:
    k-hat above 0.7 or too few effective draws.

    Parameters
    ----------
    history : History
        The log; delayed rewards enter when they become known.
    model : str, module or callable
        Name of a shipped model or your own build function, as for `bayesfair.fit`. Rewards must be
        independent given the variables in `READS`.
    seed : int or numpy Generator
        Required.
    draws : int
        Draws per fit, over four chains.
    min_ess : float
        Refit also where fewer effective draws than this remain.
    max_fits : int
        Refuse to go on after so many.
    cores : int, optional
        Threads per fit.
    model_options : mapping, optional
        Options of the model's `build`.
    sampler : mapping, optional
        As in `bayesfair.fit`.

    Raises
    ------
    ConvergenceError
        If a fit is refused, or `max_fits` are not enough.
    OptionError, DataError
        For a model or rewards that do not fit.

    Notes
    -----
    What a model takes from the whole log is fixed beforehand: time bins (future bins follow the
    random walk), the levels of a finite reward, and the default prior of measurements. A reward
    that no draw explains (a first value far outside the prior) leads to a refit right after it.

    Examples
    --------
    >>> history = History(["a", "b", "a", "a"] * 5, [1, 0, 1, 0] * 5, arms=["a", "b", "c"])
    >>> found = sequential_beliefs(history, model="bernoulli_independent", seed=1, draws=2000)
    >>> found.mean.shape, found.worst_khat <= 0.7, found.n_fits < 8
    ((20, 3), True, True)
    >>> found.mean[19].round(1)  # Beta(10.5, 4.5), Beta(.5, 5.5) and Beta(.5, .5) in closed form
    array([0.7, 0.1, 0.5])
    """
    rng = as_generator(seed)
    contract = contract_of(model)
    options = contract.checked(dict(model_options or {}))
    if not history.n_rounds:
        raise OptionError(f"{history.source} has no rounds, so there are no beliefs before them.")
    arms = history.arms
    if isinstance(model, str):  # a model of one's own may count on the arms as they stand
        history, options = history.in_label_order(), options_in_label_order(options, arms)
    at = [history.arms.index(arm) for arm in arms]
    check_in_range(min_ess, "min_ess", 1, draws)
    family = FAMILIES[contract.family]
    support = options.get("support") if family.has_levels else None
    coded_of(history, family, family.levels(support, history.reward))  # refuses what cannot be
    how = Sampler.of(sampler)
    refitter = Refitter(
        history, contract, options, draws=total_draws(draws, how.chains),
        seed=int(rng.integers(2**31)), cores=cores, sampler=how,
    )  # fmt: skip
    run = _Run(history, refitter, min_ess, int(max_fits))
    run.carry()
    notices = (*run.law.notices, *refitter.notices)
    if refitter.learned is not None:
        notices = (
            *notices,
            Notice(
                f"The prior of the model is {refitter.learned.words()}; before these are known, "
                "that looks ahead. prior= gives another prior.",
                kind="prior_learned",
                column="prior",
                n=refitter.learned.reward.size,
            ),
        )
    return SequentialBeliefs(
        rewards=run.law.rewards().for_arms(arms, "beliefs_model"),
        mean=run.mean[:, at], mean_mcse=run.mean_mcse[:, at],
        best_arm_probability=run.best[:, at], best_arm_mcse=run.best_mcse[:, at],
        khat=run.khat, ess=run.ess,
        fit_rounds=tuple(sorted(run.first_round[m] for m in run.fits)),
        n_compiled=refitter.n_compiled,
        model=contract.name, family=contract.family, prior=contract.describe(options),
        seed=seed_label(seed), notices=notices, dim=refitter.dim,
    )  # fmt: skip


class _Run:
    """The carrying itself; a state m is "the first m observations are known"."""

    def __init__(self, history: History, refitter: Refitter, min_ess: float, max_fits: int) -> None:
        self.history, self.refitter = history, refitter
        self.min_ess, self.max_fits = min_ess, max_fits
        n_rounds, k = history.n_rounds, history.n_arms
        observed = np.flatnonzero(~np.isnan(history.reward))
        known_at = np.arange(1, n_rounds + 1) if history.known_at is None else history.known_at
        self.order = observed[np.argsort(known_at[observed], kind="stable")]
        #: number of observations known before each round
        self.state = np.searchsorted(known_at[self.order], np.arange(n_rounds), side="right")
        states, first = np.unique(self.state, return_index=True)
        self.states = states
        self.first_round = dict(zip(states.tolist(), first.tolist(), strict=True))
        zeros = np.zeros(n_rounds, dtype=np.int64)
        self.bins = zeros if refitter.bins is None else refitter.bins
        self.fits: dict[int, Draws] = {}
        self.khat = np.full(n_rounds, -np.inf)
        self.ess = np.empty(n_rounds)
        self.mean, self.mean_mcse, self.best, self.best_mcse = np.empty((4, n_rounds, k))
        ends = [self._fit(int(states[0])), self._fit(int(states[-1]))]
        self.law = PredictiveLaw.of(ends, n_rounds, history.reward)

    def _fit(self, m: int) -> Draws:
        if m not in self.fits:
            if len(self.fits) >= self.max_fits:
                raise ConvergenceError(
                    f"{self.refitter.contract.name}: {self.max_fits} fits did not suffice to carry "
                    f"draws over {self.history.n_rounds} rounds (k-hat above {KHAT_LIMIT} or fewer "
                    f"than {self.min_ess:g} effective draws remain near "
                    f"{self.history.where(self.first_round[m])}). Raise draws or max_fits."
                )
            self.fits[m] = self.refitter.fit(m, self.first_round[m], self.order)
        return self.fits[m]

    def carry(self) -> None:
        """Fill every round, splitting intervals until the weights are good."""
        todo = [(int(self.states[0]), int(self.states[-1]))]
        while todo:
            first, last = todo.pop()
            middle = self._carry_between(first, last)
            if middle is not None:
                self._fit(middle)
                todo += [(middle, last), (first, middle)]
        for m, draws in self.fits.items():
            self._at_fit(m, draws)

    def _rounds_of(self, m: int) -> list[tuple[NDArray[np.int64], int, Any]]:
        """Return the rounds of a state, grouped by time bin and arms on offer."""
        rounds = np.arange(*np.searchsorted(self.state, [m, m + 1]))
        groups: dict[Any, list[int]] = {}
        for t in rounds.tolist():
            mask = None if self.history.offered is None else self.history.offered[t]
            mask = None if mask is None or mask.all() else mask
            key = (int(self.bins[t]), None if mask is None else mask.tobytes())
            groups.setdefault(key, []).append(t)
        masks = [
            None if self.history.offered is None else self.history.offered[ts[0]]
            for ts in groups.values()
        ]
        return [
            (np.array(ts), key[0], None if key[1] is None else mask)
            for (key, ts), mask in zip(groups.items(), masks, strict=True)
        ]

    def _at_fit(self, m: int, draws: Draws) -> None:
        """Fill the rounds of a state that was fitted, from its own draws."""
        weight = np.full(draws.size, 1 / draws.size)
        for rounds, time_bin, mask in self._rounds_of(m):
            for values, mean, error in (
                (draws.means(time_bin), self.mean, self.mean_mcse),
                (draws.best(time_bin, mask), self.best, self.best_mcse),
            ):
                mean[rounds] = values.mean(axis=0)
                error[rounds] = values.std(axis=0) / np.sqrt(draws.size * draws.efficiency)
            self.khat[rounds], self.ess[rounds] = -np.inf, draws.size * draws.efficiency
            self.law.put(rounds, weight, (draws,), time_bin)

    def _carry_between(self, first: int, last: int) -> int | None:
        """Fill the states between two fits; return the state to fit if they do not suffice."""
        lo, hi = np.searchsorted(self.states, [first, last])
        inside = self.states[lo + 1 : hi]
        if not inside.size:
            return None
        pair = (self._fit(first), self._fit(last))
        index = self.order[first:last]
        cells = reward_cells(self.history, self.refitter.bins, index)
        table = np.concatenate([_log_likelihood(draws, cells) for draws in pair])
        total = table @ cells["count"].astype(float)
        n_1 = pair[0].size
        pool = Pool.of(total[:n_1], total[n_1:], (pair[0].efficiency, pair[1].efficiency))
        if pool.overlap < self.min_ess / 10:
            return self._middle(inside, first)
        apart = table.shape[1] > 0.25 * len(index)  # rounds have hardly a cell in common
        sums = np.cumsum(table[:, cells["cell"]], axis=1) if apart else None
        for m in _worst_first(inside):
            known = cells["cell"][: m - first]
            seen = np.bincount(known, minlength=table.shape[1]).astype(float)
            log_ratio = table @ seen if sums is None else sums[:, m - first - 1]
            weight, khat, ess = pool.weights(log_ratio)
            if khat > KHAT_LIMIT or ess < self.min_ess:
                return self._middle(inside, first)
            self._put(int(m), pool, pair, weight=weight, khat=khat, ess=ess)
        return None

    def _middle(self, inside: NDArray[np.int64], first: int) -> int:
        """Split where the information has grown by the same factor on both sides."""
        k = self.history.n_arms  # a prior is worth about one round per arm
        target = np.sqrt((first + k) * (inside[-1] + k)) - k
        return int(inside[np.argmin(np.abs(inside - target))])

    def _put(
        self, m: int, pool: Pool, pair: tuple[Draws, Draws], *,
        weight: Floats, khat: float, ess: float,
    ) -> None:  # fmt: skip
        for rounds, time_bin, mask in self._rounds_of(m):
            means = np.concatenate([draws.means(time_bin) for draws in pair])
            best = np.concatenate([draws.best(time_bin, mask) for draws in pair])
            values = np.concatenate([means, best], axis=1)
            average = weight @ values
            error = pool.standard_error(weight, values, average)
            k = self.history.n_arms
            self.mean[rounds], self.best[rounds] = average[:k], average[k:]
            self.mean_mcse[rounds], self.best_mcse[rounds] = error[:k], error[k:]
            self.khat[rounds], self.ess[rounds] = khat, ess
            self.law.put(rounds, weight, pair, time_bin)


def _log_likelihood(draws: Draws, cells: dict[str, NDArray[Any]]) -> Floats:
    return draws.family.log_likelihood(
        draws.reads, cells["arm"], cells["reward"], cells["bin"], draws.level
    )


def _worst_first(inside: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order states by their distance from the middle, where weights are worst: fails early."""
    middle = np.sqrt(float(inside[0]) * float(inside[-1])) if inside[0] else float(inside[-1]) / 2
    return inside[np.argsort(np.abs(inside - middle), kind="stable")]
