"""Who is linked to whom by comparisons, and whether a maximum-likelihood fit exists."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Components", "components", "ranking_edges", "ranking_matrices", "recession_direction"]


class Components(NamedTuple):
    """Components of a comparison graph; labels are 0-based, (k,) each."""

    weak: NDArray[np.int32]
    weak_without_ties: NDArray[np.int32]
    strong: NDArray[np.int32]
    never_lose: NDArray[np.bool_]
    never_win: NDArray[np.bool_]
    no_data: NDArray[np.bool_]


def _by_size(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Renumber components: the largest first, equal sizes in order of their first member."""
    _, first, inverse, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(counts), np.int32)
    rank[np.lexsort((first, -counts))] = np.arange(len(counts), dtype=np.int32)
    return rank[inverse]


def components(
    n_items: int,
    winner: NDArray[np.int32],
    loser: NDArray[np.int32],
    tied: NDArray[np.int32],
    tied_other: NDArray[np.int32],
) -> Components:
    """Return weak and strong components of the graph with an edge from winner to loser.

    Parameters
    ----------
    n_items : int
        Number of items, k.
    winner, loser : (E,) arrays of int
        Edges; repeats do no harm.
    tied, tied_other : (F,) arrays of int
        Pairs that tied: an edge both ways.

    Returns
    -------
    Components
        `never_lose` and `never_win` concern items with data, ties apart: an item that only tied is
        in both. Components are numbered by size, the largest 0.

    Notes
    -----
    The Bradley-Terry and Plackett-Luce maximum-likelihood estimate exists iff there is one strong
    component (Ford 1957; Hunter 2004).

    Examples
    --------
    >>> e = np.array([], dtype=np.int32)
    >>> parts = components(3, np.array([0, 1, 0]), np.array([1, 0, 2]), e, e)
    >>> parts.strong, parts.never_win
    (array([0, 0, 1], dtype=int32), array([False, False,  True]))
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    def parts(a: NDArray[np.int32], b: NDArray[np.int32], how: str) -> NDArray[np.int32]:
        edges = csr_array((np.ones(len(a)), (a, b)), shape=(n_items, n_items))
        return _by_size(connected_components(edges, directed=True, connection=how)[1])

    up = np.concatenate([winner, tied, tied_other])
    down = np.concatenate([loser, tied_other, tied])
    seen = np.zeros(n_items, bool)
    seen[up] = seen[down] = True
    wins, losses = np.zeros(n_items, bool), np.zeros(n_items, bool)
    wins[winner] = losses[loser] = True
    return Components(
        weak=parts(up, down, "weak"),
        weak_without_ties=parts(winner, loser, "weak"),
        strong=parts(up, down, "strong"),
        never_lose=seen & ~losses,
        never_win=seen & ~wins,
        no_data=~seen,
    )


def ranking_edges(
    item: NDArray[np.int32], level: NDArray[np.int32], start: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return (winner, loser, tied, tied_other) of rankings: from each place to the next one only.

    The rest follows by transitivity. Arguments as in
    `bayesfair.kernels.orders.plackett_luce_stages.chains_of_rankings`.
    """
    cell = np.repeat(np.arange(len(start) - 1), np.diff(start))
    begins = np.ones(len(item), bool)  # a place begins here
    begins[1:] = (cell[1:] != cell[:-1]) | (level[1:] != level[:-1])
    first = np.flatnonzero(begins)
    bounds = np.append(first, len(item))
    upper = np.flatnonzero(cell[first[1:]] == cell[first[:-1]]) if len(first) else first
    winner, loser = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    size = np.diff(bounds)
    single = (size[upper] == 1) & (size[upper + 1] == 1) if upper.size else np.zeros(0, bool)
    winner.append(item[first[upper[single]]])
    loser.append(item[first[upper[single] + 1]])
    for place in upper[~single].tolist():
        above = item[bounds[place] : bounds[place + 1]]
        below = item[bounds[place + 1] : bounds[place + 2]]
        winner.append(np.repeat(above, len(below)))
        loser.append(np.tile(below, len(above)))
    tied = np.flatnonzero(~begins & (level >= 0))
    return np.concatenate(winner), np.concatenate(loser), item[tied - 1], item[tied]


def ranking_matrices(
    item: NDArray[np.int32],
    level: NDArray[np.int32],
    start: NDArray[np.int64],
    count: NDArray[np.float64],
    n_items: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how often item i came before item j, and how often they shared a place, ``(k, k)``."""
    won, tied = np.zeros((n_items, n_items)), np.zeros((n_items, n_items))
    place = np.where(level < 0, np.int32(2**31 - 1), level)  # the unordered rest is last
    for u, n in enumerate(count):
        here = slice(start[u], start[u + 1])
        who = np.ix_(item[here], item[here])
        won[who] += n * (place[here, None] < place[None, here])
        tied[who] += n * ((place[here, None] == place[None, here]) & (level[here, None] >= 0))
    np.fill_diagonal(tied, 0.0)
    return won, tied


def recession_direction(
    constraints: Any, equalities: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return a direction along which a log-likelihood never falls, or None if there is none.

    Parameters
    ----------
    constraints : (m, p) array, sparse or not
        Rows g with g d >= 0 for every direction d of recession; the log-likelihood rises strictly
        where some g d > 0.
    equalities : (e, p) array
        Rows that every considered direction must annul (the gauge: log-worths sum to zero).

    Returns
    -------
    (p,) array or None
        A direction with entries in [-1, 1] that has the largest total slack; None if only 0 is
        left, in which case the maximum-likelihood estimate exists.

    Notes
    -----
    One linear program. Separation in the sense of Albert and Anderson (1984): the estimate is
    finite iff no such direction exists. A direction with g d = 0 everywhere is a contrast that the
    data do not identify; such a one is returned first.

    Examples
    --------
    >>> recession_direction(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.ones((1, 2))) is None
    True
    >>> recession_direction(np.array([[1.0, -1.0]]), np.ones((1, 2)))
    array([ 1., -1.])
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    constraints = csr_array(constraints)
    gram = (constraints.T @ constraints).toarray() + equalities.T @ equalities
    values, vectors = np.linalg.eigh(gram)
    if values[0] < 1e-10 * max(values[-1], 1.0):  # a contrast that nothing identifies
        direction = vectors[:, 0]
        unit: NDArray[np.float64] = direction / np.abs(direction).max()
        return unit
    result = linprog(
        -np.asarray(constraints.sum(axis=0)).ravel(),
        A_ub=-constraints,
        b_ub=np.zeros(constraints.shape[0]),
        A_eq=csr_array(equalities),
        b_eq=np.zeros(len(equalities)),
        bounds=[(-1, 1)] * constraints.shape[1],
        method="highs",
    )
    if result.status != 0 or -result.fun <= 1e-7:
        return None
    found: NDArray[np.float64] = np.round(result.x, 9)
    return found
