"""Replicated comparisons under a fit, for checks of how well it describes the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.progress import steps
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError
from bayesfair.ranking.draws import fitted
from bayesfair.ranking.probability import outcome_probability
from bayesfair.typing import Floats

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["observed_wins", "replicated_wins"]


_MOST = 1e8  # places of rankings that fit into memory


def observed_wins(comparisons: Comparisons) -> Floats:
    """Return how often i came before j, half a win each for a tie, ``(k, k)``."""
    return comparisons.win_matrix() + comparisons.tie_matrix() / 2


def replicated_wins(
    tree: xr.DataTree, comparisons: Comparisons, *, replicates: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Yield matrices as `observed_wins` would find them in data drawn from the fit.

    The design stays: who was compared with whom, how often, who was shown first; in rankings also
    how many items shared a place or were left unranked; where ties were fitted as half wins, how
    many duels of each pair were tied. Draws of the posterior are used in turn; after maximum
    likelihood all replicates come from the estimate.

    Raises
    ------
    DataError
        If weights are no numbers of comparisons, so that there is nothing to replicate.
    """
    fit = fitted(tree)
    every, extra = fit.draws_or_estimate
    log_worth = every[:, [fit.items.index(item) for item in comparisons.items]]
    chosen = rng.integers(len(log_worth), size=replicates)
    told = steps("replicates", replicates)
    if comparisons.kind != "duels":
        _times(comparisons.count, comparisons.source)
        size = float(comparisons.count @ np.diff(comparisons.start))
        if size > _MOST:
            raise DataError(
                f"{comparisons.n_comparisons:.12g} {comparisons.kind} hold {size:.3g} places, too "
                f"many to draw again (up to {_MOST:g}). Check a part of them.",
                kind="too_large",
                value=size,
                source=comparisons.source,
            )
        for d in chosen:
            yield _ranked(comparisons, log_worth[d], rng)
            told.add()
        return
    half = str(tree.attrs.get("ties", "none")) == "half"
    cells = comparisons.duel_counts(ties="keep")
    total = _times(cells.total, comparisons.source)
    still = np.round(cells.ties).astype(np.int64) if half else np.zeros_like(total)
    k = comparisons.n_items
    for d in chosen:
        gap = log_worth[d, cells.left] - log_worth[d, cells.right]
        if "order_effect" in extra:
            gap = gap + cells.first * extra["order_effect"][d]
        tie = extra["log_tie"][d] if "log_tie" in extra else None
        win, tied = outcome_probability(fit.model, gap, tie)
        decided = total - still
        if half:  # the decided duels make up for the tied ones: the mean score stays
            win = np.clip((total * win - still / 2) / np.maximum(decided, 1), 0.0, 1.0)
        left = rng.binomial(decided, win)
        rest = decided - left
        ties = rng.binomial(rest, np.clip(tied / np.maximum(1 - win, 1e-300), 0.0, 1.0))
        shared = (ties + still) / 2
        table = np.zeros((k, k))
        np.add.at(table, (cells.left, cells.right), left + shared)
        np.add.at(table, (cells.right, cells.left), rest - ties + shared)
        yield table
        told.add()


def _times(count: Floats, source: str) -> NDArray[np.int64]:
    """Return counts as whole numbers, or refuse weights that count nothing."""
    times = np.round(count)
    if np.abs(count - times).max(initial=0.0) > 1e-6:
        raise DataError(
            "weights that are no whole numbers weigh comparisons and do not count them, so data "
            "like these cannot be drawn. Give weights that count, or none.",
            kind="fractional_weights",
            column="weight",
            source=source,
        )
    return times.astype(np.int64)


def _ranked(comparisons: Comparisons, log_worth: Floats, rng: np.random.Generator) -> Floats:
    """Draw one ranking for every observed one: Gumbel utilities, sorted; places as observed."""
    k = comparisons.n_items
    table = np.zeros((k, k))
    lengths = np.diff(comparisons.start)
    for m in np.unique(lengths).tolist():
        cells = np.flatnonzero(lengths == m)
        times = np.round(comparisons.count[cells]).astype(np.int64)
        at = comparisons.start[cells][:, None] + np.arange(m)
        item = np.repeat(comparisons.item[at], times, axis=0)
        level = np.repeat(comparisons.level[at], times, axis=0)
        utility = log_worth[item] + rng.gumbel(size=item.shape)
        order = np.argsort(-utility, axis=1)
        placed = np.take_along_axis(item, order, axis=1).astype(np.int64)
        level = np.where(level < 0, np.iinfo(np.int32).max, level)
        for a in range(m):
            for b in range(a + 1, m):
                half = np.where(level[:, a] == level[:, b], 0.5, 1.0)
                # the unordered rest shares no place: nothing is said of its order
                half[(level[:, a] == level[:, b]) & (level[:, a] == np.iinfo(np.int32).max)] = 0.0
                key = placed[:, a] * k + placed[:, b]
                back = placed[:, b] * k + placed[:, a]
                table += np.bincount(key, half, k * k).reshape(k, k)
                tied = half == 0.5
                if tied.any():
                    table += np.bincount(back[tied], half[tied], k * k).reshape(k, k)
    return table
