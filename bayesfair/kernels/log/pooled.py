r"""Exact sequential beliefs of partial pooling: 0/1 rewards whose probabilities differ by cell.

In cell c arm i pays with probability theta_ic ~ Beta(kappa mu, kappa (1 - mu)); (mu, kappa) of an
arm has a prior on a grid of nodes. After S successes in n plays of the arm in the cell a node
predicts (S + kappa mu)/(n + kappa); a reward multiplies the node's weight by what it predicted.
That is Bayes' rule, so nothing is refitted, and the order of the rewards does not matter.

A weight is ``mantissa * 10^(-200 scale)``: a node that the data all but exclude comes back if later
ones call for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.typing import Floats, Ints

__all__ = ["Pooling", "Told", "pooled_means"]

_LOW, _STEP = 1e-200, 1e200


class Pooling(NamedTuple):
    """What cells have in common, for each arm by itself.

    Attributes
    ----------
    mu : (k, M) array
        Nodes of the centre of an arm's probabilities.
    kappa : (K,) array
        Nodes of how alike they are in different cells, in plays.
    mantissa : (k, M, K) array
        Weights given what is known, which sum to 1 for each arm.
    scale : (k, M, K) array of int32
        Powers of 1e-200 that they lack.
    """

    mu: Floats
    kappa: Floats
    mantissa: Floats
    scale: NDArray[np.int32]

    @classmethod
    def start(cls, mu: Floats, kappa: Floats, first: Floats) -> Pooling:
        """Return the prior, from the weights of the centres, (k, M); those of kappa are equal."""
        shape = (*mu.shape, len(kappa))
        even = np.broadcast_to((first / first.sum(axis=1, keepdims=True))[:, :, None], shape)
        return cls(mu, kappa, even / len(kappa), np.zeros(shape, np.int32))

    @property
    def weights(self) -> Floats:
        """Probabilities of the nodes, (k, M, K)."""
        return np.where(self.scale == 0, self.mantissa, 0.0)


class Told(NamedTuple):
    """Rewards in the order in which they become known.

    Attributes
    ----------
    at : (n,) array of int
        First round that may use it.
    cell, arm : (n,) array of int32
    reward : (n,) array
        0 or 1.
    """

    at: Ints
    cell: NDArray[np.int32]
    arm: NDArray[np.int32]
    reward: Floats


@compiled()
def _learn(mu, kappa, mantissa, scale, won, seen, reward, mass, centre):  # type: ignore[no-untyped-def]
    """Multiply the weights of one arm by what its nodes predicted; sum them over the centres."""
    total = 0.0
    for j in range(mu.shape[0]):
        for g in range(kappa.shape[0]):
            p = (won + kappa[g] * mu[j]) / (seen + kappa[g])
            if reward == 0.0:
                p = (seen - won + kappa[g] * (1.0 - mu[j])) / (seen + kappa[g])
            mantissa[j, g] *= p
            if scale[j, g] == 0:
                total += mantissa[j, g]
    mass[:] = 0.0
    centre[:] = 0.0
    for j in range(mu.shape[0]):
        for g in range(kappa.shape[0]):
            w = mantissa[j, g] / total
            if w < _LOW and w > 0.0:
                w *= _STEP
                scale[j, g] += 1
            elif w > 1.0 and scale[j, g] > 0:
                w *= _LOW
                scale[j, g] -= 1
            mantissa[j, g] = w
            if scale[j, g] == 0:
                mass[g] += w
                centre[g] += w * mu[j]


@compiled()
def _run(cell, told, pooling, won, seen, last, means, changed, end):  # type: ignore[no-untyped-def]
    at, told_cell, told_arm, told_reward = told
    mu, kappa, mantissa, scale = pooling
    k, n = mu.shape[0], cell.shape[0]
    mass, centre = np.zeros((k, kappa.shape[0])), np.zeros((k, kappa.shape[0]))
    for i in range(k):
        for j in range(mu.shape[1]):
            for g in range(kappa.shape[0]):
                if scale[i, j, g] == 0:
                    mass[i, g] += mantissa[i, j, g]
                    centre[i, g] += mantissa[i, j, g] * mu[i, j]
    done = 0
    for t in range(n + 1):
        due = t if t < n else end
        while done < at.shape[0] and at[done] <= due:
            c, i = told_cell[done], told_arm[done]
            _learn(mu[i], kappa, mantissa[i], scale[i], won[c, i], seen[c, i], told_reward[done],
                   mass[i], centre[i])  # fmt: skip
            won[c, i] += told_reward[done]
            seen[c, i] += 1.0
            done += 1
        if t == n:
            break
        c = cell[t]
        changed[t] = done > last[c]
        last[c] = done
        if means.shape[0] == 0:
            continue
        for i in range(k):
            m, all_ = 0.0, 0.0
            for g in range(kappa.shape[0]):
                m += (won[c, i] * mass[i, g] + kappa[g] * centre[i, g]) / (seen[c, i] + kappa[g])
                all_ += mass[i, g]
            means[t, i] = m / all_
    return done


def pooled_means(
    cell: NDArray[np.int32],
    told: Told,
    pooling: Pooling,
    counts: Floats,
    changed: NDArray[np.bool_],
    *,
    means: bool = True,
    everything: bool = False,
) -> tuple[Floats, NDArray[np.bool_], Pooling, NDArray[np.bool_]]:
    """Return what is expected of every arm before each round, and what is believed at the end.

    Parameters
    ----------
    cell : (T,) array of int32
        Of each round, 0..C-1.
    told : Told
        Rewards; what the next part's first round may use (``at`` up to T) is learned at the end.
    pooling : Pooling
        Before the first round.
    counts : (2, C, k) array
        Successes and plays known by then.
    changed : (C,) array of bool
        Whether beliefs in a cell differ from those before its last round.
    means : bool
        Whether expectations are asked for.
    everything : bool
        Learn all rewards at the end, whenever they are known.

    Returns
    -------
    means : (T, k) array
    moved : (T,) array of bool
        Whether beliefs differ from those before the last round of the same cell.
    pooling : Pooling
        After the last round.
    changed : (C,) array of bool
        As before the first round, of the next part.

    Examples
    --------
    >>> grid = Pooling.start(np.array([[0.25, 0.75]]), np.array([2.0]), np.array([[0.5, 0.5]]))
    >>> one = np.zeros(1, np.int32)
    >>> told = Told(np.array([1]), one, one, np.array([1.0]))
    >>> cells = np.array([0, 0, 1], np.int32)
    >>> fresh = np.ones(2, bool)
    >>> pooled_means(cells, told, grid, np.zeros((2, 2, 1)), fresh)[0].ravel().round(4)
    array([0.5  , 0.75 , 0.625])
    """
    n = len(cell)
    found = np.empty((n if means else 0, len(pooling.mu)))
    moved = np.zeros(n, bool)
    last = np.where(changed, -1, 0)
    own = pooling._replace(mantissa=pooling.mantissa.copy(), scale=pooling.scale.copy())
    won, seen = np.ascontiguousarray(counts, dtype=np.float64).copy()
    end = np.iinfo(np.int64).max if everything else n
    done = _run(cell, tuple(told), tuple(own), won, seen, last, found, moved, end)
    return found, moved, own, last < done
