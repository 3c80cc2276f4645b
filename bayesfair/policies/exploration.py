r"""How long Fair_SD_TS explores: C, the number of known rewards that an arm has to exceed.

What each formula proves is said in `bayesfair.theory`, which shows them under the same names.
"""

from __future__ import annotations

import math

from bayesfair.base.arguments import takes, within
from bayesfair.base.checks import check_choice, check_in_range
from bayesfair.families import FAMILIES

__all__ = [
    "paper_C",
    "paper_duel_C",
    "paper_worst_case_C",
    "sqrt_C",
    "union_C",
    "union_with_prior_C",
]


def _checked(eps2: float, delta: float) -> tuple[float, float]:
    return (
        check_in_range(eps2, "eps2", 1e-100, 1e100),
        check_in_range(delta, "delta", 1e-300, 1),
    )


@takes()
def paper_C(eps2: float, delta: float, *, max_divergence: float) -> float:
    r"""Return the paper's constant, :math:`(2 D + 1)^2 \log(2/\delta) / (2 \epsilon_2^2)`.

    Parameters
    ----------
    eps2, delta : float
        As in the paper's theorem, whose conclusion is :math:`(2, 2\epsilon_2, \delta)`-fairness.
    max_divergence : float
        D, the largest total variation between true reward distributions: not known to a rule
        that has to learn them.

    Notes
    -----
    Only observed. The proof needs all k arms to be accurate at once, hence
    :math:`\log(2k/\delta)`; at k = 10 and 40 its event fails more often than delta. The conclusion
    was not violated in 240 simulated settings. See `union_C`.

    Examples
    --------
    >>> round(paper_C(0.1, 0.1, max_divergence=0.8))
    1013
    """
    eps2, delta = _checked(eps2, delta)
    top = check_in_range(max_divergence, "max_divergence", 0, 1)
    return (2 * top + 1) ** 2 * math.log(2 / delta) / (2 * eps2**2)


@takes()
def paper_worst_case_C(eps2: float, delta: float) -> float:
    r"""Return the paper's constant with D = 1, :math:`9 \log(2/\delta) / (2 \epsilon_2^2)`.

    Notes
    -----
    Needs no knowledge of the truth. Proved where it is at least `union_C`: for Bernoulli rewards up
    to :math:`(2/\delta)^8` arms (by the paper's own argument, constant 2, up to
    :math:`(2/\delta)^{5/4}`).

    Examples
    --------
    >>> round(paper_worst_case_C(0.1, 0.1))
    1348
    """
    return paper_C(eps2, delta, max_divergence=1.0)


@takes(n_arms=within(1, 1e9, whole=True), n_levels=within(1, 1e9, whole=True))
def union_C(
    eps2: float, delta: float, *, n_arms: int, family: str = "bernoulli", n_levels: int = 2
) -> float:
    r"""Return the corrected constant, with a union bound over arms.

    .. math:: C = \frac{\log(2k/\delta)}{2 x^2}, \qquad
              C = \frac{\log(k (2^L - 2)/\delta)}{2 x^2}

    for Bernoulli arms (:math:`x = \epsilon_2`) and for L reward levels
    (:math:`x = \epsilon_2 / 2`).

    Parameters
    ----------
    eps2, delta : float
        The conclusion is :math:`(1, 2\epsilon_2, \delta)`-fairness for Bernoulli arms, and
        :math:`(2, 2\epsilon_2, \delta)` for finitely many levels.
    n_arms : int
        k.
    family : str
        ``"bernoulli"`` or ``"finite"``; no constant is known for unbounded rewards.
    n_levels : int
        L, for ``"finite"``.

    Notes
    -----
    Proved for the empirical frequencies: they form a reverse martingale, so no union over rounds
    is needed. The posterior mean differs from them by at most 1/(2(n+1)) under
    Beta(1/2, 1/2); `union_with_prior_C` pays for that too.

    Raises
    ------
    OptionError
        For another family.

    Examples
    --------
    >>> round(union_C(0.1, 0.1, n_arms=10))
    265
    >>> round(union_C(0.1, 0.1, n_arms=10, family="finite", n_levels=2))  # theorem's constant 2
    1060
    """
    eps2, delta = _checked(eps2, delta)
    check_choice(family, "family", [f.name for f in FAMILIES.values() if f.n_values(n_levels)])
    of = FAMILIES[family]
    n = of.n_values(n_levels) or 0
    # every set of levels is a frequency of its own: 2^L - 2 of them matter
    sets = n * math.log(2) if n > 50 else math.log(max(2.0**n - 2, 1.0))
    return (math.log(n_arms / delta) + sets) / (2 * (eps2 / of.constant) ** 2)


@takes(n_arms=within(1, 1e9, whole=True))
def union_with_prior_C(eps2: float, delta: float, *, n_arms: int) -> float:
    r"""Return the corrected constant that also pays for the Beta(1/2, 1/2) prior.

    C = N - 1 with N the smallest integer for which :math:`y = \epsilon_2 - 1/(2(N+1)) > 0` and
    :math:`2 k \exp(-2 N y^2) \le \delta`.

    Parameters
    ----------
    eps2, delta : float
        The conclusion is :math:`(1, 2\epsilon_2, \delta)`-fairness.
    n_arms : int
        k Bernoulli arms.

    Notes
    -----
    Proved, for Bernoulli arms whose rewards are known before the next round.

    Examples
    --------
    >>> union_with_prior_C(0.1, 0.1, n_arms=10)
    274.0
    """
    eps2, delta = _checked(eps2, delta)

    def enough(n: int) -> bool:
        y = eps2 - 1 / (2 * (n + 1))
        return y > 0 and math.log(2 * n_arms / delta) <= 2 * n * y**2

    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high - 1)


@takes(n_rounds=within(0, 1e18), n_arms=within(1, 1e9, whole=True))
def sqrt_C(n_rounds: int, n_arms: int) -> float:
    r"""Return :math:`\sqrt{T/k}`: exploration that costs no more than SD_TS's own regret.

    Notes
    -----
    Keeps the :math:`\sqrt{kT}` order of SD_TS's fairness regret. What it guarantees in every
    round, with probability 1 - delta, is the eps2 that solves `union_C` = C.

    Examples
    --------
    >>> round(sqrt_C(1_000_000, 5))
    447
    """
    return math.sqrt(n_rounds / n_arms)


@takes(n_arms=within(1, 1e9, whole=True))
def paper_duel_C(eps2: float, delta: float, *, n_arms: int, max_divergence: float = 1.0) -> float:
    r"""Return the paper's constant for duels with its O() read as 1: :math:`k^2` `paper_C`.

    Notes
    -----
    Neither proved nor practical: with four arms and the paper's eps2, exploration fills any run
    shorter than about a million rounds. Give C as a number instead.

    Examples
    --------
    >>> round(paper_duel_C(0.5, 0.1, n_arms=4))
    863
    """
    return n_arms**2 * paper_C(eps2, delta, max_divergence=max_divergence)
