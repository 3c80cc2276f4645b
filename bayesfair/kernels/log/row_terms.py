"""Sums over the terms of rounds: regret and weights by segment, surprise by window of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.log.guards import WINDOW
from bayesfair.kernels.log.rows import fixed
from bayesfair.kernels.team import Team
from bayesfair.typing import Floats, Ints

__all__ = ["term_sums", "terms_into", "window_surprises"]


_BLOCK = 8192


@compiled()
def _products(p, starts, width, product, surprise):  # type: ignore[no-untyped-def]
    """Write products of probabilities in a row; of very small ones -ln of a part of them."""
    for w in range(starts.shape[0]):
        one, two, three, four = 1.0, 1.0, 1.0, 1.0  # side by side: none waits for the others
        for t in range(starts[w], starts[w] + width, 4):
            one, two = one * p[t], two * p[t + 1]
            three, four = three * p[t + 2], four * p[t + 3]
        product[w], surprise[w] = (one * two) * (three * four), 0.0
        if product[w] < 1e-290:  # a product of many small numbers would vanish
            product[w] = 1.0
            for t in range(starts[w], starts[w] + width):
                surprise[w] -= np.log(p[t])


def window_surprises(p: Floats, starts: Ints) -> Floats:
    """Return -ln of the product of `WINDOW` probabilities in a row, for windows from ``starts``."""
    product, surprise = np.empty((2, len(starts)))
    _products(fixed(np.ascontiguousarray(p)), starts, WINDOW, product, surprise)
    return surprise - np.log(product)


@compiled()
def _terms(segments, stride, arm, terms, best, p, sums, plays):  # type: ignore[no-untyped-def]
    """Sum up the terms of segments of rounds: number, squares and largest, and who was chosen."""
    has_terms, has_best = terms.shape[0] > 0, p.shape[0] > 0
    for g in segments:
        total, squares, largest = 0.0, 0.0, -np.inf
        weight, weight_squares, weight_largest = 0.0, 0.0, -np.inf
        for t in range(g * stride, min(g * stride + stride, arm.shape[0])):
            plays[g, arm[t]] += 1
            x = 0.0
            if has_best:
                w = best[t] / p[t]
                weight += w
                weight_squares += w * w
                weight_largest = w if w > weight_largest else weight_largest
                x = 1.0 - w if w < 1.0 else 0.0
            if has_terms:
                x = terms[t]
            total += x
            squares += x * x
            largest = x if x > largest else largest
        sums[g, 0], sums[g, 1], sums[g, 2] = total, squares, largest
        sums[g, 3], sums[g, 4], sums[g, 5] = weight, weight_squares, weight_largest


@compiled()
def terms_into(codes, terms, sums):  # type: ignore[no-untyped-def]
    """Add terms to the sums of their code, (C, 3): sum, sum of squares, the largest."""
    for t in range(terms.shape[0]):
        c, x = np.uint32(codes[t]), terms[t]
        sums[c, 0] += x
        sums[c, 1] += x * x
        sums[c, 2] = x if x > sums[c, 2] else sums[c, 2]


def term_sums(
    arm: NDArray[np.int32], terms: Floats, best: Floats, p: Floats, k: int, stride: int,
    threads: int = 1,
) -> tuple[Floats, Ints]:  # fmt: skip
    """Sum up the terms of the fairness regret, and weights, over segments of ``stride`` rounds.

    Parameters
    ----------
    arm : (T,) array of int32
    terms : (T,) array
        Regret of each round; empty: its unbiased terms max(1 - P*_a/p, 0).
    best, p : (T,) array
        P* and the logged probability of the chosen arm; `p` is empty where none was logged.
    k, stride, threads : int

    Returns
    -------
    sums : (segment, 6) array
        Sum, sum of squares and largest of the terms; the same of the weights P*_a/p.
    plays : (segment, k) array of int
    """
    n = -(-len(arm) // stride)
    sums, plays = np.zeros((n, 6)), np.zeros((n, k), np.int64)

    def run(which: Ints) -> None:
        _terms(which, stride, fixed(arm), fixed(terms), fixed(best), fixed(p), sums, plays)

    with Team(max(1, min(threads, len(arm) // _BLOCK))) as team:
        team.share(run, n)
    return sums, plays
