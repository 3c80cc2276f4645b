r"""What is kept of a log for the checks of the log itself; `log_pass` finds it for long logs.

* `RewardMoments`: per arm, count, means and centred products of rewards and logged probabilities.
* `RuleSums`: how the choices follow a whole decision rule, and how far the rule moves.
* `anchors`: fingerprints of windows of rows, thinned by their own value, so that two copies of a
  block of rows keep the same ones however the log is cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.log.rows import fixed
from bayesfair.typing import Floats

__all__ = [
    "ALL_PRINTS",
    "PRINT_BASE",
    "WINDOW",
    "Prints",
    "RewardMoments",
    "RuleSums",
    "anchors",
    "joined_moments",
    "mixed",
    "moments_into",
    "moments_table",
    "row_prints",
    "rule_into",
    "text_prints",
    "window_prints",
]

Prints = NDArray[np.uint64]

WINDOW = 16
"""Rows of a window: enough that few coincide by chance, few enough for short exports."""

PRINT_BASE = np.uint64(0x9E3779B97F4A7C15)
ALL_PRINTS = (1 << 64) - 1


class RewardMoments(NamedTuple):
    """Rewards r and logged probabilities p over an arm's plays with known reward, ``(k,)`` each.

    Attributes
    ----------
    n : count.
    origin : first reward; those after it are measured from there, which loses no digits.
    reward, probability : means, the first of them from the origin.
    reward_squares, probability_squares, products : sums of centred squares and products.
    reward_low, reward_high, probability_low, probability_high : extremes; inf and -inf for none.
    """

    n: Floats
    origin: Floats
    reward: Floats
    probability: Floats
    reward_squares: Floats
    probability_squares: Floats
    products: Floats
    reward_low: Floats
    reward_high: Floats
    probability_low: Floats
    probability_high: Floats


class RuleSums(NamedTuple):
    """How the choices follow a whole decision rule, over the rounds of a part.

    Attributes
    ----------
    slope, slope_variance, slope_step : float
        Sum over rounds of pi(a) - sum_i pi_i^2, a martingale; its variance; its largest step.
    same, same_variance : float
        Sum of 1{a_t = a_{t-1}} - pi_t(a_{t-1}), and its variance.
    n_pairs : int
        Rounds in which the arm before was on offer again.
    moved : float
        Sum of the total variation between the rules of two rounds in a row.
    n_steps : int
        Such steps, the same arms being on offer.
    """

    slope: float
    slope_variance: float
    slope_step: float
    same: float
    same_variance: float
    n_pairs: int
    moved: float
    n_steps: int

    def joined(self, other: RuleSums) -> RuleSums:
        """Return the sums of both parts; what the step between them adds is one of them too."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in self._fields}
        return RuleSums(**sums | {"slope_step": max(self.slope_step, other.slope_step)})


@compiled()
def moments_into(arm, reward, p, out):  # type: ignore[no-untyped-def]
    """Write the moments of rounds to those of no rounds, (11, k)."""
    for t in range(arm.shape[0]):
        r = reward[t]
        if np.isnan(r):
            continue
        a, x = np.uint32(arm[t]), p[t]
        if out[0, a] == 0.0:
            out[1, a] = r
        out[0, a] += 1.0
        out[2, a] += r - out[1, a]
        out[3, a] += x
        out[7, a] = min(out[7, a], r)
        out[8, a] = max(out[8, a], r)
        out[9, a] = min(out[9, a], x)
        out[10, a] = max(out[10, a], x)
    for i in range(out.shape[1]):
        if out[0, i] > 0.0:
            out[2, i] /= out[0, i]
            # no rounding where nothing varies
            out[3, i] = out[9, i] if out[9, i] == out[10, i] else out[3, i] / out[0, i]
    # products about the means
    for t in range(arm.shape[0]):
        r = reward[t]
        if np.isnan(r):
            continue
        a = np.uint32(arm[t])
        dr, dx = r - out[1, a] - out[2, a], p[t] - out[3, a]
        out[4, a] += dr * dr
        out[5, a] += dx * dx
        out[6, a] += dr * dx


def moments_table(shape: tuple[int, ...]) -> Floats:
    """Return the moments of no rounds, (11, *shape), to be filled."""
    out = np.zeros((11, *shape))
    out[[7, 9]], out[[8, 10]] = np.inf, -np.inf
    return out


def joined_moments(a: RewardMoments, b: RewardMoments) -> RewardMoments:
    """Return the moments of two parts together, from their centred sums."""
    n = a.n + b.n
    share = np.divide(b.n, n, out=np.zeros_like(n), where=n > 0)
    origin = np.where(a.n > 0, a.origin, b.origin)
    mean_a, mean_b = a.reward + (a.origin - origin), b.reward + (b.origin - origin)
    dr, dp = mean_b - mean_a, b.probability - a.probability
    between = a.n * share  # n_a n_b / n
    return RewardMoments(
        n,
        origin,
        np.where(a.n > 0, mean_a + dr * share, mean_b),
        a.probability + dp * share,
        a.reward_squares + b.reward_squares + dr * dr * between,
        a.probability_squares + b.probability_squares + dp * dp * between,
        a.products + b.products + dr * dp * between,
        np.minimum(a.reward_low, b.reward_low),
        np.maximum(a.reward_high, b.reward_high),
        np.minimum(a.probability_low, b.probability_low),
        np.maximum(a.probability_high, b.probability_high),
    )


@compiled()
def rule_into(arm, pi, by_round, by_arm, k, out):  # type: ignore[no-untyped-def]
    """Write the fields of `RuleSums`, (8,)."""
    slope, variance, step, same, same_variance, moved = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    n_pairs, n_steps = 0, 0
    for t in range(arm.shape[0]):
        base, a = t * by_round, arm[t]
        second, third, high, low, shift, steps = 0.0, 0.0, 0.0, 1.0, 0.0, t > 0
        for i in range(k):
            x = pi[base + i * by_arm]
            if t > 0:
                last = pi[base - by_round + i * by_arm]
                if np.isnan(x) != np.isnan(last):
                    steps = False
                elif not np.isnan(x):
                    shift += abs(x - last)
            if not np.isnan(x):
                second += x * x
                third += x * x * x
                high, low = max(high, x), min(low, x)
        slope += pi[base + a * by_arm] - second
        variance += third - second * second
        step = max(step, high - second, second - low)
        if steps:
            moved += 0.5 * shift
            n_steps += 1
        if t > 0:
            x = pi[base + arm[t - 1] * by_arm]
            if not np.isnan(x):
                n_pairs += 1
                same += (a == arm[t - 1]) - x
                same_variance += x * (1.0 - x)
    out[0], out[1], out[2], out[3], out[4] = slope, variance, step, same, same_variance
    out[5], out[6], out[7] = n_pairs, moved, n_steps


@compiled()
def mixed(x):  # type: ignore[no-untyped-def]
    """Return x with its bits spread (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled()
def _row_prints(arm, reward, p, base, out):  # type: ignore[no-untyped-def]
    for t in range(arm.shape[0]):
        x = mixed(np.uint64(arm[t]) + base)
        x = mixed(x + reward[t])
        out[t] = mixed(x + p[t] * base)


def row_prints(arm: NDArray[np.int32], reward: Floats, p: Floats | None) -> Prints:
    """Return a fingerprint of arm, reward and the chosen arm's probability of every round."""
    out = np.empty(len(arm), np.uint64)
    chances = np.zeros(len(arm)) if p is None else p
    _row_prints(fixed(arm), _bits(reward), _bits(chances), PRINT_BASE, out)
    return out


def _bits(values: Floats) -> Prints:
    """Return the bits of numbers; one for both zeros, one for all NaN."""
    clean = np.where(np.isnan(values), np.nan, np.asarray(values, np.float64) + 0.0)
    return fixed(clean.view(np.uint64))


@compiled()
def _windows(rows, width, base, out):  # type: ignore[no-untyped-def]
    """Write the fingerprint of the window that ends with each row; rows before are not known."""
    lead, running = np.uint64(1), np.uint64(0)
    for _ in range(width):
        lead *= base
    for t in range(rows.shape[0]):
        running = running * base + rows[t]
        if t >= width:
            running -= lead * rows[t - width]
        if t >= width - 1:
            out[t - width + 1] = mixed(running)


def window_prints(rows: Prints) -> Prints:
    """Return the fingerprint of every window of `WINDOW` rows in a row, (T - WINDOW + 1,)."""
    out = np.empty(max(len(rows) - WINDOW + 1, 0), np.uint64)
    _windows(fixed(rows), WINDOW, PRINT_BASE, out)
    return out


def anchors(prints: Prints, most: int, limit: int = ALL_PRINTS) -> tuple[NDArray[np.int64], int]:
    """Return which windows are kept: those whose fingerprint is at most ``limit``.

    The limit is halved until no more than `most` are left, so it depends on the windows alone and
    not on how the log was cut.
    """
    kept = np.flatnonzero(prints <= np.uint64(limit))
    while len(kept) > most:
        limit >>= 1
        kept = kept[prints[kept] <= np.uint64(limit)]
    return kept, limit


@compiled()
def _text_prints(data, offsets, base, out):  # type: ignore[no-untyped-def]
    for t in range(out.shape[0]):
        x = base
        for c in range(offsets[t], offsets[t + 1]):
            x = (x ^ np.uint64(data[c])) * np.uint64(0x100000001B3)
        out[t] = max(mixed(x + np.uint64(offsets[t + 1] - offsets[t])), np.uint64(1))


def text_prints(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Prints:
    """Return a fingerprint, never 0, of texts whose bytes are data[offsets[t] : offsets[t + 1]]."""
    out = np.empty(len(offsets) - 1, np.uint64)
    _text_prints(fixed(data), fixed(offsets), PRINT_BASE, out)
    return out
