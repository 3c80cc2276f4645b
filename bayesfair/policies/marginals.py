"""What a rule believes before a round: the subjective marginals, best arms and best means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.families import FAMILIES
from bayesfair.kernels.laws.quadrature import require_sum_of_one
from bayesfair.policies.base import State
from bayesfair.rewards import Rewards

__all__ = [
    "best_arm_probability",
    "best_mean_probability",
    "posterior_mean",
    "subjective_marginals",
]


def subjective_marginals(state: State) -> Rewards:
    r"""Return :math:`r_i(h^t)`: the posterior predictive of every arm before the round.

    Examples
    --------
    >>> from bayesfair.policies import SDTS
    >>> rule = SDTS()
    >>> subjective_marginals(rule.update(rule.start(2), 0, 1.0)).mean
    array([0.75, 0.5 ])
    """
    return FAMILIES[state.family].predictive(state.table, state.support, ())


def best_arm_probability(state: State) -> NDArray[np.float64]:
    """Return P* under independent beliefs: the highest realised reward, ties split evenly."""
    return subjective_marginals(state).best_arm_probability()


def best_mean_probability(state: State) -> NDArray[np.float64]:
    """Return P(theta_i is the largest mean): Thompson sampling's rule, by quadrature.

    Raises
    ------
    ConvergenceError
        If the probabilities of the quadrature miss 1 by more than 1e-9.
    """
    pi = FAMILIES[state.family].best_mean(state.table, state.support)
    require_sum_of_one(pi, f"which mean is the largest ({state.family} rewards)")
    pi = np.maximum(pi, 0.0)
    return np.asarray(pi / pi.sum())


def posterior_mean(state: State) -> NDArray[np.float64]:
    """Return the posterior mean reward of every arm, ``(k,)``, in reward units."""
    return FAMILIES[state.family].mean(state.table, state.support)
