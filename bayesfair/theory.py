r"""What is known about the rules: guarantees and bounds as functions.

Every docstring says what is *proved*, what was *corrected* (the published statement or proof does
not hold as printed) and what is *only observed*. Unless another setting is named: k >= 2
independent Bernoulli arms with fixed means, Beta(1/2, 1/2) beliefs updated after every round, exact
selection probabilities from the rounds before. Nothing is shown for batches, delays, drift, estimated
propensities or other priors. TV is total variation, logarithms are natural.

Liu et al. (2017), Calibrated Fairness in Bandits, arXiv:1707.01875, is called the paper.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.checks import check_choice, check_in_range
from bayesfair.errors import DataError, OptionError
from bayesfair.kernels.best_arm import bernoulli_best_arm
from bayesfair.policies.exploration import (
    paper_C,
    paper_duel_C,
    paper_worst_case_C,
    sqrt_C,
    union_C,
    union_with_prior_C,
)
from bayesfair.policies.guarantees import Guarantee, guarantee

__all__ = [
    "Guarantee",
    "asymptotic_constant",
    "bretagnolle_huber",
    "expected_fairness_loss",
    "exponential_race_tv",
    "fair_sd_ts_regret_bounds",
    "fairness_loss",
    "fairness_loss_excess",
    "guarantee",
    "paper_C",
    "paper_duel_C",
    "paper_eps2",
    "paper_regret_order",
    "paper_worst_case_C",
    "pinsker",
    "plackett_luce_eps1",
    "regret_from_excess",
    "regret_lower_bound",
    "sd_ts_average_regret_bound",
    "sd_ts_regret_bound",
    "smooth_fairness_bound",
    "sqrt_C",
    "sum_of_tie_weights",
    "tie_weights",
    "top1_error_bound",
    "tv_bound_from_kl",
    "unfair_rounds_bound",
    "unfair_rounds_end",
    "union_C",
    "union_with_prior_C",
]

FloatArray = NDArray[np.float64]


# -- smooth fairness -----------------------------------------------------------------------------


def smooth_fairness_bound(d: ArrayLike) -> FloatArray:
    r"""Return :math:`2d - d^2`: how far SD_TS's selection probabilities can differ at TV d.

    Parameters
    ----------
    d : array_like
        Total variation between the subjective marginals of two arms, in [0, 1].

    Returns
    -------
    array
        Bound on :math:`|\pi_t(i) - \pi_t(j)|`.

    Notes
    -----
    Proved, and sharp for every d: the paper's constant 2 is the supremum of the ratio 2 - d,
    reached in the limit by three reward levels P = (0, 1-d, d), Q = (d, 1-d, 0). For Bernoulli
    rewards the bound is d itself. Needs arms that are independent under the belief, and the history *before*
    the round; with dependent arms it fails (theta = (1,0,0) or (0,1,1), equal odds: all marginals
    1/2, but P* = (1/2, 1/4, 1/4)).

    Examples
    --------
    >>> smooth_fairness_bound([0.0, 0.1, 1.0])
    array([0.  , 0.19, 1.  ])
    """
    d = np.asarray(d, dtype=np.float64)
    return np.asarray(2 * d - d * d)


def plackett_luce_eps1() -> float:
    r"""Return e/2: the constant of smooth fairness for Plackett-Luce arms.

    Notes
    -----
    Proved: with exponential races behind the worths,
    :math:`|P_i - P_j| \le |2p_{ij} - 1| \le (e/2)\,TV`, the supremum being approached by equal
    worths (see `exponential_race_tv`).

    Examples
    --------
    >>> round(plackett_luce_eps1(), 4)
    1.3591
    """
    return math.e / 2


def pinsker(kl: ArrayLike) -> FloatArray:
    r"""Return Pinsker's bound :math:`TV \le \sqrt{KL/2}`.

    Proved; says nothing once KL exceeds 2.

    Examples
    --------
    >>> pinsker(0.02)
    array(0.1)
    """
    return np.asarray(np.sqrt(np.asarray(kl, dtype=np.float64) / 2))


def bretagnolle_huber(kl: ArrayLike) -> FloatArray:
    r"""Return the bound of Bretagnolle and Huber, :math:`TV \le \sqrt{1 - e^{-KL}}`.

    Proved; below 1 for every finite KL.

    Examples
    --------
    >>> bretagnolle_huber(np.log(4)).round(4)
    np.float64(0.866)
    """
    return np.asarray(np.sqrt(-np.expm1(-np.asarray(kl, dtype=np.float64))))


def tv_bound_from_kl(kl: ArrayLike) -> FloatArray:
    r"""Return the smaller of `pinsker` and `bretagnolle_huber`, at most 1.

    With the paper's theorem: :math:`|\pi_i - \pi_j| \le 2d - d^2` at d = this bound, so TV on
    decisions and KL on rewards. Proved.

    Examples
    --------
    >>> tv_bound_from_kl([0.02, 5.0]).round(4)
    array([0.1   , 0.9966])
    """
    return np.minimum(pinsker(kl), bretagnolle_huber(kl))


# -- fairness regret -----------------------------------------------------------------------------


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


def tie_weights(theta: ArrayLike) -> FloatArray:
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


def sum_of_tie_weights(theta: ArrayLike) -> float:
    r"""Return :math:`H(\theta) = \sum_i h_i`, in [1, k].

    Proved: at most 1.3 / (mean of theta).

    Examples
    --------
    >>> sum_of_tie_weights([0.5, 0.5])
    1.5
    """
    return float(tie_weights(theta).sum())


def sd_ts_regret_bound(n_arms: int, n_rounds: int, theta: ArrayLike | None = None) -> float:
    r"""Return an upper bound on the expected fairness regret of SD_TS.

    .. math:: R_T \le 2.06 \sqrt{H(\theta)\, k\, T\, (1 + \log T)}

    Parameters
    ----------
    n_arms, n_rounds : int
        k, and T >= 1.
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
    top = float(n_arms) if theta is None else sum_of_tie_weights(theta)
    return 2.06 * math.sqrt(top * n_arms * n_rounds * (1 + math.log(n_rounds)))


def sd_ts_average_regret_bound(n_arms: int, n_rounds: int) -> float:
    r"""Return a bound on SD_TS's fairness regret averaged over theta ~ Beta(1/2, 1/2)^k.

    .. math:: \sqrt{(1 - 2^{1-k})\, k\, T \log(1 + T/k)}

    Proved.

    Examples
    --------
    >>> round(sd_ts_average_regret_bound(5, 1_000_000))
    7564
    """
    share = 1 - 2.0 ** (1 - n_arms)
    return math.sqrt(share * n_arms * n_rounds * math.log1p(n_rounds / n_arms))


def regret_lower_bound(n_arms: int, n_rounds: int, *, sparse: bool = False) -> float:
    r"""Return what the fairness regret of *every* rule reaches at some theta.

    Parameters
    ----------
    n_arms, n_rounds : int
        Even k >= 2; T >= k.
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
    k = m.size
    best = bernoulli_best_arm(m)
    won, lost = np.tile(m, (k, 1)), np.tile(m, (k, 1))
    np.fill_diagonal(won, 1.0)
    np.fill_diagonal(lost, 0.0)
    change = bernoulli_best_arm(won) - bernoulli_best_arm(lost)  # [i, j]
    variance = (m * (1 - m) / best)[:, None] * change**2
    return float(math.sqrt(2 / math.pi) * np.sqrt(variance.sum(axis=0)).sum())


def unfair_rounds_bound(n_arms: int, n_rounds: int, excess: float) -> float:
    r"""Return a bound on the expected number of rounds in which plain SD_TS is objectively unfair.

    Rounds up to T in which some :math:`|\pi_i-\pi_j| > |\theta_i-\theta_j| + e`: at most
    :math:`20 k (1+\log T)/e^2`.

    Parameters
    ----------
    n_arms, n_rounds : int
        k and T.
    excess : float
        e in (0, 1/2].

    Notes
    -----
    Proved, with very loose constants; over all time the number is finite. Observed: about
    :math:`.6 k/e^2`, fewer than Fair_SD_TS spends exploring.

    Examples
    --------
    >>> round(unfair_rounds_bound(2, 10_000, 0.1))
    40841
    """
    excess = check_in_range(excess, "excess", 0, 0.5, low_open=True)
    return 20 * n_arms * (1 + math.log(n_rounds)) / excess**2


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


# -- duels ---------------------------------------------------------------------------------------


def top1_error_bound(n_items: int, eps: float) -> float:
    r"""Return :math:`(k-1)\epsilon`: the error of the paper's estimate of P(item is first).

    Parameters
    ----------
    n_items : int
        k.
    eps : float
        Largest error of a pairwise probability.

    Notes
    -----
    Proved, for errors of any size (the paper states O(k eps) for small ones), and sharp; for the
    estimate before it is normalised. Half the sum of errors over all items stayed below it too:
    proved to first order, else only observed.

    Examples
    --------
    >>> top1_error_bound(4, 0.25)
    0.75
    """
    return (n_items - 1) * eps


def exponential_race_tv(ratio: ArrayLike) -> FloatArray:
    r"""Return the total variation between two Plackett-Luce arms.

    .. math:: TV = b^{-1/(b-1)} - b^{-b/(b-1)}

    Parameters
    ----------
    ratio : array_like
        b > 0, ratio of the worths; b and 1/b give the same.

    Notes
    -----
    Duels do not identify reward distributions. Those usual behind Plackett-Luce are exponential
    races (equally, Gumbel utilities: TV ignores a common monotone transform). Exact for them.

    Examples
    --------
    >>> exponential_race_tv([1.0, 2.0, 0.5])
    array([0.  , 0.25, 0.25])
    """
    b = np.asarray(ratio, dtype=np.float64)
    if np.any(~(b > 0)):
        raise DataError(f"ratio={ratio!r} must be positive.")
    log_b = np.abs(np.log(b))
    safe = np.where(log_b > 0, log_b, 1.0)
    # log b / (b - 1), which tends to 1 at b = 1; TV = exp(-that) (1 - 1/b)
    power = safe / np.expm1(np.minimum(safe, 700.0))
    return np.asarray(np.where(log_b > 0, np.exp(-power) * -np.expm1(-safe), 0.0))


# -- proper scoring ------------------------------------------------------------------------------


def fairness_loss(selection_probability: ArrayLike, best_arm: Any, rule: str = "log") -> FloatArray:
    r"""Return the loss of a decision rule when the arm with the highest reward is seen.

    Parameters
    ----------
    selection_probability : (..., k) array
        :math:`\pi`, sums to 1.
    best_arm : (...,) array of int
        Position of the arm with the highest realised reward (ties drawn evenly).
    rule : str
        ``"log"``: :math:`-\log\pi(i)`; ``"brier"``: :math:`\sum_j (1\{j=i\} - \pi(j))^2`.

    Notes
    -----
    Both are strictly proper: the calibrated rule *minimises* the expected loss (the paper's
    introduction says maximises; proved). The best arm must be observed, which needs all arms'
    rewards: a bandit's log does not have it. Over a restricted class of rules only a projection
    results.

    Examples
    --------
    >>> fairness_loss([0.5, 0.5], 0, "brier")
    array(0.5)
    """
    pi = np.asarray(selection_probability, dtype=np.float64)
    best = np.asarray(best_arm)
    chosen = np.take_along_axis(pi, best[..., None], axis=-1)[..., 0]
    _check_rule(rule)
    if rule == "log":
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(chosen))
    return np.asarray((pi**2).sum(axis=-1) - 2 * chosen + 1)


def expected_fairness_loss(
    selection_probability: ArrayLike, p_best: ArrayLike, rule: str = "log"
) -> FloatArray:
    r"""Return the expected `fairness_loss`, :math:`\sum_i P^*(i) L(\pi, i)`.

    Parameters
    ----------
    selection_probability, p_best : (..., k) arrays
        :math:`\pi` and P*.
    rule : str
        ``"log"`` or ``"brier"``.

    Examples
    --------
    >>> expected_fairness_loss([0.5, 0.5], [0.6, 0.4]).round(4)
    np.float64(0.6931)
    """
    pi, p = _pair(selection_probability, p_best)
    _check_rule(rule)
    if rule == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.where(p > 0, p * np.log(pi), 0.0).sum(axis=-1))
    return np.asarray((pi**2).sum(axis=-1) - 2 * (p * pi).sum(axis=-1) + 1)


def fairness_loss_excess(
    selection_probability: ArrayLike, p_best: ArrayLike, rule: str = "log"
) -> FloatArray:
    r"""Return how much the expected loss exceeds that of the calibrated rule.

    ``"log"``: :math:`KL(P^*\|\pi)`, infinite where :math:`\pi(i) = 0 < P^*(i)`; ``"brier"``:
    :math:`\|P^*-\pi\|^2`. Proved.

    Parameters
    ----------
    selection_probability, p_best : (..., k) arrays
        :math:`\pi` and P*.
    rule : str
        ``"log"`` or ``"brier"``.

    Examples
    --------
    >>> fairness_loss_excess([0.5, 0.5], [0.6, 0.4], "brier").round(9)
    np.float64(0.02)
    """
    pi, p = _pair(selection_probability, p_best)
    _check_rule(rule)
    if rule == "brier":
        return np.asarray(((p - pi) ** 2).sum(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(p > 0, p * np.log(p / pi), 0.0).sum(axis=-1))


def regret_from_excess(excess: ArrayLike, rule: str = "log", *, n_arms: int = 2) -> FloatArray:
    r"""Return the bound on fairness regret per round that an excess loss implies.

    ``"log"``: the smaller of Pinsker and Bretagnolle-Huber; ``"brier"``:
    :math:`\sqrt{k\,\mathrm{excess}}/2`. Proved.

    Parameters
    ----------
    excess : array_like
        From `fairness_loss_excess`.
    rule : str
        ``"log"`` or ``"brier"``.
    n_arms : int
        k, for ``"brier"``.

    Examples
    --------
    >>> regret_from_excess(0.02, "brier", n_arms=2)
    array(0.1)
    """
    _check_rule(rule)
    if rule == "log":
        return tv_bound_from_kl(excess)
    return np.asarray(np.sqrt(n_arms * np.asarray(excess, dtype=np.float64)) / 2)


# -- checks --------------------------------------------------------------------------------------


def _means(theta: ArrayLike) -> FloatArray:
    m = np.asarray(theta, dtype=np.float64)
    if m.ndim != 1 or not m.size or not np.all((m >= 0) & (m <= 1)):
        raise DataError(f"theta={theta!r} must be Bernoulli means in [0, 1], one per arm.")
    return m


def _pair(pi: ArrayLike, p: ArrayLike) -> tuple[FloatArray, FloatArray]:
    return np.asarray(pi, dtype=np.float64), np.asarray(p, dtype=np.float64)


def _check_rule(rule: str) -> None:
    check_choice(rule, "rule", ("log", "brier"))
