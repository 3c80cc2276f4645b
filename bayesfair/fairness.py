"""The two notions of fairness as functions of decisions and reward laws, with labelled results.

Smooth fairness: selection probabilities of two arms differ little where their rewards do.
Calibrated fairness: an arm is selected with the probability that it is best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import NAMES, NUMBERS, takes
from bayesfair.base.checks import as_numbers, check_choice, check_in_range, listed
from bayesfair.base.labels import labels_of
from bayesfair.base.proved import CHI2, PROVED, WASSERSTEIN
from bayesfair.errors import ArmError, DataError, ProbabilityError
from bayesfair.kernels.laws.divergences import DIVERGENCES, worst_pair_general
from bayesfair.rewards import Empirical, Rewards

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "best_arm_probability",
    "best_mean_probability",
    "divergence",
    "fairness_regret",
    "guarantee_note",
    "smallest_eps2",
]

_ROW_TOLERANCE = 1e-6


def _batch_dims(n: int, dims: Sequence[str] | None) -> list[str]:
    if dims is None:
        return [] if n == 0 else ["batch"] if n == 1 else [f"batch_{i}" for i in range(n)]
    names = [dims] if isinstance(dims, str) else list(dims)
    if len(names) != n:
        raise DataError(f"dims names {listed(names)} for {n} leading axes of the rewards.")
    return names


def _rewards(rewards: Any, function: str) -> Rewards:
    if isinstance(rewards, Rewards):
        return rewards
    raise DataError(
        f"{function} needs a reward family from bayesfair.rewards, such as "
        f"bayesfair.rewards.Bernoulli([0.6, 0.5]); got {type(rewards).__name__}."
    )


@takes(dims=NAMES)
def best_arm_probability(
    rewards_or_beliefs: Any, *, dims: Sequence[str] | None = None
) -> xr.DataArray:
    r"""Probability that an arm has the highest realised reward, ties split evenly.

    .. math:: P^*(i) = E\bigl[1\{r_i = \max_j r_j\} / |\{j: r_j = \max\}|\bigr]

    Parameters
    ----------
    rewards_or_beliefs : Rewards or Beliefs
        Independent arms (`Empirical` may hold joint draws).
    dims : sequence of str, optional
        Names of the leading axes; default ``batch``.

    Returns
    -------
    DataArray, dims (..., arm)
        In [0, 1], sums to 1 over arms. For `Empirical` with the coordinate ``standard_error``.

    Raises
    ------
    DataError
        If the argument is neither.

    Notes
    -----
    It compares rewards as they will be realised, not their means: see `best_mean_probability`.

    References
    ----------
    .. [1] Liu, Radanovic, Dimitrakakis, Mandal, Parkes (2017), arXiv:1707.01875.

    Examples
    --------
    >>> from bayesfair.rewards import Bernoulli
    >>> best_arm_probability(Bernoulli([0.9, 0.5, 0.1])).values.round(12)
    array([0.66, 0.28, 0.06])
    """
    if not isinstance(rewards_or_beliefs, Rewards) and hasattr(rewards_or_beliefs, "rewards"):
        labelled: xr.DataArray = rewards_or_beliefs.best_arm_probability
        return labelled
    import xarray as xr

    rewards = _rewards(rewards_or_beliefs, "best_arm_probability")
    names = [*_batch_dims(len(rewards.batch_shape), dims), "arm"]
    coords: dict[str, Any] = {"arm": list(rewards.arms)}
    if isinstance(rewards, Empirical):
        coords["standard_error"] = (names, rewards.best_arm_standard_error())
    return xr.DataArray(
        rewards.best_arm_probability(), dims=names, coords=coords, name="best_arm_probability"
    )


@takes(dims=NAMES)
def best_mean_probability(
    rewards_or_beliefs: Any, *, dims: Sequence[str] | None = None
) -> xr.DataArray:
    r"""Probability that an arm has the highest *mean*: Thompson's quantity, which is not P*.

    Parameters
    ----------
    rewards_or_beliefs : Rewards or Beliefs
        Beliefs: :math:`P(\theta_i = \max_j \theta_j)` under the posterior before each round.
        Rewards: their means are known, so each set of arms gives 1 to the arm with the largest
        mean (ties split evenly); average over a batch of posterior draws for a probability.
    dims : sequence of str, optional
        Names of the leading axes; default ``batch``.

    Returns
    -------
    DataArray, dims (..., arm)
        In [0, 1], sums to 1 over arms; NaN where a mean does not exist.

    Examples
    --------
    >>> from bayesfair.rewards import Bernoulli
    >>> best_mean_probability(Bernoulli([0.9, 0.5, 0.1])).values
    array([1., 0., 0.])
    """
    if not isinstance(rewards_or_beliefs, Rewards) and hasattr(rewards_or_beliefs, "rewards"):
        labelled: xr.DataArray = rewards_or_beliefs.best_mean_probability
        return labelled
    import xarray as xr

    rewards: Any = _rewards(rewards_or_beliefs, "best_mean_probability")
    mean = np.asarray(rewards.mean, dtype=np.float64)
    top = mean == mean.max(axis=-1, keepdims=True)
    share = np.where(
        np.isnan(mean).any(axis=-1, keepdims=True),
        np.nan,
        top / np.maximum(top.sum(axis=-1, keepdims=True), 1),
    )
    names = [*_batch_dims(len(rewards.batch_shape), dims), "arm"]
    return xr.DataArray(
        share, dims=names, coords={"arm": list(rewards.arms)}, name="best_mean_probability"
    )


@takes(dims=NAMES)
def divergence(
    rewards: Rewards, name: str = "total_variation", *, dims: Sequence[str] | None = None
) -> xr.DataArray:
    r"""Divergence D(r_i || r_j) of the reward laws of all ordered pairs of arms.

    Parameters
    ----------
    rewards : Rewards
        Any family; its docstring lists the infinite cases.
    name : str
        ``total_variation``, ``kl`` (nats), ``hellinger`` (unsquared), ``chi2``
        (:math:`\sum (p-q)^2/q`), ``jensen_shannon`` (at most ln 2) or ``wasserstein`` (reward
        units).
    dims : sequence of str, optional
        Names of the leading axes; default ``batch``.

    Returns
    -------
    DataArray, dims (..., arm, arm_other)
        Zero on the diagonal.

    Raises
    ------
    OptionError
        If the name is unknown.

    Examples
    --------
    >>> from bayesfair.rewards import Bernoulli
    >>> divergence(Bernoulli([0.75, 0.25]), "total_variation").values
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    import xarray as xr

    rewards = _rewards(rewards, "divergence")
    values = rewards.divergence(name)
    names = [*_batch_dims(len(rewards.batch_shape), dims), "arm", "arm_other"]
    coords = {"arm": list(rewards.arms), "arm_other": list(rewards.arms)}
    return xr.DataArray(values, dims=names, coords=coords, name=name)


def _reward_divergence(divergence: str, reward_divergence: str | None) -> str:
    """Return the divergence of rewards, that of decisions where none is named; both checked."""
    check_choice(divergence, "divergence", DIVERGENCES)
    other = divergence if reward_divergence is None else reward_divergence
    check_choice(other, "reward_divergence", DIVERGENCES)
    return other


def _decisions(given: Any, arms: Sequence[str] | None) -> tuple[NDArray[np.float64], list[str]]:
    """Return selection probabilities as (..., k) in the order of `arms`, with their labels."""
    if hasattr(given, "dims") and "arm" in given.dims:
        given = given.transpose(..., "arm")
        if "arm" in given.coords:
            own = list(labels_of(given.coords["arm"].values, "arm", "selection_probability"))
            if arms is None:
                arms = own
            elif set(own) != set(arms):
                odd = sorted(set(own) ^ set(arms))
                raise ArmError(
                    f"selection_probability and the rewards do not name the same arms: "
                    f"{listed(odd)} on one side only."
                )
            else:
                given = given.isel(arm=[own.index(a) for a in arms])
    pi = as_numbers(given, "selection_probability")
    if pi.ndim == 0:
        raise DataError("selection_probability must have the arms as its last axis.")
    labels = list(arms) if arms is not None else [str(i) for i in range(pi.shape[-1])]
    if pi.shape[-1] != len(labels):
        raise DataError(
            f"selection_probability has {pi.shape[-1]} arms in its last axis, expected "
            f"{len(labels)}: {listed(labels)}."
        )
    _check_rows(pi, "selection_probability")
    return pi, labels


def _check_rows(p: NDArray[np.float64], name: str) -> None:
    bad = (p < 0) | (p > 1 + _ROW_TOLERANCE)
    off = np.abs(np.nansum(p, axis=-1) - 1) > _ROW_TOLERANCE
    wrong = np.argwhere(bad.any(axis=-1) | off)
    if bad.any() or off.any():
        index = tuple(int(i) for i in wrong[0])
        row = f"row {index[0] if len(index) == 1 else index} of {name}" if index else name
        values = ", ".join(f"{v:.6g}" for v in p[index][:6])
        raise ProbabilityError(
            f"{row} is no distribution: {values}{', ...' if p.shape[-1] > 6 else ''} (sum "
            f"{np.nansum(p[index]):.8g}, tolerance {_ROW_TOLERANCE:g}). Probabilities lie in "
            "[0, 1] and sum to 1 over the arms on offer; NaN = not on offer."
        )


@takes(selection_probability=NUMBERS)
def smallest_eps2(
    selection_probability: Any,
    rewards: Rewards,
    eps1: float = 1.0,
    divergence: str = "total_variation",
    reward_divergence: str | None = None,
) -> xr.DataArray:
    r"""Smallest eps2 at which decisions are smoothly fair, for each round.

    .. math:: \max\bigl\{0,\; \max_{i\ne j} D(\pi_i\|\pi_j) - \epsilon_1 D'(r_i\|r_j)\bigr\}

    Parameters
    ----------
    selection_probability : (k,) or (T, k) array, or DataArray with dim arm
        Decisions; rows sum to 1, NaN = arm not on offer (its pairs are left out).
    rewards : Rewards
        One set of arms for all rounds, or a batch with one set per round.
    eps1 : float
        At least 0; 0 drops the reward term.
    divergence : str
        D, between decisions as Bernoulli laws; one of the names of `bayesfair.divergence`.
    reward_divergence : str, optional
        D', between rewards; default the same as `divergence`.

    Returns
    -------
    DataArray, dims () or (round,)
        At least 0, may be inf. The coordinates ``arm`` and ``arm_other`` name the first pair that
        attains the maximum ("" with a single arm), ``excess`` is the maximum before the cut at 0.

    Raises
    ------
    ProbabilityError, DataError, ArmError, OptionError
        Naming the row, shape, label or option.

    Notes
    -----
    An infinite reward divergence leaves the pair unconstrained, even where the decisions differ
    infinitely; an infinite divergence of decisions alone gives inf. `guarantee_note` says what is
    known about each choice of divergences.

    References
    ----------
    .. [1] Liu, Radanovic, Dimitrakakis, Mandal, Parkes (2017), arXiv:1707.01875.

    Examples
    --------
    >>> from bayesfair.rewards import Bernoulli
    >>> float(smallest_eps2([0.9, 0.1], Bernoulli([0.7, 0.5]), eps1=2).round(12))
    0.4
    """
    import xarray as xr

    rewards = _rewards(rewards, "smallest_eps2")
    other = _reward_divergence(divergence, reward_divergence)
    eps1 = check_in_range(eps1, "eps1", 0, np.inf, high_open=True)
    pi, labels = _decisions(selection_probability, rewards.arms)
    if pi.ndim > 2 or len(rewards.batch_shape) > 1:
        raise DataError(
            f"smallest_eps2 takes (arm,) or (round, arm); got selection_probability {pi.shape} and "
            f"rewards with batch {rewards.batch_shape}."
        )
    if rewards.batch_shape and (pi.ndim == 1 or len(pi) != rewards.batch_shape[0]):
        raise DataError(
            f"selection_probability has shape {pi.shape}, but the rewards are a batch of "
            f"{rewards.batch_shape[0]} rounds; give one row for each."
        )
    excess, first, second = worst_pair_general(
        np.atleast_2d(pi), rewards.divergence(other), eps1, divergence
    )
    names = np.array([*labels, ""], dtype=object)
    dims = ["round"] if pi.ndim == 2 else []
    shape = pi.shape[:-1]

    def put(values: Any) -> tuple[list[str], Any]:
        return dims, values.reshape(shape)

    return xr.DataArray(
        np.maximum(excess, 0.0).reshape(shape),
        dims=dims,
        coords={
            "arm": put(names[first].astype(str)),
            "arm_other": put(names[second].astype(str)),
            "excess": put(excess),
        },
        name="smallest_eps2",
    )


@takes(selection_probability=NUMBERS)
def fairness_regret(selection_probability: Any, p_best: Any) -> xr.DataArray:
    r"""Sum, over arms, how far selection falls short of the probability of being best.

    .. math:: R_t = \sum_i \max\{P^*_t(i) - \pi_t(i),\, 0\}

    Parameters
    ----------
    selection_probability : (k,) or (T, k) array, or DataArray with dim arm
        Decisions; rows sum to 1, NaN = arm not on offer. Dimensionless.
    p_best : (k,) or (T, k) array, or DataArray with dim arm
        Best-arm probabilities over the arms on offer; a single row is used for every round.

    Returns
    -------
    DataArray, dims () or (round,)
        Regret per round, in [0, 1]. Zero iff both are equal.

    Raises
    ------
    ProbabilityError
        If a row is no distribution, or P* has mass on an arm that was not on offer.

    Notes
    -----
    Because both rows sum to 1, this is the total variation distance between them.

    References
    ----------
    .. [1] Liu, Radanovic, Dimitrakakis, Mandal, Parkes (2017), arXiv:1707.01875.

    Examples
    --------
    >>> float(fairness_regret([1.0, 0.0], [0.6, 0.4]))
    0.4
    >>> fairness_regret([[1.0, 0.0], [0.5, 0.5]], [0.6, 0.4]).values.round(12)
    array([0.4, 0.1])
    """
    import xarray as xr

    pi, labels = _decisions(selection_probability, None)
    named = hasattr(selection_probability, "coords") and "arm" in selection_probability.coords
    best, _ = _decisions(p_best, labels if named else None)
    if pi.ndim > 2 or best.ndim > 2 or best.shape[-1] != pi.shape[-1]:
        raise DataError(
            f"selection_probability {pi.shape} and p_best {best.shape} must be (arm,) or "
            "(round, arm) with the same arms."
        )
    if best.ndim == 2 and pi.ndim == 2 and len(best) != len(pi):
        raise DataError(f"selection_probability has {len(pi)} rounds, p_best {len(best)}.")
    best, pi = np.broadcast_arrays(best, pi)
    absent = np.isnan(pi) & (np.nan_to_num(best) > 0)
    if absent.any():
        index = tuple(int(i) for i in np.argwhere(absent)[0])
        where = f" in round {index[0]}" if pi.ndim == 2 else ""
        raise ProbabilityError(
            f"arm {labels[index[-1]]!r} is not on offer{where} (NaN), but its best-arm "
            f"probability is {best[index]:.6g}. Compute P* over the arms on offer: "
            "rewards.best_arm_probability(offered=...)."
        )
    short = np.where(np.isnan(pi), 0.0, np.maximum(np.nan_to_num(best) - pi, 0.0))
    return xr.DataArray(
        short.sum(axis=-1), dims=["round"] if pi.ndim == 2 else [], name="fairness_regret"
    )


@takes()
def guarantee_note(divergence: str, reward_divergence: str | None = None) -> str:
    """Return, in one or two sentences, what is known of SD_TS under these divergences.

    Parameters
    ----------
    divergence, reward_divergence : str
        For decisions and for rewards (default: the same).

    Examples
    --------
    >>> guarantee_note("total_variation")[:60]
    'Proved: with independent arms the rule that selects with P* '
    """
    other = _reward_divergence(divergence, reward_divergence)
    # decisions are Bernoulli laws: their Wasserstein distance is their total variation
    decisions = "total_variation" if divergence == "wasserstein" else divergence
    if other == "wasserstein":
        return WASSERSTEIN
    if (decisions, other) in PROVED:
        return PROVED[decisions, other]
    if decisions == "chi2":
        return CHI2
    if decisions == other or (decisions, other) in (("jensen_shannon", "chi2"), ("kl", "chi2")):
        return "Nothing is proved; for selection with P* a search found no violation of eps1 = 2."
    if decisions == "hellinger" and other != "total_variation":
        return (
            "No constant eps1 is enough: near equal arms the Hellinger distance of decisions falls "
            "like the difference, the divergence of rewards like its square."
        )
    return "No guarantee is given for this pair of divergences: eps1 = 2 may not be enough."
