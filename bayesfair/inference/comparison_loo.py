"""Log-likelihoods of single comparisons, and how well a model predicts one that is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.checks import check_choice, listed
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError
from bayesfair.inference.carry import psis_weights
from bayesfair.inference.fitted_data import fitted_data
from bayesfair.kernels.plackett_luce import log_likelihood_draws
from bayesfair.kernels.plackett_luce_stages import chains_of_rankings

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["cell_columns", "compare_comparisons", "loo_comparisons", "used_cells"]

FloatArray = NDArray[np.float64]


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
) -> Iterator[FloatArray]:
    """Yield the log-likelihood of one comparison of each cell under each draw, ``(n,)`` each."""
    group = tree["posterior"].to_dataset()
    found = group["log_worth"].sel(item=list(comparisons.items))
    log_worth = found.transpose("chain", "draw", "item").values.reshape(-1, comparisons.n_items)

    def draws(name: str) -> FloatArray | float:
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


def loo_comparisons(tree: xr.DataTree, comparisons: Comparisons) -> Any:
    r"""Return the expected log predictive density of a left-out comparison (PSIS-LOO).

    Equal comparisons have equal terms: each unique cell is computed once and counted as often as it
    occurred. One comparison is left out at a time, never a whole cell.

    Parameters
    ----------
    tree : xarray.DataTree
        What `bayesfair.fit` returned, with draws.
    comparisons : Comparisons
        What was fitted.

    Returns
    -------
    arviz_stats.ELPDData
        ArviZ's own object, pointwise over comparisons, cell by cell: ``elpd`` and ``se`` in nats,
        ``p``, ``elpd_i``, ``pareto_k``. A ranking is one comparison.

    Raises
    ------
    OptionError
        Without draws; for other data, models of your own, ties as half wins.
    DataError
        If counts are not whole numbers, so that single comparisons cannot be told.

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> duels = Comparisons.from_counts(["a", "b"], ["b", "c"], [7, 6], [3, 4])
    >>> loo_comparisons(fit(duels, seed=1), duels).n_data_points
    20
    """
    import xarray as xr
    from arviz_stats.utils import ELPDDataLOO

    from bayesfair.inference.criticism import _relative_efficiency

    if "posterior" not in tree.children:
        raise OptionError("a maximum-likelihood fit has no draws; give fit a finite prior_sd.")
    cells = used_cells(tree, comparisons)
    count = comparisons.count[cells]
    if not np.array_equal(count, np.round(count)):
        raise DataError("weights are not whole numbers, so single comparisons cannot be left out.")
    efficiency = _relative_efficiency(tree)
    power = float(tree.attrs.get("power", 1.0))
    elpd, khat, in_sample = np.empty((3, len(cells)))
    n_draws = 0
    for c, column in enumerate(cell_columns(tree, comparisons, cells)):
        n_draws = len(column)
        weight, khat[c] = psis_weights(-power * column, efficiency)
        elpd[c] = special.logsumexp(column, b=weight)
        in_sample[c] = special.logsumexp(column) - np.log(n_draws)
    n = float(count.sum())
    total = float(count @ elpd)
    variance = float(count @ (elpd - total / n) ** 2) / max(n - 1, 1.0)
    good_k = min(1 - 1 / np.log10(n_draws), 0.7)
    times = count.astype(np.int64)
    return ELPDDataLOO(
        elpd=total,
        se=float(np.sqrt(n * variance)),
        p=float(count @ (in_sample - elpd)),
        n_samples=n_draws,
        n_data_points=int(n),
        scale="log",
        warning=bool((khat > good_k).any()),
        good_k=good_k,
        elpd_i=xr.DataArray(np.repeat(elpd, times), dims="comparison"),
        pareto_k=xr.DataArray(np.repeat(khat, times), dims="comparison"),
    )


def compare_comparisons(
    fits: Mapping[str, xr.DataTree], comparisons: Comparisons, *, method: str = "stacking"
) -> pd.DataFrame:
    """Return ArviZ's comparison of models of the same comparisons, best first.

    Parameters
    ----------
    fits : mapping of name to DataTree
        At least two fits of `comparisons`.
    comparisons : Comparisons
    method : {"stacking", "bb-pseudo-bma", "pseudo-bma"}
        How the model weights are found.

    Returns
    -------
    pandas.DataFrame
        rank, elpd, elpd_diff and their standard errors in nats, weight, ArviZ's diagnostics.

    Raises
    ------
    OptionError
        For fewer than two fits, or fits that used different comparisons (ties left out by one).

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> duels = Comparisons.from_counts(["a", "b"], ["b", "c"], [70, 60], [30, 40])
    >>> fits = {model: fit(duels, model=model, seed=1) for model in ("bradley_terry", "thurstone")}
    >>> sorted(compare_comparisons(fits, duels).index)
    ['bradley_terry', 'thurstone']
    """
    import arviz_stats as az

    check_choice(method, "method", ("stacking", "bb-pseudo-bma", "pseudo-bma"))
    if len(fits) < 2:
        raise OptionError(f"a comparison needs at least two fits, got {listed(fits)}.")
    results = {name: loo_comparisons(tree, comparisons) for name, tree in fits.items()}
    sizes = {name: result.n_data_points for name, result in results.items()}
    if len(set(sizes.values())) > 1:
        raise OptionError(
            f"the fits used different comparisons: {sizes}. Treat ties alike in all of them."
        )
    return az.compare(results, method=method, round_to="none")
