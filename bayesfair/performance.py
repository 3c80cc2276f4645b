"""Utility beside fairness: reward and standard regret of a run, and what fairness costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import NAMES, NUMBERS, takes
from bayesfair.base.checks import check_choice, listed
from bayesfair.base.html import Shown
from bayesfair.base.labels import by_label
from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.rewards import Rewards
from bayesfair.rewards.bernoulli import as_rewards
from bayesfair.typing import Floats

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Utility", "fairness_regret_per_round", "tradeoff", "utility"]


@dataclass(frozen=True)
class Utility(Shown):
    r"""What a run paid and how far it was from the best and from the calibrated rule.

    Parameters
    ----------
    n_rounds : int
        T.
    reward_per_round : float
        Mean over rounds of the expected reward, in reward units: under the logged rule where all
        probabilities are known, else of the chosen arms.
    observed_reward_per_round : float
        Mean of the observed rewards; NaN if there are none.
    standard_regret, standard_regret_per_round : float
        Best expected reward on offer minus the expected reward, in reward units.
    fairness_regret, fairness_regret_per_round : float or None
        :math:`\sum_i \max(P^*(i) - \pi_t(i), 0)` against the true P*; None unless all
        selection probabilities are known.
    """

    n_rounds: int
    reward_per_round: float
    observed_reward_per_round: float
    standard_regret: float
    standard_regret_per_round: float
    fairness_regret: float | None
    fairness_regret_per_round: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return dataclasses.asdict(self)


type Truth = Rewards | ArrayLike | Mapping[str, float]
"""The true rewards: a family, means of Bernoulli rewards, or means by label."""


@overload
def utility(history: History, rewards: Truth) -> Utility: ...
@overload
def utility(history: Mapping[str, History], rewards: Truth) -> dict[str, Utility]: ...
@takes()
def utility(
    history: History | Mapping[str, History], rewards: Truth
) -> Utility | dict[str, Utility]:
    """Return reward, standard regret and fairness regret of a run under known true rewards.

    Parameters
    ----------
    history : History or mapping of label to History
        Runs.
    rewards : reward family, (k,) or (T, k) array, or mapping of label to mean
        The truth, as for `simulate`; one set of arms, or one per round.

    Returns
    -------
    Utility or dict of str to Utility

    Raises
    ------
    DataError, ArmError
        If the truth does not fit the log.

    Notes
    -----
    Regret is conditional on the logged probabilities (pseudo-regret): it has the same expectation
    as that of the arms played, and less noise.

    Examples
    --------
    >>> from bayesfair.simulation.arms import simulate
    >>> run = simulate("uniform", [0.6, 0.5], 100, seed=1)
    >>> result = utility(run, [0.6, 0.5])
    >>> round(result.standard_regret, 9), round(result.fairness_regret_per_round, 9)
    (5.0, 0.05)
    """
    if isinstance(history, Mapping):
        runs = by_label(history, "run", "history")
        return {label: utility(run, rewards) for label, run in runs.items()}
    truth = _fitting(history, rewards)
    n_rounds = history.n_rounds
    mean = np.broadcast_to(_means(truth), (n_rounds, history.n_arms))
    offered = history.offered
    best = mean.max(axis=1) if offered is None else np.where(offered, mean, -np.inf).max(axis=1)
    pi = history.selection_probability
    if pi is None:
        expected = mean[np.arange(n_rounds), history.arm]
        shortfall = None
    else:
        expected = np.einsum("ti,ti->t", np.nan_to_num(pi), mean)
        shortfall = float(fairness_regret_per_round(history, truth).sum())
    seen = history.reward[~np.isnan(history.reward)]
    regret = float(np.sum(best - expected))
    per = max(n_rounds, 1)
    return Utility(
        n_rounds=n_rounds,
        reward_per_round=float(expected.sum()) / per,
        observed_reward_per_round=float(seen.mean()) if seen.size else float("nan"),
        standard_regret=regret,
        standard_regret_per_round=regret / per,
        fairness_regret=shortfall,
        fairness_regret_per_round=None if shortfall is None else shortfall / per,
    )


def fairness_regret_per_round(history: History, rewards: Any) -> Floats:
    """Return TV(P*, pi_t) of every round under known true rewards, ``(T,)``, in [0, 1].

    Parameters
    ----------
    history : History
        With all selection probabilities.
    rewards
        The truth, as for `utility`.

    Examples
    --------
    >>> from bayesfair.history import History
    >>> log = History([0, 1], [1, 0], selection_probability=[[0.5, 0.5], [0.6, 0.4]])
    >>> fairness_regret_per_round(log, [0.6, 0.4]).round(9)
    array([0.1, 0. ])
    """
    truth = _fitting(history, rewards)
    pi = history.selection_probability
    if pi is None:
        raise DataError("fairness regret needs all selection probabilities; the log has none.")
    if history.offered is None:
        best = truth.best_arm_probability()
    elif truth.batch_shape:
        best = truth.best_arm_probability(offered=history.offered)
    else:
        masks, which = np.unique(history.offered, axis=0, return_inverse=True)
        rows = np.stack([truth.best_arm_probability(offered=mask) for mask in masks])
        best = rows[which.reshape(-1)]
    short = np.maximum(np.nan_to_num(best) - np.nan_to_num(pi), 0.0)
    return np.asarray(short.sum(axis=1))


@takes(weights=NUMBERS, divergences=NAMES)
def tradeoff(
    rewards: Truth,
    *,
    towards: str = "uniform",
    weights: ArrayLike | None = None,
    divergences: Sequence[str] = ("total_variation",),
) -> xr.Dataset:
    r"""Return what calibration costs in reward, along mixtures of the calibrated rule.

    .. math:: \pi^{(w)} = w\,P^* + (1 - w)\,\rho

    Parameters
    ----------
    rewards : reward family, (k,) array or mapping of label to mean
        The truth.
    towards : str
        :math:`\rho`: ``"uniform"`` (smoother), or ``"greedy"`` (all on the largest mean, ties
        evenly: more reward).
    weights : (W,) array_like, optional
        w in [0, 1]; default 21 of them.
    divergences : sequence of str
        For the smallest constant of smooth fairness, the same on decisions and on rewards.

    Returns
    -------
    Dataset, dim ``weight``
        ``selection_probability`` (weight, arm); ``reward``, ``standard_regret``,
        ``fairness_regret`` per round; ``smallest_eps1`` (weight, divergence): the smallest eps1 at
        eps2 = 0, infinite where arms with equal rewards are treated differently.

    Notes
    -----
    This is the limit of rules that have learned the truth, exact; the cost of learning comes on
    top (see `simulate`).

    Examples
    --------
    >>> curve = tradeoff([0.8, 0.4], weights=[0, 0.5, 1])
    >>> curve.fairness_regret.values.round(9), curve.standard_regret.values.round(9)
    (array([0.2, 0.1, 0. ]), array([0.2 , 0.16, 0.12]))
    >>> curve.smallest_eps1.sel(divergence="total_variation").values.round(9)
    array([0. , 0.5, 1. ])
    """
    import xarray as xr

    from bayesfair.rewards import Bernoulli

    truth = as_rewards(rewards)
    if truth.batch_shape:
        raise OptionError("tradeoff needs one set of arms, not a batch.")
    check_choice(towards, "towards", ("uniform", "greedy"))
    w = np.linspace(0, 1, 21) if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    if np.any((w < 0) | (w > 1)):
        raise OptionError(f"weights must lie in [0, 1], got {listed(w.tolist())}.")
    mean, best = _means(truth), truth.best_arm_probability()
    target = mean == mean.max() if towards == "greedy" else np.ones_like(mean, dtype=bool)
    rho = target / target.sum()
    pi = w[:, None] * best + (1 - w[:, None]) * rho
    constants = np.zeros((w.size, len(divergences)))
    pairs = ~np.eye(truth.n_arms, dtype=bool)
    for d, name in enumerate(divergences):
        between = truth.divergence(name)
        decisions = Bernoulli(np.clip(pi, 0, 1)).divergence(name)
        with np.errstate(divide="ignore", invalid="ignore"):
            # an infinite reward divergence leaves the pair unconstrained; 0/0 needs nothing
            ratio = np.where(np.isinf(between), 0.0, decisions / between)
        ratio = np.where((decisions <= 1e-12) | ~pairs, 0.0, ratio)
        constants[:, d] = ratio.max(axis=(1, 2))
    return xr.Dataset(
        {
            "selection_probability": (("weight", "arm"), pi),
            "reward": ("weight", pi @ mean),
            "standard_regret": ("weight", mean.max() - pi @ mean),
            "fairness_regret": ("weight", np.maximum(best - pi, 0).sum(axis=1)),
            "smallest_eps1": (("weight", "divergence"), constants),
        },
        coords={"weight": w, "arm": list(truth.arms), "divergence": list(divergences)},
        attrs={"towards": towards},
    )


def _means(truth: Any) -> Floats:
    return np.asarray(truth.mean, dtype=np.float64)


def _fitting(history: Any, rewards: Any) -> Rewards:
    if not isinstance(history, History):
        raise OptionError(
            f"utility needs a History, or a mapping of label to them, got "
            f"{type(history).__name__}: read a log with bayesfair.read_history.",
            kind="wrong_kind",
            column="history",
        )
    truth = as_rewards(rewards).for_arms(history.arms, "rewards")
    if truth.batch_shape not in ((), (history.n_rounds,)):
        raise DataError(
            f"the truth holds a batch of shape {truth.batch_shape}; the log has "
            f"{history.n_rounds} rounds."
        )
    return truth
