r"""Bounds on fairness regret and on unfair rounds; the setting is that of `bayesfair.theory`.

Every docstring says what is *proved*, what was *corrected* and what is *only observed*.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import takes, within
from bayesfair.base.checks import check_in_range
from bayesfair.errors import DataError, OptionError
from bayesfair.kernels.laws.best_arm import bernoulli_best_arm
from bayesfair.policies.exploration import union_with_prior_C
from bayesfair.typing import Floats

__all__ = [
    "asymptotic_constant",
    "fair_sd_ts_regret_bounds",
    "forecast_regret_bound",
    "paper_eps2",
    "paper_regret_order",
    "regret_lower_bound",
    "sd_ts_average_regret_bound",
    "sd_ts_regret_bound",
    "sum_of_tie_weights",
    "tie_weights",
    "unfair_rounds_bound",
    "unfair_rounds_end",
]

_NUMERIC = within(-np.inf, array=True)  # `_means` says what is wrong with their range


@takes(n_arms=within(1, 1e9, whole=True), n_rounds=within(1, 1e18))
def paper_eps2(n_arms: int, n_rounds: int) -> float:
    r"""Return the paper's tuning of Fair_SD_TS, :math:`\epsilon_2 = k^{2/3} T^{-1/3}`.

    Corrected: with this eps2 and `paper_C` exploration fills the run up to about T = 1000; and the
    dependence on k of the regret it is meant to give is not derived in the paper's sketch.

    Examples
    --------
    >>> round(paper_eps2(5, 1_000_000), 5)
    0.02924
    """
    return float(n_arms ** (2 / 3) * n_rounds ** (-1 / 3))


@takes(n_arms=within(1, 1e9, whole=True), n_rounds=within(0, 1e18))
def paper_regret_order(n_arms: int, n_rounds: int) -> float:
    r"""Return :math:`(kT)^{2/3}`, the paper's order of fairness regret, without logarithms.

    Proved as an upper bound in T (up to logarithms), by `fair_sd_ts_regret_bounds`; not the right
    order: plain SD_TS needs :math:`k\sqrt{T}` up to a logarithm (`sd_ts_regret_bound`).

    Examples
    --------
    >>> round(paper_regret_order(2, 1_000_000))
    15874
    """
    return float((n_arms * n_rounds) ** (2 / 3))


@takes(theta=_NUMERIC)
def tie_weights(theta: ArrayLike) -> Floats:
    r"""Return :math:`h_i = E[1/(1 + N_{-i})]`, N the number of successes among the other arms.

    Also P(i is selected | its reward is 1).

    Parameters
    ----------
    theta : (k,) array
        Bernoulli means.

    Examples
    --------
    >>> tie_weights([0.5, 0.5])
    array([0.75, 0.75])
    """
    m = _means(theta)
    rows = np.tile(m, (m.size, 1))
    np.fill_diagonal(rows, 1.0)
    return np.diagonal(bernoulli_best_arm(rows)).copy()


@takes(theta=_NUMERIC)
def sum_of_tie_weights(theta: ArrayLike) -> float:
    r"""Return :math:`H(\theta) = \sum_i h_i`, in [1, k].

    Proved: at most 1.3 / (mean of theta).

    Examples
    --------
    >>> sum_of_tie_weights([0.5, 0.5])
    1.5
    """
    return float(tie_weights(theta).sum())


@takes(n_arms=within(1, 1e9, whole=True), theta=within(-np.inf, array=True, optional=True))
def sd_ts_regret_bound(n_arms: int, n_rounds: int, theta: ArrayLike | None = None) -> float:
    r"""Return an upper bound on the expected fairness regret of SD_TS.

    .. math:: R_T \le \min(T,\; 2.06 \sqrt{H(\theta)\, k\, T\, (1 + \log T)})

    Parameters
    ----------
    n_arms, n_rounds : int
        k, and T >= 0; the regret of a round is at most 1.
    theta : (k,) array, optional
        True means; without them H = k, the worst case.

    Notes
    -----
    Proved, for every theta and T >= 1. An expectation over runs: one log may exceed it.

    Examples
    --------
    >>> round(sd_ts_regret_bound(5, 1_000_000))
    39646
    """
    if theta is not None and _means(theta).size != n_arms:
        raise OptionError(
            f"theta={theta!r:.60} must hold one mean for each of n_arms={n_arms} arms.",
            kind="wrong_shape",
            column="theta",
        )
    top = float(n_arms) if theta is None else sum_of_tie_weights(theta)
    rounds = _rounds(n_rounds)
    return min(rounds, 2.06 * math.sqrt(top * n_arms * rounds * (1 + math.log(max(rounds, 1)))))


@takes(n_arms=within(1, 1e9, whole=True))
def sd_ts_average_regret_bound(n_arms: int, n_rounds: int) -> float:
    r"""Return a bound on SD_TS's fairness regret averaged over theta ~ Beta(1/2, 1/2)^k.

    .. math:: \min(T,\; \sqrt{(1 - 2^{1-k})\, k\, T \log(1 + T/k)})

    Proved.

    Examples
    --------
    >>> round(sd_ts_average_regret_bound(5, 1_000_000))
    7564
    """
    share = 1 - 2.0 ** (1 - n_arms)
    rounds = _rounds(n_rounds)
    return min(rounds, math.sqrt(share * n_arms * rounds * math.log1p(rounds / n_arms)))


@takes(n_arms=within(1, 1e9, whole=True), n_rounds=within(0, 1e18))
def regret_lower_bound(n_arms: int, n_rounds: int, *, sparse: bool = False) -> float:
    r"""Return what the fairness regret of *every* rule reaches at some theta.

    Parameters
    ----------
    n_arms, n_rounds : int
        Even k >= 2; T >= k, or 0.
    sparse : bool
        False: means of average 1/2. True (k >= 4): means of average 1/k, where calibration is
        harder.

    Notes
    -----
    Proved: :math:`.17\sqrt T` at k = 2; :math:`.086\sqrt{kT}`; sparse:
    :math:`.035\,k\sqrt T` if :math:`T \ge 1.27 k^2`, else .031 T. With
    `sd_ts_regret_bound`, SD_TS is optimal in the worst case up to :math:`\sqrt{1+\log T}` and a
    constant, which answers the paper's open question.
    Minimax, not for every theta: with equal arms the uniform rule has regret 0.

    Raises
    ------
    OptionError
        Where nothing is proved.

    Examples
    --------
    >>> regret_lower_bound(2, 1_000_000)
    170.0
    """
    if n_rounds == 0:
        return 0.0
    if n_arms < 2 or n_arms % 2 or n_rounds < n_arms or (sparse and n_arms < 4):
        raise OptionError(
            f"no lower bound is proved for n_arms={n_arms}, n_rounds={n_rounds}, sparse={sparse}; "
            "it needs an even number of arms (at least 4 if sparse) and n_rounds >= n_arms."
        )
    if sparse:
        enough = n_rounds >= 1.27 * n_arms**2
        return 0.035 * n_arms * math.sqrt(n_rounds) if enough else 0.031 * n_rounds
    if n_arms == 2:
        return 0.17 * math.sqrt(n_rounds)
    return 0.086 * math.sqrt(n_arms * n_rounds)


@takes(theta=_NUMERIC, C=within(0, 1e100), n_rounds=within(0, 1e18))
def fair_sd_ts_regret_bounds(theta: ArrayLike, C: float, n_rounds: int) -> tuple[float, float]:
    r"""Return lower and upper bounds on the expected fairness regret of Fair_SD_TS.

    With n = floor(C) + 1 and d = TV(uniform, P*):

    .. math:: d \min(T, kn) \le R_T \le d\,k\,(n + \sqrt{2 n \log k} + \log k) + R^{SD\_TS}_T

    Parameters
    ----------
    theta : (k,) array
        True means.
    C : float
        Exploration constant, fixed in advance.
    n_rounds : int
        T.

    Notes
    -----
    Proved, and with the paper's C and eps2 the upper bound proves the paper's claim on regret.
    Nearly all of the regret is exploration: it buys objective smoothness in the opening rounds, not
    calibration.

    Examples
    --------
    >>> low, high = fair_sd_ts_regret_bounds([0.1, 0.9], 1000, 1_000_000)
    >>> round(low, 1), low < high
    (800.8, True)
    """
    m = _means(theta)
    k, n = m.size, math.floor(C) + 1
    d = float(np.maximum(bernoulli_best_arm(m) - 1 / k, 0).sum())
    rounds = k * (n + math.sqrt(2 * n * math.log(k)) + math.log(k))
    upper = d * min(rounds, n_rounds) + sd_ts_regret_bound(k, n_rounds, m)
    return d * min(n_rounds, k * n), min(upper, float(n_rounds))


@takes(excess_loss=within(0, array=True), least=within(0, 0.5, low_open=True))
def forecast_regret_bound(excess_loss: ArrayLike, n_rounds: int, least: float) -> float:
    r"""Return a bound on the expected fairness regret of P* of forecasts, with contexts or without.

    A forecaster says before each round :math:`m_i(x_t)`, how likely arm i pays given the context,
    and the rule is :math:`\pi_t = P^*(m(x_t))`. Where the true :math:`\theta_i(x)` and the
    forecasts lie in [b, 1 - b]:

    .. math:: R_T \le \min\Bigl(T,\; k \sqrt{T \sum_i B_i / (2b)}\Bigr), \qquad
              B_i = E \sum_{t:\, a_t = i} KL(\theta_i(x_t) \| m_i(x_t))

    Parameters
    ----------
    excess_loss : (k,) array
        :math:`B_i`, in nats: by how much the forecasts lose more than the truth by log loss, on
        the rewards of arm i in the rounds that chose it.
    n_rounds : int
        T >= 0.
    least : float
        b in (0, 1/2]. Forecasts are clipped to [b, 1 - b], which raises no KL.

    Notes
    -----
    Proved, for rewards 0 and 1, arms independent given the context. With
    :math:`d_i = \theta_i - m_i` in one round:

    1. :math:`TV(P^*(\theta), P^*(m)) \le \sum_i |d_i|`: the choice is an image of the rewards, and
       two coins can be drawn together so that they differ with probability :math:`|d_i|`.
    2. :math:`\pi_i \ge m_i / k \ge b / k`: an arm that pays shares the choice with k - 1 at most.
       So :math:`\sum_i 1/\pi_i \le k^2/b`, and by Cauchy-Schwarz
       :math:`\sum_i |d_i| \le \sqrt{k^2/b}\,\sqrt{\sum_i \pi_i d_i^2}`.
    3. Pinsker: :math:`d_i^2 \le KL(\theta_i \| m_i)/2`; and :math:`\pi_i` is the probability of
       choosing i given the past and the context, so that summed over rounds the expectation of
       :math:`\sum_i \pi_i KL_i` is :math:`\sum_i B_i`. Cauchy-Schwarz over rounds, and Jensen.

    Known of B: with Beta(1/2, 1/2) beliefs for each of C contexts
    :math:`B_i \le \sum_c (\tfrac12 \log(n_{ic} + 1) + \log 2)`, n the rounds that chose i in c; of
    Bayesian logistic regression on d features with :math:`|x| \le 1`, weights w of prior
    :math:`N(0, s^2 I)`: :math:`B_i \le |w_i|^2/(2s^2) + \tfrac d2 \log(1 + n_i s^2/(4d))`. Either
    way regret grows as :math:`\sqrt T` up to a logarithm. k and b are crude: without contexts
    `sd_ts_regret_bound` is sharper.

    Examples
    --------
    Three arms in two contexts, at most 10^6 rounds in each of the six.

    >>> B = 2 * (0.5 * math.log(1e6 + 1) + math.log(2))
    >>> round(forecast_regret_bound([B, B, B], 6_000_000, least=0.1))
    110966
    """
    losses = np.asarray(excess_loss, dtype=np.float64)
    if losses.ndim != 1 or not losses.size:
        raise DataError(
            f"excess_loss={excess_loss!r:.60} must hold one number for each arm.",
            kind="wrong_shape", column="excess_loss",
        )  # fmt: skip
    rounds = _rounds(n_rounds)
    return min(rounds, losses.size * math.sqrt(rounds * float(losses.sum()) / (2 * least)))


@takes(theta=_NUMERIC)
def asymptotic_constant(theta: ArrayLike) -> float:
    r"""Return A(theta), to which SD_TS's fairness regret over :math:`\sqrt T` tends.

    .. math:: A = \sqrt{2/\pi} \sum_j \sqrt{\sum_i D_{ji}^2\, \theta_i (1-\theta_i) / P^*(i)},
              \qquad D_{ji} = P^*(j \mid r_i = 1) - P^*(j \mid r_i = 0)

    Parameters
    ----------
    theta : (k,) array
        True means, inside (0, 1).

    Notes
    -----
    Outlined, not proved; observed within 10 % of simulation for k >= 5, theta >= .25/k at
    T = 10^6, less near corners.

    Examples
    --------
    >>> [round(1000 * asymptotic_constant(np.linspace(0.1, 0.9, k))) for k in (2, 5, 10)]
    [798, 1889, 2603]
    """
    m = _means(theta)
    if not np.all((m > 0) & (m < 1)):
        raise DataError(
            f"theta={theta!r:.60} must lie inside (0, 1).", kind="outside_range", column="theta"
        )
    k = m.size
    best = bernoulli_best_arm(m)
    won, lost = np.tile(m, (k, 1)), np.tile(m, (k, 1))
    np.fill_diagonal(won, 1.0)
    np.fill_diagonal(lost, 0.0)
    change = bernoulli_best_arm(won) - bernoulli_best_arm(lost)  # [i, j]
    variance = (m * (1 - m) / best)[:, None] * change**2
    return float(math.sqrt(2 / math.pi) * np.sqrt(variance.sum(axis=0)).sum())


@takes(n_arms=within(1, 1e9, whole=True))
def unfair_rounds_bound(n_arms: int, n_rounds: int, excess: float) -> float:
    r"""Return a bound on the expected number of rounds in which plain SD_TS is objectively unfair.

    Rounds up to T in which some :math:`|\pi_i-\pi_j| > |\theta_i-\theta_j| + e`: at most
    :math:`\min(T,\; 20 k (1+\log T)/e^2)`.

    Parameters
    ----------
    n_arms, n_rounds : int
        k, and T >= 0.
    excess : float
        e in (0, 1/2].

    Notes
    -----
    Proved, with very loose constants; over all time the number is finite. Observed: about
    :math:`.6 k/e^2`, fewer than Fair_SD_TS spends exploring.

    Examples
    --------
    >>> round(unfair_rounds_bound(2, 100_000, 0.1))
    50052
    """
    excess = check_in_range(excess, "excess", 0, 0.5, low_open=True)
    rounds = _rounds(n_rounds)
    return min(rounds, 20 * n_arms * (1 + math.log(max(rounds, 1))) / excess**2)


@takes(n_arms=within(1, 1e9, whole=True), delta=within(0, 1, low_open=True))
def unfair_rounds_end(n_arms: int, excess: float, delta: float) -> int:
    r"""Return the round after which plain SD_TS is objectively fair, with probability 1 - delta.

    :math:`t_0 = 2kN(N+1)`, N the smallest integer with :math:`y = e/2 - 1/(2(N+1)) > 0` and
    :math:`2k\exp(-2Ny^2) \le \delta/2`.

    Parameters
    ----------
    n_arms : int
        k.
    excess : float
        e in (0, 1/2].
    delta : float
        In (0, 1].

    Notes
    -----
    Proved, with very loose constants.

    Examples
    --------
    >>> unfair_rounds_end(2, 0.5, 0.1)
    6240
    """
    excess = check_in_range(excess, "excess", 0, 0.5, low_open=True)
    n = round(union_with_prior_C(excess / 2, delta / 2, n_arms=n_arms)) + 1
    return 2 * n_arms * n * (n + 1)


def _rounds(n_rounds: float) -> float:
    return check_in_range(n_rounds, "n_rounds", 0, 1e18)


def _means(theta: ArrayLike) -> Floats:
    m = np.asarray(theta, dtype=np.float64)
    if m.ndim != 1 or not m.size or not np.all((m >= 0) & (m <= 1)):
        raise DataError(f"theta={theta!r} must be Bernoulli means in [0, 1], one per arm.")
    return m
