r"""Carrying posterior draws from two fits to the states between them, by importance weights.

Let fits exist after :math:`m_1 < m_2` observations and let :math:`L_t(x)` be the log likelihood at
draw x of the observations from :math:`m_1` up to state t. Draws of both fits, pooled, come from the
mixture :math:`N_1 p_1 + N_2 p_2` with :math:`p_2 / p_1 = e^{L_{m_2}(x) - r}`, so that

.. math:: w_t(x) \propto e^{L_t(x)} / (N_1 + N_2 e^{L_{m_2}(x) - r}).

The log ratio of normalising constants r solves :math:`\sum_x N_2 e^{L-r}/(N_1+N_2 e^{L-r}) = N_2`
(Bennett 1976; Meng and Wong 1996). States between the fits lie between their posteriors, so the
pool covers them from both sides: the weights stay bounded where one-sided ones have heavy tails.

References: Bennett (1976), J. Comput. Phys. 22, 245-268; Meng, Wong (1996), Statistica Sinica 6,
831-860; Vehtari et al. (2024), JMLR 25(72).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from bayesfair.typing import Floats

__all__ = ["Pool", "bridge_log_ratio", "psis_weights"]


_FEWEST = 25  # draws whose largest fifth is a tail of five


def psis_weights(log_ratio: Floats, r_eff: float = 1.0) -> tuple[Floats, float]:
    """Return Pareto-smoothed, normalised importance weights of one state, and their k-hat.

    Parameters
    ----------
    log_ratio : (D,) array
        Log of target over proposal density, up to a constant.
    r_eff : float
        Relative efficiency of the draws, effective over actual number.

    Returns
    -------
    weights : (D,) array
        Sum to 1.
    khat : float
        Shape of the Pareto tail; above 0.7 the weights are not to be trusted. ``-inf`` where the
        largest weights are all equal, so that there is no tail; ``inf`` where too few draws leave
        no tail to fit.
    """
    from arviz_stats.base import array_stats

    top = float(log_ratio.max())
    try:
        # ArviZ takes log likelihoods and negates them
        log_weight, khat = array_stats.psislw(top - log_ratio, r_eff=r_eff)
    except ValueError:
        # "All tail values are the same", or "n_draws_tail must be at least 5"
        alike = len(log_ratio) >= _FEWEST or np.ptp(log_ratio) == 0
        log_weight, khat = log_ratio - top, -np.inf if alike else np.inf
    weight = np.exp(log_weight - special.logsumexp(log_weight))
    return weight, float(khat)


def bridge_log_ratio(log_1: Floats, log_2: Floats) -> float:
    """Return log(Z2 / Z1) of two fits from the log density ratio p2/p1 at the draws of each.

    Examples
    --------
    Draws from N(0, 1) and N(1, 1); unnormalised densities exp(-x^2/2) and 3 exp(-(x-1)^2/2).

    >>> x = np.linspace(-4, 4, 2001)
    >>> grid = special.ndtri((np.arange(2000) + 0.5) / 2000)
    >>> def log_ratio(x):
    ...     return np.log(3) + x - 0.5
    >>> round(bridge_log_ratio(log_ratio(grid), log_ratio(grid + 1)), 3)
    1.099
    """
    n_1, n_2 = len(log_1), len(log_2)
    pooled = np.concatenate([log_1, log_2])

    def excess(r: float) -> float:
        return float(special.expit(np.log(n_2 / n_1) + pooled - r).sum() - n_2)

    # the excess falls from n_1 to -n_2: bisection cannot fail, whatever the overlap
    low, high = float(pooled.min()) - 50, float(pooled.max()) + 50
    for _ in range(200):
        middle = 0.5 * (low + high)
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
        if high - low < 1e-12 * max(1.0, abs(middle)):
            break
    return 0.5 * (low + high)


@dataclass(frozen=True)
class Pool:
    """Draws of two neighbouring fits, pooled.

    Attributes
    ----------
    n_first : int
        Draws of the first fit; the rest are the second's.
    second : (D,) array
        Probability that a draw at this place comes from the second fit.
    log_mixture : (D,) array
        Log density of the pool over that of the first fit, up to a constant.
    efficiency : tuple of float
        Relative efficiency of the draws of each fit.
    """

    n_first: int
    second: Floats
    log_mixture: Floats
    efficiency: tuple[float, float]

    @classmethod
    def of(cls, log_first: Floats, log_second: Floats, efficiency: tuple[float, float]) -> Pool:
        """Return the pool, from the log likelihood between the fits at the draws of each."""
        r = bridge_log_ratio(log_first, log_second)
        n_1, n_2 = len(log_first), len(log_second)
        log = np.concatenate([log_first, log_second]) - r + np.log(n_2 / n_1)
        return cls(n_1, special.expit(log), np.logaddexp(0.0, log), efficiency)

    @property
    def overlap(self) -> float:
        """How many draws tell the two fits apart no better than a coin; near 0: no overlap."""
        return float((4 * self.second * (1 - self.second)).sum())

    def weights(self, log_likelihood: Floats) -> tuple[Floats, float, float]:
        """Return weights of a state, their k-hat and effective number of draws.

        Parameters
        ----------
        log_likelihood : (D,) array
            Of the observations from the first fit up to the state.
        """
        weight, khat = psis_weights(log_likelihood - self.log_mixture, min(self.efficiency))
        return weight, khat, min(self.efficiency) / float(weight @ weight)

    def standard_error(self, weight: Floats, values: Floats, mean: Floats) -> Floats:
        """Return the Monte-Carlo standard error of weighted means, ``(F,)``.

        The influence of a draw on the mean has a direct part, and one through the estimated ratio
        of normalising constants; both fits are strata.

        Parameters
        ----------
        weight : (D,) array
        values : (D, F) array
        mean : (F,) array
        """
        influence = weight[:, None] * (values - mean)
        information = float((self.second * (1 - self.second)).sum())
        if information > 0:
            slope = (self.second @ influence) / information
            influence = influence + self.second[:, None] * slope
        variance = np.zeros(values.shape[1])
        parts = (slice(None, self.n_first), slice(self.n_first, None))
        for part, efficiency in zip(parts, self.efficiency, strict=True):
            stratum = influence[part]
            variance += len(stratum) * stratum.var(axis=0) / efficiency
        return np.asarray(np.sqrt(variance))
