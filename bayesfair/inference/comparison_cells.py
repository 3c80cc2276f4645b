"""Log-likelihoods of single comparisons under the draws of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.base.checks import listed
from bayesfair.comparisons import Comparisons
from bayesfair.comparisons.fitted_data import fitted_data
from bayesfair.errors import DataError, OptionError
from bayesfair.kernels.orders.plackett_luce import log_likelihood_draws
from bayesfair.kernels.orders.plackett_luce_stages import chains_of_rankings
from bayesfair.typing import Floats

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["cell_columns", "used_cells", "whole_counts"]


def used_cells(tree: xr.DataTree, comparisons: Comparisons) -> NDArray[np.int64]:
    """Return the cells that the fit used: without "both bad" and, if so fitted, without ties.

    Raises
    ------
    OptionError
        If the fit is of other data or of your own model, or counted ties as half wins: half a win
        has no probability.
    """
    fitted_data(tree, comparisons)
    attrs = tree.attrs
    known = ("plackett_luce", "bradley_terry", "davidson", "thurstone")
    if attrs["model"] not in known:
        raise OptionError(
            f"the likelihood of one comparison is known for {listed(known)}, not for "
            f"{attrs['model']!r}."
        )
    if comparisons.kind != "duels":
        return np.arange(len(comparisons.count))
    if attrs["ties"] == "half":
        raise OptionError(
            "ties were counted as half a win each, which is no probability of an outcome. Use "
            "model='davidson', or ties='drop'."
        )
    dropped = (3,) if attrs["ties"] == "model" else (2, 3)
    return np.flatnonzero(~np.isin(comparisons.outcome, dropped))


def cell_columns(
    tree: xr.DataTree, comparisons: Comparisons, cells: NDArray[np.int64]
) -> Iterator[Floats]:
    """Yield the log-likelihood of one comparison of each cell under each draw, ``(n,)`` each."""
    group = tree["posterior"].to_dataset()
    found = group["log_worth"].sel(item=list(comparisons.items))
    log_worth = found.transpose("chain", "draw", "item").values.reshape(-1, comparisons.n_items)

    def draws(name: str) -> Floats | float:
        return np.ravel(group[name].transpose("chain", "draw").values) if name in group else 0.0

    edge = draws("order_effect")
    log_tie = draws("log_tie") if "log_tie" in group else None
    model = str(tree.attrs["model"])
    if comparisons.kind != "duels":
        for u in cells.tolist():
            part = slice(comparisons.start[u], comparisons.start[u + 1])
            ends = np.array([0, part.stop - part.start], dtype=np.int64)
            chains = chains_of_rankings(
                comparisons.item[part], comparisons.level[part], ends, np.ones(1),
                comparisons.n_items,
            )  # fmt: skip
            yield log_likelihood_draws(chains, log_worth)
        return
    for u in cells.tolist():
        gap = log_worth[:, comparisons.left[u]] - log_worth[:, comparisons.right[u]]
        if comparisons.first[u]:
            gap = gap + comparisons.first[u] * edge
        outcome = int(comparisons.outcome[u])
        if outcome == 1:
            gap = -gap
        if model == "thurstone":
            yield special.log_ndtr(gap)
        elif log_tie is None:
            yield -np.logaddexp(0.0, -gap)
        else:
            total = np.logaddexp(np.logaddexp(gap / 2, -gap / 2), log_tie)
            yield (log_tie if outcome == 2 else gap / 2) - total


def whole_counts(tree: xr.DataTree, comparisons: Comparisons) -> tuple[NDArray[np.int64], Floats]:
    """Return the cells that the fit used, and how many single comparisons each stands for.

    Raises
    ------
    OptionError
        Without draws; for other data, models of your own, ties as half wins.
    DataError
        If counts are not whole numbers, so that single comparisons cannot be told.
    """
    if "posterior" not in tree.children:
        raise OptionError("a maximum-likelihood fit has no draws; give fit a finite prior_sd.")
    cells = used_cells(tree, comparisons)
    count = comparisons.count[cells]
    if not np.array_equal(count, np.round(count)):
        raise DataError("weights are not whole numbers, so single comparisons cannot be left out.")
    return cells, count
