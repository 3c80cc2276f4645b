r"""What the objective audit needs of the logged propensities, in one pass, whatever the truth.

* ``pair_maxima``: :math:`G_{ij} = \max_t |\pi_t(i) - \pi_t(j)|`.
* ``Shortfall``: per arm, :math:`g_i(p) = \sum_t \max(p - \pi_t(i), 0)`, convex and piecewise linear
  in p, so that the fairness regret under any fixed truth is :math:`\sum_i g_i(P^*(i))`. Exact from
  sorted values, or from a histogram that keeps the count and the sum of every bin, which brackets
  the bin containing p from both sides.

Both merge: the maxima by max, the histograms by addition. Cost: rounds + draws, never the product.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.divergences import decision_divergence_maxima
from bayesfair.kernels.team import Team

__all__ = [
    "Histogram",
    "divergence_maxima",
    "exact_shortfall",
    "pair_maxima",
    "pair_maxima_into",
    "smallest_allowance",
]

_LONG = 100_000  # rows from which threads pay
_PARTS = 4
_ROWS = 8192
_TILE = 8  # arms: their probabilities in a round share a line of the cache
_MOST_CELLS = 1 << 22  # arms times bins: 64 MB
_FAST = {"reassoc", "contract", "nsz"}  # never nnan: NaN means "not on offer"


@compiled(fastmath=_FAST)
def pair_maxima_into(pi, block, out):  # type: ignore[no-untyped-def]
    """Raise ``out`` (k, k), above its diagonal, to the largest differences; see `pair_maxima`."""
    n_rounds, k = pi.shape
    column, high, low = np.empty((k, block)), np.empty(k), np.empty(k)
    for start in range(0, n_rounds, block):
        size = min(block, n_rounds - start)
        # a comparison with NaN is false: a pair not on offer does not count
        high[:], low[:] = -np.inf, np.inf
        for t in range(size):
            for i in range(k):
                p = pi[start + t, i]
                column[i, t] = p
                high[i] = p if p > high[i] else high[i]
                low[i] = p if p < low[i] else low[i]
        for i in range(k):
            for j in range(i + 1, k):
                # records are rare: whether there is one takes a fraction of finding it
                best = out[i, j]
                if max(high[i] - low[j], high[j] - low[i]) <= best:
                    continue
                above = 0
                for t in range(size):
                    above += abs(column[i, t] - column[j, t]) > best
                if above == 0:
                    continue
                for t in range(size):
                    d = abs(column[i, t] - column[j, t])
                    best = d if d > best else best
                out[i, j] = best


@compiled()
def _fill_histogram(items, pi, count, total):  # type: ignore[no-untyped-def]
    """Bin the values of some arms in some rounds; an item is a part of the rounds of a tile."""
    n_parts, k, n_bins = count.shape
    for item in items:
        first, part = item // n_parts * _TILE, item % n_parts
        for t in range(len(pi) * part // n_parts, len(pi) * (part + 1) // n_parts):
            for i in range(first, min(first + _TILE, k)):
                p = pi[t, i]
                if not np.isnan(p):
                    b = min(int(p * n_bins), n_bins - 1)
                    count[part, i, b] += 1.0
                    total[part, i, b] += p


def pair_maxima(pi: NDArray[np.float64], threads: int = 1) -> NDArray[np.float64]:
    """Return G, the largest |pi_t(i) - pi_t(j)| over rounds; NaN rows do not count.

    Parameters
    ----------
    pi : (T, k) array
        Selection probabilities; NaN = not on offer.
    threads : int
        Rounds are shared among so many; the numbers do not depend on it.

    Returns
    -------
    (k, k) array
        Symmetric, zero diagonal; -inf where two arms were never on offer together.
    """
    k = pi.shape[1]
    rows, n_blocks = np.ascontiguousarray(pi), -(-len(pi) // _ROWS)
    found = [np.full((k, k), -np.inf)]

    def run(which: NDArray[np.int64]) -> None:
        # blocks that come one after the other are one piece: fewer records
        mine = np.full((k, k), -np.inf)
        pair_maxima_into(rows[which[0] * _ROWS : (which[-1] + 1) * _ROWS], 128, mine)
        found.append(mine)

    with Team(max(1, min(threads, n_blocks))) as team:
        team.share(run, n_blocks)
    out = functools.reduce(np.maximum, found)
    out = np.maximum(out, out.T)
    np.fill_diagonal(out, 0.0)
    return np.asarray(out)


@compiled()
def _fall_short(values, asked, order, out):  # type: ignore[no-untyped-def]
    """Write sum max(p - value, 0) of ascending ``values`` for every p ``asked``, in ``order``."""
    n, below = 0, 0.0
    for s in order:
        p = asked[s]
        while n < values.shape[0] and values[n] <= p:  # NaN comes last
            below += values[n]
            n += 1
        out[s] = n * p - below


def exact_shortfall(
    pi: NDArray[np.float64], p: NDArray[np.float64], threads: int = 1
) -> NDArray[np.float64]:
    """Return sum over arms of g_i(p_i) for ``p`` (..., k), from the sorted columns of ``pi``.

    Parameters
    ----------
    pi : (T, k) array
        Selection probabilities; NaN entries are left out.
    p : (..., k) array
    threads : int
        Arms are shared among so many; the numbers do not depend on it.
    """
    k = pi.shape[1]
    asked = np.ascontiguousarray(p.reshape(-1, k).T)
    terms = np.empty(asked.shape)

    def run(which: NDArray[np.int64]) -> None:
        for i in which:
            _fall_short(np.sort(pi[:, i]), asked[i], np.argsort(asked[i]), terms[i])

    with Team(max(1, min(threads, k if len(pi) * k > _LONG else 1))) as team:
        team.share(run, k)
    total = np.zeros(asked.shape[1])
    for term in terms:
        total += term
    return total.reshape(p.shape[:-1])


def n_bins(k: int) -> int:
    """Return how many bins a probability of ``k`` arms has: what binning hides falls as 1/n^2."""
    return min(max(1 << (_MOST_CELLS // k).bit_length() - 1, 1 << 13), 1 << 15)


def _fill(sums: NDArray[np.float64], pi: NDArray[np.float64], threads: int) -> None:
    """Bin ``pi`` (T, k) into ``sums`` (2, parts, k, bins)."""
    rows = np.ascontiguousarray(pi)
    n_items = sums.shape[1] * -(-pi.shape[1] // _TILE)
    with Team(max(1, min(threads, n_items))) as team:
        team.share(lambda which: _fill_histogram(which, rows, *sums), n_items)


class Histogram(NamedTuple):
    """Count and sum of the values in each of `n_bins` equal bins of [0, 1], per arm."""

    counts: NDArray[np.float64]
    total: NDArray[np.float64]

    @classmethod
    def of(cls, pi: NDArray[np.float64], threads: int = 1) -> Histogram:
        """Bin the columns of ``pi`` (T, k); NaN entries are left out."""
        k = pi.shape[1]
        # as many parts whatever the threads: sums are then added in the same order
        n_parts = max(1, _PARTS // -(-k // _TILE)) if len(pi) > _LONG else 1
        sums = np.zeros((2, n_parts, k, n_bins(k)))
        _fill(sums, pi, threads)
        return cls(*sums.sum(axis=1)) if n_parts > 1 else cls(*sums[:, 0])

    def filled(self, pi: NDArray[np.float64], threads: int = 1) -> Histogram:
        """Return the histogram with the columns of ``pi`` (T, k) added: cheaper than two merged."""
        sums = np.array([[self.counts], [self.total]])
        _fill(sums, pi, threads)
        return Histogram(*sums[:, 0])

    def merged(self, other: Histogram) -> Histogram:
        """Return the histogram of both parts; of two resolutions, in the coarser one."""
        n = min(self.counts.shape[1], other.counts.shape[1])
        return Histogram(*(
            a.reshape(len(a), n, -1).sum(axis=2) + b.reshape(len(b), n, -1).sum(axis=2)
            for a, b in zip(self, other, strict=True)
        ))  # fmt: skip

    def shortfall(self, p: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return sum over arms of g_i(p_i) for ``p`` (..., k), and a bound on its error.

        In p's own bin only the count n and the mean are known. By convexity the bin adds at least
        max(n p - sum, 0), and at most what mass at the bin's two ends with that mean would add.
        The midpoint is returned; the bound is the largest half-width over ``p``.
        """
        k, n_bins = self.counts.shape
        n_below = np.concatenate([np.zeros((k, 1)), np.cumsum(self.counts, axis=1)], axis=1)
        s_below = np.concatenate([np.zeros((k, 1)), np.cumsum(self.total, axis=1)], axis=1)
        bin_of = np.clip((p * n_bins).astype(np.int64), 0, n_bins - 1)
        arm = np.arange(k)
        n, s = self.counts[arm, bin_of], self.total[arm, bin_of]
        low_edge = bin_of / n_bins
        inner = np.maximum(n * p - s, 0.0)
        outer = np.maximum((n * (low_edge + 1 / n_bins) - s) * n_bins * (p - low_edge), inner)
        base = n_below[arm, bin_of] * p - s_below[arm, bin_of]
        value = (base + 0.5 * (inner + outer)).sum(axis=-1)
        error = 0.5 * (outer - inner).sum(axis=-1)
        return value, float(error.max()) if error.size else math.nan


def divergence_maxima(pi: NDArray[np.float64], name: str, threads: int = 1) -> NDArray[np.float64]:
    """Return max_t D(pi_t(i) || pi_t(j)) for any divergence between two-outcome laws.

    Parameters
    ----------
    pi : (T, k) array
        Selection probabilities; NaN = not on offer.
    name : str
        One of `bayesfair.kernels.laws.divergences.DIVERGENCES`.

    Returns
    -------
    (k, k) array
        First arm against second; -inf where two arms were never on offer together, may hold inf.
    """
    if name in ("total_variation", "wasserstein"):
        return pair_maxima(pi, threads)  # both are |p - q| between two-outcome laws
    return decision_divergence_maxima(pi, name)


@compiled()
def _raise_to(row, g, r, grid):  # type: ignore[no-untyped-def]
    for e in range(grid.shape[0]):
        if grid[e] == 0.0:  # 0 times infinity is 0: the rewards do not count
            row[e] = max(row[e], g)
        elif not np.isinf(r):  # an infinite right-hand side frees the pair
            row[e] = max(row[e], g - grid[e] * r)


@compiled()
def _allowances(first, second, g, divergence, grid, out):  # type: ignore[no-untyped-def]
    last = grid.shape[0] - 1
    for d in range(divergence.shape[0]):
        for p in range(g.shape[0]):
            # pairs come by falling g; the row falls along the grid: none below can matter any more
            if g[p] <= out[d, last]:
                break
            _raise_to(out[d], g[p], divergence[d, first[p], second[p]], grid)


@compiled()
def _allowances_of_means(first, second, g, mean, grid, out):  # type: ignore[no-untyped-def]
    last = grid.shape[0] - 1
    for d in range(mean.shape[0]):
        for p in range(g.shape[0]):
            if g[p] <= out[d, last]:
                break
            _raise_to(out[d], g[p], abs(mean[d, first[p]] - mean[d, second[p]]), grid)


def _pairs(maxima: NDArray[np.float64], *, ordered: bool) -> tuple[NDArray[Any], ...]:
    """Return the pairs that differ at all, the largest difference first, and the differences."""
    off = maxima > 0
    if not ordered:
        off = np.triu(off, 1)
    np.fill_diagonal(off, False)
    first, second = np.nonzero(off)
    g = maxima[first, second]
    order = np.argsort(-g, kind="stable")
    return first[order], second[order], g[order]


def smallest_allowance(
    maxima: NDArray[np.float64], divergence: NDArray[np.float64], grid: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return :math:`\max_{ij}(G_{ij} - \epsilon_1 D_{ij})`, cut at 0.

    Parameters
    ----------
    maxima : (k, k) array
        G, largest divergence of decisions over rounds; -inf = never on offer together.
    divergence : (draw, k, k) array, or (draw, k) array
        D between the rewards, may hold inf; or means whose differences it is (Bernoulli rewards
        under total variation or Wasserstein distance; `maxima` symmetric).
    grid : (E,) array
        Values of eps1, ascending.

    Returns
    -------
    (draw, E) array
    """
    out = np.zeros((divergence.shape[0], grid.shape[0]))
    kernel = _allowances if divergence.ndim == 3 else _allowances_of_means
    ordered = divergence.ndim == 3  # D(r_i || r_j) and D(r_j || r_i) may differ
    kernel(*_pairs(maxima, ordered=ordered), np.ascontiguousarray(divergence), grid, out)
    return out
