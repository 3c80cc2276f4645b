"""Estimates of a rule's reward per round from a log of another rule: arrays in, numbers out.

With the weight w_t = e_t(a_t) / pi_t(a_t) of the chosen arm (e the rule, pi the logged one):

* inverse propensity scoring: the mean of w_t r_t;
* self-normalised: the sum of w_t r_t over the sum of w_t;
* doubly robust: the mean of sum_i e_t(i) m_t(i) + w_t (r_t - m_t(a_t)), for a reward model m_t that
  knows nothing of round t or later.

Of a thinned log each round stands for 1 / keep_prob of them: every mean becomes a weighted one.

The first and the last are unbiased for the mean over rounds of the expected reward under e_t,
whatever m_t, as long as e_t and pi_t depend on earlier rounds alone: the terms less that reward are
martingale differences. The intervals are those of their mean, with Student's t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from bayesfair.typing import Floats

__all__ = ["Estimate", "doubly_robust", "effective_sample_size", "ips", "self_normalised"]


class Estimate(NamedTuple):
    """Reward per round with its 95 % interval; NaN where there is none."""

    value: float
    lower: float
    upper: float


NONE = Estimate(np.nan, np.nan, np.nan)


def ips(reward: Floats, weight: Floats, standing: Floats | None = None) -> Estimate:
    """Return the estimate by inverse propensity scoring; all arrays are ``(n,)``.

    `standing`: for how many rounds each stands, in a thinned log.

    Examples
    --------
    >>> reward, weight = np.array([1.0, 0, 1, 0]), 0.5 / np.array([0.5, 0.5, 0.25, 0.25])
    >>> ips(reward, weight).value
    0.75
    """
    return _mean(weight * reward, standing)


def self_normalised(reward: Floats, weight: Floats) -> Estimate:
    """Return the self-normalised estimate, its interval by the delta method.

    Examples
    --------
    >>> reward, weight = np.array([1.0, 0, 1, 0]), 0.5 / np.array([0.5, 0.5, 0.25, 0.25])
    >>> self_normalised(reward, weight).value
    0.5
    """
    total = weight.sum()
    if not total > 0:
        return NONE
    value = float((weight * reward).sum() / total)
    return _estimate(value, weight * (reward - value) / (total / weight.size))


def doubly_robust(
    reward: Floats, weight: Floats, predicted_chosen: Floats, predicted: Floats,
    standing: Floats | None = None,
) -> Estimate:  # fmt: skip
    """Return the doubly robust estimate.

    Parameters
    ----------
    reward, weight : (n,) arrays
        Of the chosen arm.
    predicted_chosen : (n,) array
        Reward that the model expected of the chosen arm.
    predicted : (n,) array
        Reward that it expected of the rule: the mean over the rule's choice.
    standing : (n,) array, optional
        For how many rounds each stands, in a thinned log.

    Examples
    --------
    >>> reward, weight = np.array([1.0, 0, 1, 0]), np.array([1.0, 1, 2, 2])
    >>> doubly_robust(reward, weight, np.zeros(4), np.zeros(4)) == ips(reward, weight)
    True
    """
    return _mean(predicted + weight * (reward - predicted_chosen), standing)


def effective_sample_size(weight: Floats) -> float:
    """Return how many rounds of equal weight say as much: (sum w)^2 / sum w^2; 0 if all are 0.

    Examples
    --------
    >>> effective_sample_size(np.array([1.0, 1, 2, 2])), effective_sample_size(np.zeros(2))
    (3.6, 0.0)
    """
    squares = float((weight**2).sum())
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def _mean(terms: Floats, standing: Floats | None) -> Estimate:
    if standing is not None:
        return self_normalised(terms, standing)
    return _estimate(float(terms.mean()), terms) if terms.size else NONE


def _estimate(value: float, terms: Floats) -> Estimate:
    """Return a value with the interval of the mean of these terms; none where they do not vary."""
    n = terms.size
    spread = float(terms.std(ddof=1)) if n > 1 else 0.0
    if not spread > 1e-12 * max(1.0, float(np.abs(terms).max())):
        return Estimate(value, np.nan, np.nan)
    half = float(stdtrit(n - 1, 0.975)) * spread / n**0.5
    return Estimate(value, value - half, value + half)
