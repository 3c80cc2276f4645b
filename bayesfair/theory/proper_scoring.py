r"""Proper scoring rules as fairness losses: calibration is what minimises them.

The paper (Liu et al. 2017) is the source of the connection; `bayesfair.theory` shows these names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import takes, within
from bayesfair.base.checks import check_choice
from bayesfair.errors import DataError
from bayesfair.kernels.laws.tv_bounds import tv_bound_from_kl
from bayesfair.typing import Floats

__all__ = [
    "expected_fairness_loss",
    "fairness_loss",
    "fairness_loss_excess",
    "regret_from_excess",
]


@takes(selection_probability=within(0, 1, array=True), best_arm=within(0, whole=True, array=True))
def fairness_loss(selection_probability: ArrayLike, best_arm: Any, rule: str = "log") -> Floats:
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
    best = np.asarray(best_arm).astype(np.int64)
    _check_rule(rule)
    if not pi.ndim or best.ndim != pi.ndim - 1 or np.any(best >= pi.shape[-1]):
        raise DataError(
            f"best_arm of shape {best.shape} must hold one position from 0 on for each row of "
            f"selection_probability, of shape {pi.shape}, below its last axis.",
            kind="wrong_shape",
            column="best_arm",
        )
    _check_shapes(pi.shape[:-1], best.shape, "best_arm")
    chosen = np.take_along_axis(pi, best[..., None], axis=-1)[..., 0]
    if rule == "log":
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(chosen))
    return np.asarray((pi**2).sum(axis=-1) - 2 * chosen + 1)


@takes(selection_probability=within(0, 1, array=True), p_best=within(0, 1, array=True))
def expected_fairness_loss(
    selection_probability: ArrayLike, p_best: ArrayLike, rule: str = "log"
) -> Floats:
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


@takes(selection_probability=within(0, 1, array=True), p_best=within(0, 1, array=True))
def fairness_loss_excess(
    selection_probability: ArrayLike, p_best: ArrayLike, rule: str = "log"
) -> Floats:
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


@takes(excess=within(0, array=True), n_arms=within(1, 1e9, whole=True))
def regret_from_excess(excess: ArrayLike, rule: str = "log", *, n_arms: int = 2) -> Floats:
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


def _pair(pi: ArrayLike, p: ArrayLike) -> tuple[Floats, Floats]:
    left, right = np.asarray(pi, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if not left.ndim or not right.ndim or left.shape[-1] != right.shape[-1]:
        raise DataError(
            f"p_best of shape {right.shape} and selection_probability of shape {left.shape} must "
            "have the arms as their last axis.",
            kind="wrong_shape",
            column="p_best",
        )
    _check_shapes(left.shape, right.shape, "p_best")
    return left, right


def _check_shapes(wanted: tuple[int, ...], given: tuple[int, ...], name: str) -> None:
    try:
        np.broadcast_shapes(wanted, given)
    except ValueError:
        raise DataError(
            f"{name} has shape {given}; with these probabilities it must fit {wanted}.",
            kind="wrong_shape",
            column=name,
        ) from None


def _check_rule(rule: str) -> None:
    check_choice(rule, "rule", ("log", "brier"))
