"""Calibration of a log of duels in which only the left item's probability was written down."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from bayesfair.audit.duels.beliefs import Path
from bayesfair.audit.duels.judge import shares
from bayesfair.audit.duels.log import DuelRounds, seen_from_to
from bayesfair.audit.duels.numbers import regret_of
from bayesfair.audit.duels.truth import Truth
from bayesfair.audit.log.checks import LEVEL, Check
from bayesfair.base.checks import as_generator, as_numbers
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError, ProbabilityError

__all__ = ["checked_propensity", "chosen_regret"]

FloatArray = NDArray[np.float64]
Part = tuple[int, int, NDArray[np.bool_]]

_Z95 = 1.959963984540054


def checked_propensity(given: ArrayLike, duels: Any, rounds: DuelRounds) -> FloatArray:
    """Return the probability of the item on the left in each audited round.

    Raises
    ------
    OptionError, DataError, ProbabilityError
        Naming the round and the remedy.
    """
    if rounds.slot != "first":
        raise OptionError(
            "propensity= is the probability of the item on the left. It tells nothing of the other "
            'side, so that slot="mean" cannot be estimated from it; use slot="first".'
        )
    values = as_numbers(given, "propensity")
    cell = getattr(duels, "cell", None)
    if cell is not None and values.shape == cell.shape:
        values = values[cell >= 0]
    if values.shape != (rounds.n_rounds,):
        raise DataError(
            f"propensity has shape {values.shape}, expected one value for each of "
            f"{rounds.n_rounds} duels."
        )
    bad = np.flatnonzero(~((values > 0) & (values <= 1 + 1e-6)))
    if bad.size:
        t = int(bad[0])
        raise ProbabilityError(
            f"round {t}: the probability of {rounds.items[rounds.left[t]]!r} on the left is "
            f"{values[t]:g} ({bad.size} such rounds); expected a number in (0, 1], since it was "
            "chosen."
        )
    return np.minimum(values, 1.0)


def chosen_regret(
    rounds: DuelRounds, truth: Truth, path: Path, propensity: FloatArray
) -> tuple[dict[str, Any], Check, list[Notice]]:
    r"""Return the keys of the calibration, the test of the probabilities, and notices.

    The regret is estimated from the left item's probabilities.

    Parameters
    ----------
    rounds : DuelRounds
    truth : Truth
    path : Path
        Beliefs along the judged rounds.
    propensity : (T,) array
        What `checked_propensity` returned.

    Notes
    -----
    With :math:`\pi` the law of the item on the left, :math:`\sum_i \max(P^*_i - \pi_i, 0) =
    E_{i \sim \pi} \max(1 - P^*_i / \pi_i, 0)`: an unbiased mean of terms in [0, 1]. Probabilities
    of whole pairs do not serve: :math:`\pi_i` is a sum over opponents, of whom one was seen.
    """
    first = int(path.start[0])
    n = rounds.n_rounds - first
    total, squares = np.zeros((2, len(truth.log_worth)))
    for begin, end, on in _parts(rounds, path.start[:1]):
        part = slice(begin, end)
        found = _sums(rounds.left[part], propensity[part], shares(truth.log_worth, on), on)
        total += found[0]
        squares += found[1]
    means = total / n
    spread = np.sqrt(np.maximum(squares / n - means**2, 0.0) / max(n - 1, 1))
    if truth.known:  # only sampling varies
        values = means + _Z95 * spread * np.array([-1.0, 1.0])
    else:  # the posterior of the worths and the sampling of duels together
        noise = as_generator(truth.seed).standard_normal(len(means))
        values = np.quantile(means + spread * noise, [0.025, 0.975])
    low, high = np.clip(values, 0.0, 1.0)

    weight = np.empty(rounds.n_rounds)
    for begin, end, on in _parts(rounds, path.start):
        g = int(np.searchsorted(path.start, begin, side="right")) - 1
        p_best = np.zeros(rounds.n_items)
        p_best[on] = shares(path.log_worth[g : g + 1], on)[0]
        weight[begin:end] = p_best[rounds.left[begin:end]] / propensity[begin:end]
    weight = weight[first:]
    terms = np.maximum(1.0 - weight, 0.0)
    mean, half = float(terms.mean()), _Z95 * float(terms.std(ddof=1 if n > 1 else 0)) / n**0.5
    calibration = {
        "subjective": regret_of(mean, max(mean - half, 0.0), min(mean + half, 1.0), n=n,
                                exact=False),
        "objective": regret_of(float(means.mean()), float(low), float(high), n=n, exact=False),
        "effective_sample_size": float(weight.sum() ** 2 / (weight**2).sum()),
        "max_weight": float(weight.max()),
        "mean_weight": float(weight.mean()),
    }  # fmt: skip
    notices = [
        Notice(
            "Only the probability of the item on the left was logged: the regret is an unbiased "
            "estimate with a 95 % interval; smooth fairness compares items, so shares in windows "
            "stand for probabilities there.",
            kind="left_probability_only",
        )
    ]
    mean = float(weight.mean())
    excess = (mean - 1) / max(float(weight.std()) / math.sqrt(n), 1e-12)
    probability = float(ndtr(-excess))
    failed = probability < LEVEL and mean > 1 + 1e-9
    check = Check(not failed, float(excess), probability, LEVEL, "normal", None, n)
    if failed:
        notices.append(
            Notice(
                f"the logged probabilities are too small: the mean of P*/probability is "
                f"{mean:.3f}, at most 1 is expected (z = {excess:.1f}). Check the column: "
                "it must be the probability of the left item, not of the pair.",
                kind="propensities",
                column="propensity",
                value=mean,
                n=n,
            )
        )
    return calibration, check, notices


def _parts(rounds: DuelRounds, cuts: NDArray[np.int64]) -> list[Part]:
    """Return stretches of rounds from the first of `cuts` on in which the items on offer stay.

    They end at the `cuts`, too.

    Without `offered`, items that came or went count from their first to their last duel.
    """
    n = rounds.n_rounds
    if rounds.offered is not None:
        if not rounds.offered[np.arange(n), rounds.left].all():
            t = int(np.argmin(rounds.offered[np.arange(n), rounds.left]))
            raise DataError(
                f"round {t}: {rounds.items[rounds.left[t]]!r} was compared, but offered= says that "
                "it was not on offer. Correct offered=."
            )
        changed = np.flatnonzero((rounds.offered[1:] != rounds.offered[:-1]).any(axis=1)) + 1
        starts = np.union1d(cuts, changed[changed > cuts[0]])
        stops = np.append(starts[1:], n)
        return [
            (a, b, rounds.offered[a]) for a, b in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
    first, last = seen_from_to(rounds)
    first = np.where(first > n / 20, first, 0)
    last = np.where((last >= 0) & (last < 0.95 * n), last, n - 1)
    starts = np.union1d(cuts, np.concatenate([first, last + 1]))
    starts = starts[(starts >= cuts[0]) & (starts < n)].astype(np.int64)
    stops = np.append(starts[1:], n)
    return [
        (a, b, (first <= a) & (last >= a))
        for a, b in zip(starts.tolist(), stops.tolist(), strict=True)
    ]


def _sums(
    left: NDArray[np.int64], propensity: FloatArray, share: FloatArray, on: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of max(1 - p / pi, 0) and of its squares over rounds, per draw of p.

    One sort per item and a search per draw: cost is rounds + draws.
    """
    total, squares = np.zeros((2, len(share)))
    for column, item in enumerate(np.flatnonzero(on)):
        inverse = np.sort(1.0 / propensity[left == item])
        if not inverse.size:
            continue
        once = np.concatenate([[0.0], np.cumsum(inverse)])
        twice = np.concatenate([[0.0], np.cumsum(inverse**2)])
        p = share[:, column]
        m = np.searchsorted(inverse, 1.0 / np.maximum(p, 1e-300))
        total += m - p * once[m]
        squares += m - 2 * p * once[m] + p**2 * twice[m]
    return total, squares
