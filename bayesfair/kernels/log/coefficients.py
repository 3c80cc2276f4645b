r"""Beliefs on the coefficients of every arm over features of a round, one reward at a time.

Arm i at features z, intercept first:

* linear: reward ~ N(z'beta_i, s_i^2), beta_i | s_i^2 ~ N(m, s_i^2 V), s_i^2 ~ InvGamma(a, b): a
  reward is predicted by a Student t, df 2a, location z'm, scale sqrt(b/a (1 + z'Vz)), and learned
  exactly.
* probit: P(reward = 1) = Phi(z'beta_i), beta_i ~ N(m, V): predicted by Phi(z'm / sqrt(1 + z'Vz));
  a reward leaves the normal law with the mean and covariance of the exact posterior.
* logit: the same with 1/(1 + exp(-z'beta_i)), by Gauss-Hermite nodes along z.

A reward of arm i costs O(d^2), and so does a prediction. V of linear beliefs is computed anew from
its inverse, which is a plain sum, after every `_REFRESH` rewards of the arm.

The prior of linear beliefs is that of measurements: learned from the first known rewards, see
`bayesfair.kernels.log.conjugate`. Until it is settled all known rewards are learned anew with each.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.log.conjugate import FIRST, location_and_scale
from bayesfair.typing import Floats, Ints

__all__ = [
    "LINKS", "Coefficients", "gaussian_update", "hazard", "in_order_of_news", "nig_update",
    "predicted", "run_coefficients",
]  # fmt: skip

LINKS = {"linear": 0, "probit": 1, "logit": 2}
"""How features tell a reward."""

_LINEAR, _PROBIT = 0, 1
_REFRESH = 256
_NODES = 40


class Coefficients(NamedTuple):
    """Beliefs on the coefficients before the next round, and rewards that are not known yet.

    Attributes
    ----------
    prior : (k, 4) array
        Of the intercept as `bayesfair.kernels.log.conjugate` has it for normal rewards; every other
        coefficient has mean 0. Of probit and logit beliefs (0, 1/variance, -, -).
    mean : (k, d) array
    spread : (k, d, d) array
        V.
    precision : (k, d, d) array
        Its inverse, of linear beliefs; empty otherwise.
    shape, scale : (k,) array
        a and b, of linear beliefs.
    n_learned : (k,) array of int
        Rewards since V was computed anew.
    from_data : bool
        Whether the prior is learned.
    early_arm, early_reward, early_row
        First known rewards with their features, as `BeliefTable` has them.
    open : bool
        Whether no two of them differ yet.
    pending_at, pending_arm, pending_reward, pending_row
        Rewards that are not known yet, with their features, as `BeliefTable` has them.
    """

    prior: Floats
    mean: Floats
    spread: Floats
    precision: Floats
    shape: Floats
    scale: Floats
    n_learned: NDArray[np.int64]
    from_data: bool
    early_arm: NDArray[np.int32]
    early_reward: Floats
    early_row: Floats
    open: bool
    pending_at: Ints
    pending_arm: NDArray[np.int32]
    pending_reward: Floats
    pending_row: Floats

    @classmethod
    def start(cls, prior: Floats, d: int, *, linear: bool, from_data: bool = False) -> Coefficients:
        """Return the beliefs before the first round."""
        k = len(prior)
        mean = np.zeros((k, d))
        mean[:, 0] = prior[:, 0]
        eye = np.eye(d)
        strength = prior[:, 1, None, None]
        return cls(
            prior, mean, eye / strength, eye * strength if linear else np.empty((k, 0, 0)),
            prior[:, 2].copy(), prior[:, 3].copy(), np.zeros(k, np.int64), from_data,
            np.empty(0, np.int32), np.empty(0), np.empty((0, d)), from_data,
            np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0), np.empty((0, d)),
        )  # fmt: skip

    def widened(self, d: int) -> Coefficients:
        """Return the beliefs with more features, none of which came in a round so far."""
        more = d - self.mean.shape[1]
        if not more:
            return self

        def square(values: Floats, diagonal: Floats) -> Floats:
            wide = np.pad(values, ((0, 0), (0, more), (0, more)))
            at = np.arange(d - more, d)
            wide[:, at, at] = diagonal[:, None]
            return wide

        strength = self.prior[:, 1]
        row = ((0, 0), (0, more))
        return self._replace(
            mean=np.pad(self.mean, row),
            spread=square(self.spread, 1 / strength),
            precision=square(self.precision, strength) if self.precision.size else self.precision,
            early_row=np.pad(self.early_row, row),
            pending_row=np.pad(self.pending_row, row),
        )


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes and weights for a standard normal law: as many below 0 as above."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, weights / weights.sum()


@compiled()
def predicted(z, mean, spread, work):  # type: ignore[no-untyped-def]
    """Return z'm and z'Vz; ``work`` has Vz afterwards."""
    d = z.shape[0]
    centre, v = 0.0, 0.0
    for a in range(d):
        total = 0.0
        for b in range(d):
            total += spread[a, b] * z[b]
        work[a] = total
        v += z[a] * total
        centre += z[a] * mean[a]
    return centre, max(v, 0.0)


@compiled()
def _inverse(matrix, out):  # type: ignore[no-untyped-def]
    """Write the inverse of a positive definite matrix, by Cholesky."""
    d = matrix.shape[0]
    low = np.zeros((d, d))
    for j in range(d):
        for i in range(j, d):
            total = matrix[i, j]
            for a in range(j):
                total -= low[i, a] * low[j, a]
            low[i, j] = math.sqrt(total) if i == j else total / low[j, j]
    back = np.zeros((d, d))
    for j in range(d):
        back[j, j] = 1.0 / low[j, j]
        for i in range(j + 1, d):
            total = 0.0
            for a in range(j, i):
                total -= low[i, a] * back[a, j]
            back[i, j] = total / low[i, i]
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for a in range(i, d):
                total += back[a, i] * back[a, j]
            out[i, j] = total
            out[j, i] = total


@compiled()
def nig_update(z, reward, mean, spread, precision, work):  # type: ignore[no-untyped-def]
    """Learn a reward of one arm with normal rewards; return what it adds to b (a grows by 1/2)."""
    centre, v = predicted(z, mean, spread, work)
    off, share = reward - centre, 1.0 / (1.0 + v)
    for a in range(z.shape[0]):
        mean[a] += work[a] * off * share
        for b in range(z.shape[0]):
            spread[a, b] -= work[a] * work[b] * share
            precision[a, b] += z[a] * z[b]
    return 0.5 * off * off * share


@compiled()
def hazard(t):  # type: ignore[no-untyped-def]
    """Return phi(t) / Phi(t)."""
    if t > -5.0:
        mass = 0.5 * math.erfc(-t / math.sqrt(2.0))
        return math.exp(-0.5 * t * t) / (math.sqrt(2.0 * math.pi) * mass)
    u, tail = -t, 0.0
    for n in range(40, 0, -1):
        tail = n / (u + tail)
    return u + tail


@compiled()
def _logistic_moments(centre, sd, nodes, weights):  # type: ignore[no-untyped-def]
    """Return E s, E s', E s'' of the logistic function s of a normal value."""
    first, second, third = 0.0, 0.0, 0.0
    for u in range(nodes.shape[0]):
        p = 1.0 / (1.0 + math.exp(-(centre + sd * nodes[u])))
        slope = p * (1.0 - p)
        first += weights[u] * p
        second += weights[u] * slope
        third += weights[u] * slope * (1.0 - 2.0 * p)
    return first, second, third


@compiled(error_model="numpy")
def _logistic_mean(centre, sd, nodes, weights):  # type: ignore[no-untyped-def]
    """Return E s of the logistic function s of a normal value: nodes two by two, as they lie."""
    n = nodes.shape[0]
    if abs(centre) > 200.0 or sd > 20.0:  # exponentials would overflow
        return _logistic_moments(centre, sd, nodes, weights)[0]
    total, a = 0.0, math.exp(-centre)
    for u in range(n // 2):
        up = math.exp(sd * nodes[n - 1 - u])
        both = a * (up + 1.0 / up)  # s(c + x) + s(c - x), over one denominator
        total += weights[u] * (2.0 + both) / (1.0 + both + a * a)
    return total


@compiled()
def gaussian_update(z, reward, mean, spread, link, nodes, weights, work):  # type: ignore[no-untyped-def]
    """Learn a reward, 0 or 1, of one arm with normal coefficients: exact mean and covariance."""
    centre, v = predicted(z, mean, spread, work)
    sign = 1.0 if reward > 0.5 else -1.0
    if link == _PROBIT:
        s = math.sqrt(1.0 + v)
        t = sign * centre / s
        ratio = hazard(t)
        gain, shrink = sign * ratio / s, ratio * (t + ratio) / (1.0 + v)
    else:
        p, slope, bend = _logistic_moments(sign * centre, math.sqrt(v), nodes, weights)
        gain = slope / p
        shrink = gain * gain - bend / p
        gain *= sign
    for a in range(z.shape[0]):
        mean[a] += work[a] * gain
        for b in range(z.shape[0]):
            spread[a, b] -= work[a] * work[b] * shrink


@compiled()
def _learn(i, z, reward, beliefs, work):  # type: ignore[no-untyped-def]
    mean, spread, precision, shape, scale, n_learned = beliefs
    scale[i] += nig_update(z, reward, mean[i], spread[i], precision[i], work)
    shape[i] += 0.5
    n_learned[i] += 1
    if n_learned[i] >= _REFRESH:
        _inverse(precision[i], spread[i])
        n_learned[i] = 0


@compiled()
def _relearn(prior, early, m, was_open, whole, beliefs, work):  # type: ignore[no-untyped-def]
    """Write linear beliefs from the first known rewards; return whether their scale is known.

    Where it was not, precision and shape have the features of those that equal the first ones.
    """
    early_arm, early_reward, early_row = early
    mean, spread, precision, shape, scale, n_learned = beliefs
    centre, unit = location_and_scale(early_reward[:m])
    if unit == 0.0 and not whole:
        mean[:, 0] = centre
        return False
    for i in range(mean.shape[0]):
        if not was_open:
            precision[i] = 0.0
            for a in range(mean.shape[1]):
                precision[i, a, a] = prior[i, 1]
            shape[i] = prior[i, 2]
        mean[i] = 0.0
        mean[i, 0] = centre
        scale[i] = prior[i, 3] * (unit * unit if unit > 0.0 else 1.0)
        _inverse(precision[i], spread[i])
        n_learned[i] = 0
    for e in range(m):
        _learn(early_arm[e], early_row[e], early_reward[e], beliefs, work)
    return unit > 0.0


@compiled()
def _run(link, rows, first, told, prior, early, marks, beliefs, quadrature, out):  # type: ignore[no-untyped-def]
    # marks: how many first rewards, whether the prior is settled, whether no two differ
    at, told_row, told_arm, told_reward = told
    early_arm, early_reward, early_row = early
    mean, spread, precision, shape, scale, _ = beliefs
    nodes, weights = quadrature
    k, d = mean.shape
    work, done, n = np.empty(d), 0, rows.shape[0] - first
    for t in range(n + 1):
        while done < at.shape[0] and (at[done] <= t or (t == n and marks[3])):
            i, z, y = told_arm[done], rows[told_row[done]], told_reward[done]
            done += 1
            if link != _LINEAR:
                gaussian_update(z, y, mean[i], spread[i], link, nodes, weights, work)
                continue
            if marks[1]:
                _learn(i, z, y, beliefs, work)
                continue
            m = marks[0]
            if m >= FIRST and y == early_reward[0]:
                for a in range(d):
                    for b in range(d):
                        precision[i, a, b] += z[a] * z[b]
                shape[i] += 0.5
                continue
            early_arm[m], early_reward[m] = i, y
            early_row[m] = z
            marks[0] = m + 1
            known = _relearn(prior, early, m + 1, marks[2] == 1, False, beliefs, work)
            marks[2] = 0 if known else 1
            if known and m + 1 >= FIRST:
                marks[1] = 1
        if t == n or out.shape[0] == 0:
            continue
        z = rows[first + t]
        if link == _LINEAR and marks[2]:  # there is no scale: all arms have the same law
            v = 0.0
            for a in range(d):
                v += z[a] * z[a]
            for i in range(k):
                out[t, i, 0] = 2.0 * prior[i, 2]
                out[t, i, 1] = mean[i, 0]
                out[t, i, 2] = math.sqrt(prior[i, 3] / prior[i, 2] * (1.0 + v / prior[i, 1]))
            continue
        for i in range(k):
            centre, v = predicted(z, mean[i], spread[i], work)
            if link == _LINEAR:
                out[t, i, 0] = 2.0 * shape[i]
                out[t, i, 1] = centre
                out[t, i, 2] = math.sqrt(scale[i] / shape[i] * (1.0 + v))
            elif link == _PROBIT:
                out[t, i, 0] = 0.5 * math.erfc(-centre / math.sqrt(2.0 * (1.0 + v)))
            else:
                out[t, i, 0] = _logistic_mean(centre, math.sqrt(v), nodes, weights)
    return done


def in_order_of_news(
    before: Coefficients,
    rows: Floats,
    arm: NDArray[np.int32],
    reward: Floats,
    known_at: Ints | None,
) -> tuple[Ints, Ints, NDArray[np.int32], Floats, Floats]:
    """Return the rewards of some rounds, and those that waited, as they become known.

    Parameters
    ----------
    before, rows, arm, reward, known_at
        As `run_coefficients` takes them.

    Returns
    -------
    at, row, arm, reward : (m,) arrays
        First round that may use it, the place of its features among ``every``, its arm and value.
    every : (w + T, d) array
        Features of the w rewards that waited, then of the rounds.
    """
    n, waiting = len(rows), len(before.pending_at)
    own = np.arange(1, n + 1) if known_at is None else np.asarray(known_at, np.int64)
    seen = np.flatnonzero(~np.isnan(reward))
    at = np.concatenate([before.pending_at, own[seen]])
    row = np.concatenate([np.arange(waiting), seen + waiting])
    arms = np.concatenate([before.pending_arm, arm[seen]]).astype(np.int32)
    values = np.concatenate([before.pending_reward, reward[seen]])
    if waiting or known_at is not None:
        order = np.argsort(at, kind="stable")
        at, row, arms, values = at[order], row[order], arms[order], values[order]
    every = np.ascontiguousarray(np.concatenate([before.pending_row, rows]) if waiting else rows)
    return at, row, arms, values, every


def run_coefficients(
    link: str,
    before: Coefficients,
    rows: Floats,
    arm: NDArray[np.int32],
    reward: Floats,
    known_at: Ints | None,
    *,
    laws: bool = True,
    everything: bool = False,
) -> tuple[Floats, Coefficients]:
    """Return the law of every arm before each round, and the beliefs after the last.

    Parameters
    ----------
    link : str
        Of `LINKS`.
    before : Coefficients
        Beliefs before the first round.
    rows : (T, d) array
        Features, intercept first.
    arm, reward : (T,) arrays
        The rounds; NaN = not observed.
    known_at : (T,) array of int or None
        First round that may use the reward; None = the next.
    laws : bool
        Whether laws are asked for.
    everything : bool
        Learn all rewards at the end, whenever they are known.

    Returns
    -------
    laws : (T, k, 3) or (T, k, 1) array
        df, location and scale of Student t; or the probability of a reward of 1.
    after : Coefficients

    Examples
    --------
    >>> flat = Coefficients.start(np.array([[0.0, 1, 1, 1]]), 2, linear=False)
    >>> rows, arm, reward = np.array([[1.0, 0], [1, 1]]), np.zeros(2, np.int32), np.ones(2)
    >>> run_coefficients("probit", flat, rows, arm, reward, None)[0].ravel().round(4)
    array([0.5   , 0.6348])
    """
    n, waiting = len(rows), len(before.pending_at)
    at, row, arms, values, rows = in_order_of_news(before, rows, arm, reward, known_at)
    m, d = len(before.early_reward), before.mean.shape[1]
    early = np.zeros(FIRST + 1, np.int32), np.zeros(FIRST + 1), np.zeros((FIRST + 1, d))
    early[0][:m], early[1][:m], early[2][:m] = before[8:11]
    settled = not before.from_data or (m >= FIRST and not before.open)
    marks = np.array([m, settled, before.open, everything], np.int64)
    beliefs = (
        before.mean.copy(), before.spread.copy(), before.precision.copy(), before.shape.copy(),
        before.scale.copy(), before.n_learned.copy(),
    )  # fmt: skip
    linear = LINKS[link] == _LINEAR
    out = np.empty((n if laws else 0, len(before.prior), 3 if linear else 1))
    done = _run(
        LINKS[link], rows, waiting, (at, row, arms, values), before.prior, early, marks, beliefs,
        _quadrature(), out,
    )  # fmt: skip
    if everything and marks[2] and marks[0]:
        _relearn(before.prior, early, int(marks[0]), True, True, beliefs, np.empty(d))
    rest, m = slice(done, None), int(marks[0])
    return out, Coefficients(
        before.prior, *beliefs, before.from_data, early[0][:m].copy(), early[1][:m].copy(),
        early[2][:m].copy(), bool(marks[2]), at[rest] - n, arms[rest], values[rest],
        rows[row[rest]],
    )  # fmt: skip
