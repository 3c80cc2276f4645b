"""Measurements, with normal-inverse-gamma beliefs on their mean and variance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.errors import DataError
from bayesfair.families.base import Family, Known, Reads, Tail
from bayesfair.kernels.laws.continuous_arms import location_scale_best_arm
from bayesfair.rewards import Normal, Rewards, StudentT
from bayesfair.typing import Floats

__all__ = ["NormalFamily"]

_SMALLEST = 1e-150
_N_CELLS = 128
"""Equally likely cells of a predictive law."""


class NormalFamily(Family):
    """The parameters do not simply add up: a compiled rule and `posterior` know how.

    Variances are InverseGamma(shape, scale), means Normal(mean, variance / kappa). Without
    ``prior=`` it is a `bayesfair.families.learned.LearnedPrior`.
    """

    name = compiled = "normal"
    parameters = ("mean", "kappa", "shape", "scale")
    default = (0.0, 1.0, 1.0, 1.0)
    law = "(mean, sd) ~ normal-inverse-gamma(mean, kappa, shape, scale = {})"
    reads = ("mean", "sd")
    model = "normal_independent"
    containers = ("prior_mean", "prior_kappa", "prior_shape", "prior_scale")
    allowed = "any number"
    free = ("mean",)
    learns_prior = True
    continuous = True

    def holds(self, reward: Floats, support: Floats) -> NDArray[np.bool_]:
        """Return that all rewards fit."""
        return np.ones(len(reward), dtype=bool)

    def coded(
        self,
        reward: Floats,
        support: Floats,
        where: Callable[[int], str],
        *,
        column: str | None = "reward",
        rows: NDArray[np.int64] | None = None,
        remedy: str | None = None,
    ) -> Floats:
        """Return the rewards as beliefs learn from them; none are refused but too small ones.

        Raises
        ------
        DataError
            Naming the first reward, where squares of all of them are 0 although they differ.
        """
        low, high = np.fmin.reduce(reward, initial=np.inf), np.fmax.reduce(reward, initial=-np.inf)
        if low < high and max(-low, high) < _SMALLEST:
            t = int(np.argmax(np.abs(np.nan_to_num(reward)) > 0))
            raise DataError(
                f"{where(t)} is {reward[t]:g}, and no reward is larger than {_SMALLEST:g} in size: "
                "their squares are 0, so that nothing can be learned of their spread. Give rewards "
                "in another unit.",
                kind="bad_reward", row=None if rows is None else int(rows[t]), column=column,
                value=float(reward[t]),
            )  # fmt: skip
        return super().coded(reward, support, where, column=column, rows=rows, remedy=remedy)

    def added(self, coded: Floats) -> Floats:
        """Return nothing: see the class."""
        return np.empty((len(coded), 0))

    def posterior(self, prior: Floats, known: Known) -> Floats:
        """Return the normal-inverse-gamma posterior."""
        mean, kappa, shape, scale = prior.T
        average = known.total / np.maximum(known.pulls, 1)
        weight = kappa + known.pulls
        shift = kappa * known.pulls * (average - mean) ** 2 / (2 * weight)
        columns = [
            (kappa * mean + known.pulls * average) / weight,
            weight,
            shape + known.pulls / 2,
            scale + known.spread / 2 + shift,
        ]
        return np.stack(columns, axis=1)

    def joined(self, prior: Floats, found: Floats) -> Floats:
        """Return the posterior; without a prior the updates make mean, number and squares."""
        mean, n, _, half_squares = found.T
        return self.posterior(prior, Known(n, n * mean, 2 * half_squares, found))

    def predictive(self, table: Floats, support: Floats, arms: Sequence[str]) -> Rewards:
        """Return Student t laws with 2 shape degrees of freedom."""
        mean, kappa, a, b = np.moveaxis(table, -1, 0)
        return StudentT(2 * a, mean, np.sqrt(b * (kappa + 1) / (a * kappa)), arms=tuple(arms))

    def mean(self, table: Floats, support: Floats) -> Floats:
        """Return the location of the mean."""
        return table[..., 0]

    def best_mean(self, table: Floats, support: Floats) -> Floats:
        """Return P(the mean is the largest): it is Student t, narrower than the next reward."""
        mean, kappa, a, b = np.moveaxis(table, -1, 0)
        return location_scale_best_arm(2 * a, mean, np.sqrt(b / (a * kappa)))

    def best_means(self, tables: Floats, support: Floats) -> Floats:
        """Return the same for a batch, at once."""
        return self.best_mean(tables, support)

    def best_of_laws(self, rewards: Rewards, n_arms: NDArray[np.int64]) -> Floats:
        """Return P* of an arm of each law."""
        assert isinstance(rewards, StudentT)
        return location_scale_best_arm(rewards.df, rewards.loc, rewards.scale, n_arms)

    def draws(
        self, table: Floats, shape: tuple[int, ...], rng: np.random.Generator
    ) -> dict[str, Floats]:
        """Return draws of means and standard deviations."""
        mean, kappa, a, scale = table.T
        size = (*shape, len(table))
        sd = np.sqrt(scale / rng.standard_gamma(a, size=size))
        return {"mean": mean + sd / np.sqrt(kappa) * rng.standard_normal(size), "sd": sd}

    def truth(self, reads: Reads, arms: Sequence[str], level: Floats | None) -> Rewards:
        """Return normal laws."""
        return Normal(reads["mean"], reads["sd"], arms=tuple(arms))

    def log_likelihood(
        self,
        reads: Reads,
        arm: NDArray[np.int64],
        reward: Floats,
        time_bin: NDArray[np.int64],
        level: Floats | None,
    ) -> Floats:
        """Return the log density."""
        sd = reads["sd"][..., time_bin, arm]
        z = (reward - reads["mean"][..., time_bin, arm]) / sd
        return np.asarray(-0.5 * z**2 - np.log(sd) - 0.5 * np.log(2 * np.pi))

    def log_prior(self, reads: Reads, prior: Floats) -> Floats:
        """Return the log density of the normal-inverse-gamma laws, summed over arms."""
        m, kappa, a, b = prior.T
        variance = reads["sd"] ** 2
        z = (reads["mean"] - m) / (reads["sd"] / np.sqrt(kappa))
        log = -0.5 * z**2 - np.log(reads["sd"] / np.sqrt(kappa)) - 0.5 * np.log(2 * np.pi)
        log = log - (a + 1) * np.log(variance / b) - b / variance - special.gammaln(a) - np.log(b)
        return np.asarray(log.sum(axis=-1))

    def cells(
        self, ends: Sequence[Reads], level: Floats | None, reward: Floats
    ) -> tuple[Floats, Floats]:
        """Return cells that are equally likely under either of the draws."""
        share = (np.arange(_N_CELLS) + 0.5) / _N_CELLS
        points = []
        for reads in ends:
            sd, mean = reads["sd"].ravel(), reads["mean"].ravel()
            # a quantile of the predictive per draw, shuffled over draws by a fixed stride
            uniform = (np.arange(len(sd)) * 0.6180339887498949 + 0.5 / len(sd)) % 1
            points.append(np.quantile(mean + sd * special.ndtri(uniform), share))
        values = np.unique(np.concatenate(points))
        return values, (values[1:] + values[:-1]) / 2

    def mass(self, reads: Reads, edge: Floats) -> Floats:
        """Return the probability of each cell."""
        z = (edge - reads["mean"][..., None]) / reads["sd"][..., None]
        return np.diff(special.ndtr(z), axis=-1, prepend=0.0, append=1.0)

    def tails(
        self, prior: Floats, posterior: Floats, support: Floats, level: float, *, learned: bool
    ) -> Iterator[Tail]:
        """Yield the tails of the mean, Student t, and of the variance over scale / shape, F."""
        rows = zip(prior.tolist(), posterior.tolist(), strict=True)
        for i, ((m, kappa, a, b), (end, weight, _, scale)) in enumerate(rows):
            n = round(weight - kappa)
            if n < 1:
                continue
            mean = m + (end - m) * weight / n
            z = (mean - m) / np.sqrt(b / a * (1 / kappa + 1 / n))
            yield Tail(float(2 * special.stdtr(2 * a, -abs(z))), i, f"mean {mean:.4g} of {n}")
            shift = 0.5 * kappa * n * (mean - m) ** 2 / weight
            squares = 2 * (scale - b - shift)
            # equal rewards were rounded or stand for something else; and what cancels is no spread
            if n > 1 and squares > 1e-9 * (b + shift):
                ratio = squares / (n - 1) * a / b
                high = special.fdtrc(n - 1, 2 * a, ratio)
                low = 1.0 if learned else special.fdtr(n - 1, 2 * a, ratio)
                sd = np.sqrt(squares / (n - 1))
                yield Tail(float(2 * min(low, high)), i, f"standard deviation {sd:.4g} of {n}")
