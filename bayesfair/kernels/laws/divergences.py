r"""How different two reward laws, or two decisions, are: six divergences as kernels over rows.

Conventions: natural logarithms; :math:`\chi^2(P\|Q)=\sum (p-q)^2/q`; ``"hellinger"`` is the
unsquared distance :math:`\sqrt{1-\sum\sqrt{pq}}`; Jensen-Shannon is at most ln 2. Every sum is
written with non-negative terms, so that nothing cancels where two laws nearly agree.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled

__all__ = [
    "DIVERGENCES",
    "SYMMETRIC",
    "bernoulli_divergence",
    "decision_divergence_maxima",
    "divergence_code",
    "finite_divergence",
    "worst_pair_general",
]

DIVERGENCES = ("total_variation", "kl", "hellinger", "chi2", "jensen_shannon", "wasserstein")
SYMMETRIC = frozenset(DIVERGENCES) - {"kl", "chi2"}
TV, KL, HELLINGER, CHI2, JS, WASSERSTEIN = range(6)

# Two excesses closer than this are a tie (of the exact values), decided by arm order.
_TIE = 1e-12


def divergence_code(name: str) -> int:
    """Return the number by which kernels know a divergence."""
    return DIVERGENCES.index(name)


@compiled()
def kl_term(p, q):  # type: ignore[no-untyped-def]
    """Return p log(p/q) - p + q >= 0; over two laws these terms sum to KL."""
    if p == 0.0:
        return q
    if q == 0.0:
        return np.inf
    u = (p - q) / q
    if abs(u) < 0.1:
        # (1+u) log(1+u) - u as a series: the difference cancels here
        total = 0.0
        power = u * u
        for n in range(2, 18):
            total += power / (n * (n - 1))
            power *= -u
        return q * total
    return p * (np.log(p) - np.log(q)) - p + q


@compiled()
def js_term(p, q):  # type: ignore[no-untyped-def]
    """Return the contribution of two masses (or densities) to the Jensen-Shannon divergence."""
    s = p + q
    if s == 0.0:
        return 0.0
    d = (p - q) / s
    e = d * d
    if e < 0.01:
        total = 0.0
        power = e
        for n in range(1, 10):
            total += power / (n * (2 * n - 1))
            power *= e
        return 0.25 * s * total
    total = 0.0
    if p > 0.0:
        total += p * np.log(2.0 * p / s)
    if q > 0.0:
        total += q * np.log(2.0 * q / s)
    return 0.5 * total


@compiled()
def mass_term(p, q, code):  # type: ignore[no-untyped-def]
    """Return the summand of a divergence that is a sum over values (all but Wasserstein)."""
    if code == TV:
        return 0.5 * abs(p - q)
    if code == KL:
        return kl_term(p, q)
    if code == HELLINGER:
        root = np.sqrt(p) - np.sqrt(q)
        return 0.5 * root * root
    if code == CHI2:
        if q == 0.0:
            return 0.0 if p == 0.0 else np.inf
        return (p - q) * ((p - q) / q)
    return js_term(p, q)


@compiled()
def log_mass_term(l1, l2, code):  # type: ignore[no-untyped-def]  # noqa: PLR0911
    """Return `mass_term` at log masses (or log densities), where either may underflow."""
    p, q = math.exp(l1), math.exp(l2)
    if code == TV:
        return 0.5 * abs(p - q)
    if l1 == l2:
        return 0.0  # also where both are -inf
    gap = l1 - l2
    if code == KL:
        if abs(gap) < 0.05:
            return kl_term(p, q)
        return p * gap - p + q if p > 0.0 else q
    if code == HELLINGER:
        root = math.exp(0.5 * l1) - math.exp(0.5 * l2)
        return 0.5 * root * root
    if code == CHI2:
        if gap > 30.0:
            return math.exp(l1 + gap) if l1 + gap < 709.0 else np.inf
        ratio = math.expm1(gap)
        return q * ratio * ratio
    return js_term(p, q)


@compiled()
def bernoulli_pair(p, q, code):  # type: ignore[no-untyped-def]
    """Return D(Bernoulli(p) || Bernoulli(q))."""
    if code in (TV, WASSERSTEIN):
        return abs(p - q)
    if p == q:
        return 0.0
    total = mass_term(p, q, code) + mass_term(1.0 - p, 1.0 - q, code)
    return np.sqrt(total) if code == HELLINGER else total


@compiled()
def _bernoulli_rows(p, code, out):  # type: ignore[no-untyped-def]
    n_rows, k = p.shape
    for t in range(n_rows):
        for i in range(k):
            for j in range(k):
                out[t, i, j] = 0.0 if i == j else bernoulli_pair(p[t, i], p[t, j], code)


@compiled()
def _finite_rows(pmf, gaps, code, out):  # type: ignore[no-untyped-def]
    n_rows, k, n_levels = pmf.shape
    for t in range(n_rows):
        for i in range(k):
            out[t, i, i] = 0.0
            for j in range(k):
                # only KL and chi2 depend on the order of the pair
                if i == j or (j < i and code not in (KL, CHI2)):
                    continue
                total = 0.0
                if code == WASSERSTEIN:
                    ahead = 0.0
                    for v in range(n_levels - 1):
                        ahead += pmf[t, i, v] - pmf[t, j, v]
                        total += abs(ahead) * gaps[v]
                else:
                    for v in range(n_levels):
                        total += mass_term(pmf[t, i, v], pmf[t, j, v], code)
                    if code == HELLINGER:
                        total = np.sqrt(min(total, 1.0))
                out[t, i, j] = total
                if code not in (KL, CHI2):
                    out[t, j, i] = total


def bernoulli_divergence(p: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return D(Bernoulli(p_i) || Bernoulli(p_j)) for all ordered pairs of each row.

    Parameters
    ----------
    p : (..., k) array
        Success (or selection) probabilities, in [0, 1].
    name : str
        One of `DIVERGENCES`.

    Returns
    -------
    (..., k, k) array
        Infinite for KL and chi2 where the second law excludes what the first allows.
    """
    k = p.shape[-1]
    out = np.empty((*p.shape, k))
    rows = np.ascontiguousarray(p, dtype=np.float64).reshape(-1, k)
    _bernoulli_rows(rows, divergence_code(name), out.reshape(-1, k, k))
    return out


def finite_divergence(
    pmf: NDArray[np.float64], support: NDArray[np.float64], name: str
) -> NDArray[np.float64]:
    """Return the divergence of all ordered pairs of arms with a common finite support.

    Parameters
    ----------
    pmf : (..., k, L) array
        Probabilities of the L values.
    support : (L,) array
        The values, increasing; only Wasserstein uses them, in reward units.
    name : str
        One of `DIVERGENCES`.

    Returns
    -------
    (..., k, k) array
        Infinite for KL and chi2 where the second law excludes what the first allows.
    """
    *batch, k, n_levels = pmf.shape
    out = np.empty((*batch, k, k))
    rows = np.ascontiguousarray(pmf, dtype=np.float64).reshape(-1, k, n_levels)
    _finite_rows(rows, np.diff(support), divergence_code(name), out.reshape(-1, k, k))
    return out


@compiled()
def _maxima(pi, code, out):  # type: ignore[no-untyped-def]
    n_rounds, k = pi.shape
    ordered = code in (KL, CHI2)
    for t in range(n_rounds):
        for i in range(k):
            for j in range(k):
                if i == j or (j < i and not ordered):
                    continue
                if np.isnan(pi[t, i]) or np.isnan(pi[t, j]):
                    continue
                out[i, j] = max(out[i, j], bernoulli_pair(pi[t, i], pi[t, j], code))
    for i in range(k):
        out[i, i] = 0.0
        for j in range(i):
            if not ordered:
                out[i, j] = out[j, i]


def decision_divergence_maxima(pi: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    r"""Return :math:`G_{ij} = \max_t D(\pi_t(i)\|\pi_t(j))`, decisions as Bernoulli laws.

    Parameters
    ----------
    pi : (T, k) array
        Selection probabilities; NaN = not on offer.
    name : str
        One of `DIVERGENCES`.

    Returns
    -------
    (k, k) array
        Zero diagonal; symmetric except for kl and chi2; -inf where two arms were never on offer
        together. Merges by the maximum.
    """
    k = pi.shape[1]
    out = np.full((k, k), -np.inf)
    _maxima(np.ascontiguousarray(pi, dtype=np.float64), divergence_code(name), out)
    return out


@compiled()
def _worst_rows(pi, rewards, step, eps1, code, excess, first, second):  # type: ignore[no-untyped-def]
    n_rows, k = pi.shape
    ordered = code in (KL, CHI2)
    for t in range(n_rows):
        distance = rewards[t * step]
        top = -np.inf  # the largest excess
        held = -np.inf  # the excess of the pair that is named
        a = -1
        b = -1
        for i in range(k):
            if np.isnan(pi[t, i]):
                continue
            for j in range(k):
                if i == j or np.isnan(pi[t, j]) or np.isnan(distance[i, j]):
                    continue
                if j < i and not ordered and distance[j, i] == distance[i, j]:
                    continue  # the same number as for (j, i)
                if eps1 == 0.0:
                    allowed = 0.0  # 0 * inf = 0: the rewards do not count
                else:
                    allowed = eps1 * distance[i, j]
                if allowed == np.inf:
                    value = -np.inf  # unconstrained, whatever the decisions
                else:
                    value = bernoulli_pair(pi[t, i], pi[t, j], code) - allowed
                top = max(top, value)
                if a < 0 or value > held + _TIE:
                    held = value
                    a = i
                    b = j
        excess[t] = top
        first[t] = a
        second[t] = b


def worst_pair_general(
    pi_rows: NDArray[np.float64],
    reward_divergence: NDArray[np.float64],
    eps1: float,
    decision_divergence: str = "total_variation",
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    r"""Return the largest signed excess :math:`D(\pi_i\|\pi_j) - \epsilon_1 D(r_i\|r_j)` per round.

    Parameters
    ----------
    pi_rows : (T, k) array
        Selection probabilities; NaN = arm not on offer, its pairs are left out.
    reward_divergence : (T, k, k) or (k, k) array
        Divergence of the reward laws, first arm against second; may hold inf; NaN leaves the
        pair out.
    eps1 : float
        At least 0.
    decision_divergence : str
        Divergence of the decisions as Bernoulli laws, one of `DIVERGENCES`.

    Returns
    -------
    excess : (T,) array
        Largest excess, signed. ``-inf`` where no pair is constrained (or there is no pair).
    first, second : (T,) arrays of int
        The first pair attaining it (within 1e-12) in arm order; -1 where there is no pair.

    Notes
    -----
    ``eps1 = 0`` drops the reward term (0 inf = 0). An infinite reward divergence removes the pair,
    also where the decisions differ infinitely; an infinite decision divergence alone gives inf.
    """
    pi = np.ascontiguousarray(pi_rows, dtype=np.float64)
    rewards = np.ascontiguousarray(reward_divergence, dtype=np.float64)
    n_rounds, k = pi.shape
    step = 1
    if rewards.ndim == 2:
        rewards, step = rewards[None], 0
    if rewards.shape[1:] != (k, k) or (step and rewards.shape[0] != n_rounds):
        raise ValueError(
            f"reward_divergence has shape {reward_divergence.shape}, expected "
            f"{(n_rounds, k, k)} or {(k, k)}."
        )
    excess = np.empty(n_rounds)
    first = np.empty(n_rounds, dtype=np.int64)
    second = np.empty(n_rounds, dtype=np.int64)
    code = divergence_code(decision_divergence)
    _worst_rows(pi, rewards, step, float(eps1), code, excess, first, second)
    return excess, first, second
