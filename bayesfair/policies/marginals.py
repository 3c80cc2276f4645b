"""From sufficient statistics to reward distributions: the subjective marginals and best means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.laws.best_arm import bernoulli_best_arm
from bayesfair.kernels.laws.best_mean import beta_best_mean, gamma_best_mean
from bayesfair.kernels.laws.dirichlet_mean import dirichlet_best_mean
from bayesfair.kernels.laws.quadrature import require_sum_of_one
from bayesfair.policies.base import State
from bayesfair.rewards import Bernoulli, Finite, NegativeBinomial, Rewards, StudentT

__all__ = [
    "best_arm_probability",
    "best_mean_probability",
    "posterior_mean",
    "subjective_marginals",
]


def _normal_posterior(
    state: State,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean, kappa, shape and scale of the normal-inverse-gamma posteriors."""
    mean0, kappa0, shape0, scale0 = state.prior.T
    n = state.pulls
    if state.learned is not None and state.learned.is_open:
        n = np.zeros_like(n)  # no scale yet: every arm has the same law
    average = np.where(n > 0, state.total / np.maximum(n, 1), mean0)
    kappa = kappa0 + n
    mean = (kappa0 * mean0 + n * average) / kappa
    scale = scale0 + state.spread / 2 + kappa0 * n * (average - mean0) ** 2 / (2 * kappa)
    return mean, kappa, shape0 + n / 2, scale


def subjective_marginals(state: State) -> Rewards:
    r"""Return :math:`r_i(h^t)`: the posterior predictive of every arm before the round.

    Examples
    --------
    >>> from bayesfair.policies import SDTS
    >>> rule = SDTS()
    >>> subjective_marginals(rule.update(rule.start(2), 0, 1.0)).mean
    array([0.75, 0.5 ])
    """
    if state.family == "bernoulli":
        s, f = state.beta
        return Bernoulli(s / (s + f), f / (s + f))
    if state.family == "finite":
        assert state.levels is not None and state.support is not None
        weight = state.prior + state.levels
        return Finite(state.support, weight / weight.sum(axis=1, keepdims=True))
    if state.family == "poisson":
        shape, rate = state.prior[:, 0] + state.total, state.prior[:, 1] + state.pulls
        return NegativeBinomial(shape, rate / (rate + 1))

    mean, kappa, shape, scale = _normal_posterior(state)
    return StudentT(2 * shape, mean, np.sqrt(scale * (kappa + 1) / (shape * kappa)))


def best_arm_probability(state: State) -> NDArray[np.float64]:
    """Return P* under independent beliefs: the highest realised reward, ties split evenly."""
    if state.family == "bernoulli":
        s, f = state.beta
        return bernoulli_best_arm(s / (s + f), f / (s + f))
    return subjective_marginals(state).best_arm_probability()


def best_mean_probability(state: State) -> NDArray[np.float64]:
    """Return P(theta_i is the largest mean): Thompson sampling's rule, by quadrature.

    Raises
    ------
    ConvergenceError
        If the probabilities of the quadrature miss 1 by more than 1e-9.
    """
    if state.family == "bernoulli":
        pi = beta_best_mean(*state.beta)
    elif state.family == "normal":
        mean, kappa, shape, scale = _normal_posterior(state)
        pi = StudentT(2 * shape, mean, np.sqrt(scale / (shape * kappa))).best_arm_probability()
    elif state.family == "poisson":
        pi = gamma_best_mean(state.prior[:, 0] + state.total, state.prior[:, 1] + state.pulls)
    else:
        assert state.levels is not None and state.support is not None
        pi = dirichlet_best_mean(state.prior + state.levels, state.support)
    require_sum_of_one(pi, f"which mean is the largest ({state.family} rewards)")
    pi = np.maximum(pi, 0.0)
    return np.asarray(pi / pi.sum())


def posterior_mean(state: State) -> NDArray[np.float64]:
    """Return the posterior mean reward of every arm, ``(k,)``, in reward units."""
    if state.family == "bernoulli":
        s, f = state.beta
        return np.asarray(s / (s + f))
    if state.family == "finite":
        assert state.levels is not None and state.support is not None
        weight = state.prior + state.levels
        return np.asarray(weight @ state.support / weight.sum(axis=1))
    if state.family == "poisson":
        return np.asarray((state.prior[:, 0] + state.total) / (state.prior[:, 1] + state.pulls))
    return _normal_posterior(state)[0]
