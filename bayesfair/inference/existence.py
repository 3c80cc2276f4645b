"""Whether a maximum-likelihood estimate exists, and which items are in its way if not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import listed
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError
from bayesfair.inference.comparison_likelihood import DuelLikelihood, Layout, Likelihood
from bayesfair.kernels.orders.duels import DuelCounts
from bayesfair.kernels.orders.graph import components, recession_direction

__all__ = ["require_maximum"]

_REMEDY = (
    "Give a finite prior, such as the default prior_sd=1, which fits any data, or leave out what "
    "names these items (in Python: Comparisons.without)."
)


def require_maximum(
    comparisons: Comparisons, likelihood: Likelihood, *, ties_left_out: float = 0.0
) -> None:
    """Raise unless the log-likelihood has a finite, unique maximum.

    Parameters
    ----------
    comparisons : Comparisons
        The data that enter the likelihood, without ties that were dropped.
    likelihood : Likelihood
    ties_left_out : float
        How many were dropped, for the message.

    Raises
    ------
    DataError
        Naming the items, and why their worths run off to zero or infinity.

    Notes
    -----
    Without further parameters the estimate exists iff wins link all items in both directions. With
    an order effect or a tie parameter that is necessary only; a linear program then looks for a
    direction along which the likelihood never falls.
    """
    found = comparisons.connectivity()
    if not found.mle_exists:
        reasons = []
        if found.no_data:
            were = "was" if len(found.no_data) == 1 else "were"
            tied = " in a duel that was no tie" if ties_left_out else ""
            reasons.append(f"{listed(found.no_data)} {were} never compared{tied}")
        main = found.strong_components[0] if found.strong_components else ()
        apart = _apart(comparisons, found.island, main) if main else {}
        for text, names in apart.items():
            if names:
                reasons.append(f"{listed(names)} {text}")
        left_out = (
            f"{ties_left_out:.12g} {'tie was' if ties_left_out == 1 else 'ties were'} left out"
        )
        without = f" ({left_out} on request)" if ties_left_out else ""
        raise DataError(
            f"no maximum-likelihood estimate exists{without}: {'; '.join(reasons)}. {_REMEDY}",
            kind="no_maximum",
            source=comparisons.source,
        )
    layout = likelihood.layout
    if not (isinstance(likelihood, DuelLikelihood) and (layout.order or layout.tie)):
        return
    cells = likelihood.cells
    if layout.tie and not layout.order and cells.ties.any() and _wins_link_all(cells, layout):
        return  # a cycle of wins holds all worths together, a tie and a win the tie parameter
    gauge = np.zeros((1, layout.size))
    gauge[0, : layout.n_items] = 1.0
    direction = recession_direction(likelihood.recession_rows(), gauge)
    if direction is None:
        return
    moved = np.flatnonzero(np.abs(direction[: layout.n_items]) > 1e-6)
    named = [comparisons.items[i] for i in moved]
    what = [f"the log-worths of {listed(named)}"] if named else []
    if layout.order and abs(direction[layout.order_at]) > 1e-6:
        what.append("the order effect")
    if layout.tie and abs(direction[-1]) > 1e-6:
        what.append("the tie parameter")
    raise DataError(
        f"no maximum-likelihood estimate exists: the data let {' and '.join(what)} run off "
        "without bound, at no loss of likelihood (pairs in one presentation only, or outcomes "
        f"that a threshold predicts perfectly). {_REMEDY}",
        kind="no_maximum",
        source=comparisons.source,
    )


def _wins_link_all(cells: DuelCounts, layout: Layout) -> bool:
    """Whether wins alone, without ties, link all items in both directions."""
    a, b = cells.left, cells.right
    up, down = cells.wins_left > 0, cells.wins_right > 0
    none = np.zeros(0, np.int32)
    won = np.concatenate([a[up], b[down]])
    lost = np.concatenate([b[up], a[down]])
    return bool((components(layout.n_items, won, lost, none, none).strong == 0).all())


def _apart(
    comparisons: Comparisons, island: NDArray[np.int32], main: tuple[str, ...]
) -> dict[str, list[str]]:
    """Sort the items outside the main group by how they relate to it."""
    position = {item: i for i, item in enumerate(comparisons.items)}
    inside = np.zeros(comparisons.n_items, bool)
    inside[[position[item] for item in main]] = True
    win = (comparisons.win_matrix() + comparisons.tie_matrix()) > 0
    below = _reached(win, inside)
    above = _reached(win.T, inside)
    group = f"the {len(main)} items around {main[0]!r}" if len(main) > 1 else repr(main[0])
    lost = f"only ever lost to {group}, directly or through others"
    won = f"only ever beat {group}, directly or through others"
    linked = f"beat no one and lost to no one that links them to {group} in both directions"
    none = f"share no comparison with {group}"
    result: dict[str, list[str]] = {lost: [], won: [], linked: [], none: []}
    home = island[position[main[0]]]
    for i in np.flatnonzero(~inside & (island >= 0)).tolist():
        reason = lost if below[i] else won if above[i] else linked
        result[none if island[i] != home else reason].append(comparisons.items[i])
    return result


def _reached(edge: NDArray[np.bool_], start: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the nodes that a directed path reaches from `start`."""
    reached = start.copy()
    front = start.copy()
    while front.any():
        fresh = edge[front].any(axis=0) & ~reached
        reached |= fresh
        front = fresh
    return reached
