"""Probabilities of orders and of outcomes: being better, and winning the next comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtr

from bayesfair.base.arguments import PLAIN, takes
from bayesfair.base.checks import check_choice
from bayesfair.base.read_fits import reads_fits
from bayesfair.errors import OptionError
from bayesfair.kernels.orders.orders import mean_outcomes
from bayesfair.kernels.team import usable_cores
from bayesfair.ranking.draws import better_probability, fitted, ranks_of
from bayesfair.typing import Floats

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["outcome_probability", "rank_probability", "win_probability"]


_WIDE = 500  # spread of log-worths beyond which products of worths leave double precision


def outcome_probability(
    model: str, gap: Floats, log_tie: Floats | None = None
) -> tuple[Floats, Floats]:
    r"""Return P(left wins) and P(tie) of a duel at given gaps in log-worth.

    Parameters
    ----------
    model : str
    gap : (...) array
        :math:`\lambda_{left} - \lambda_{right}`, order effect included.
    log_tie : array, optional
        Broadcast against `gap`; Davidson's model.

    Examples
    --------
    >>> win, tie = outcome_probability("davidson", np.log([5 / 3]), np.log(2 / 15**0.5))
    >>> win.round(3), tie.round(3)
    (array([0.5]), array([0.2]))
    """
    if model == "thurstone":
        return np.asarray(ndtr(gap)), np.zeros_like(gap)
    if log_tie is None:
        return np.asarray(expit(gap)), np.zeros_like(gap)
    total = np.logaddexp(np.logaddexp(gap / 2, -gap / 2), log_tie)
    return np.exp(gap / 2 - total), np.exp(log_tie - total)


@takes(first=PLAIN)
@reads_fits
def win_probability(tree: xr.DataTree, *, first: str = "neither") -> xr.Dataset:
    r"""Return, for each pair, P(i is better than j) and P(i beats j), which are two things.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for comparisons.
    first : {"neither", "item", "item_other"}
        Whose presentation (or home ground) the predicted duel has; matters where the model has an
        order effect.

    Returns
    -------
    xarray.Dataset
        Dimensions ``item``, ``item_other``, in the order of the tree; diagonal NaN. ``p_better``:
        posterior probability that the worth of `item` exceeds that of `item_other`; near 0 or 1
        with enough data. ``p_beats``: posterior predictive probability that `item` wins their next
        duel; stays at the ratio of worths however much data there is. ``p_tie``: that it is
        tied. ``linked``: whether any chain of comparisons links the two; where not, only the prior
        speaks. After maximum likelihood `p_beats` is the plug-in value and `p_better` NaN.

    Examples
    --------
    >>> from bayesfair.comparisons import Comparisons
    >>> from bayesfair.inference import fit
    >>> pairs = win_probability(fit(Comparisons.from_counts(["a"], ["b"], [600], [400]), seed=1))
    >>> [round(float(pairs[name].sel(item="a", item_other="b")), 2)
    ...  for name in ("p_better", "p_beats")]
    [1.0, 0.6]
    """
    import xarray as xr

    check_choice(first, "first", ("neither", "item", "item_other"))
    fit = fitted(tree)
    k = len(fit.items)
    log_worth, extra = fit.draws_or_estimate
    better = np.full((k, k), np.nan)
    if fit.log_worth is not None:
        better = better_probability(ranks_of(log_worth))
    sign = {"neither": 0.0, "item": 1.0, "item_other": -1.0}[first]
    if sign and "order_effect" not in extra:
        raise OptionError(f"first={first!r}: this fit has no order effect; leave first out.")
    edge = sign * extra["order_effect"] if sign else None
    if fit.model == "thurstone" or np.ptp(log_worth, axis=1).max() > _WIDE:
        beats, tie = _gap_by_gap(fit.model, log_worth, edge, extra.get("log_tie"))
    else:
        threads = usable_cores()
        beats, tie = mean_outcomes(log_worth, extra.get("log_tie"), edge, threads=threads)
    for table in (beats, tie):
        np.fill_diagonal(table, np.nan)
    dims, items = ("item", "item_other"), np.array(fit.items)
    return xr.Dataset(
        {
            "p_better": (dims, better),
            "p_beats": (dims, beats),
            "p_tie": (dims, tie),
            "linked": (dims, fit.linked),
        },
        coords={"item": items, "item_other": items},
        attrs={"first": first, "model": fit.model, "notice": fit.island_notice()},
    )


def _gap_by_gap(
    model: str, log_worth: Floats, edge: Floats | None, log_tie: Floats | None
) -> tuple[Floats, Floats]:
    """Return what `mean_outcomes` does, for any link and any size of gaps."""
    k = log_worth.shape[1]
    beats, tie = np.zeros((2, k, k))
    ahead = 0.0 if edge is None else edge[:, None]
    for i in range(k):
        gap = log_worth[:, i : i + 1] - log_worth + ahead
        win, tied = outcome_probability(model, gap, None if log_tie is None else log_tie[:, None])
        beats[i], tie[i] = win.mean(axis=0), tied.mean(axis=0)
    return beats, tie


@takes()
@reads_fits
def rank_probability(tree: xr.DataTree) -> xr.DataArray:
    """Return the posterior probability of each rank of each item, ``(item, rank)``.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for comparisons, with draws.

    Returns
    -------
    xarray.DataArray
        Rows and columns sum to 1. Items without data are NaN and take no rank; coordinate
        ``island`` tells which items only the prior compares.

    Raises
    ------
    OptionError
        If the fit has no draws (maximum likelihood).

    Examples
    --------
    >>> from bayesfair.comparisons import Comparisons
    >>> from bayesfair.inference import fit
    >>> tree = fit(Comparisons.from_counts(["a"], ["b"], [90], [10]), seed=1)
    >>> rank_probability(tree).sel(item="a").values
    array([1., 0.])
    """
    import xarray as xr

    fit = fitted(tree)
    if fit.log_worth is None:
        raise OptionError(
            "a maximum-likelihood fit has no posterior of ranks. Give fit(...) a finite prior_sd."
        )
    seen = fit.has_data
    ranks = ranks_of(fit.log_worth[:, seen])
    m = ranks.shape[1]
    table = np.full((len(fit.items), m), np.nan)
    table[seen] = [np.bincount(column - 1, minlength=m) / len(ranks) for column in ranks.T]
    return xr.DataArray(
        table,
        dims=("item", "rank"),
        coords={
            "item": np.array(fit.items),
            "rank": np.arange(1, m + 1),
            "island": ("item", fit.island),
        },
        name="rank_probability",
        attrs={"direction": "rank 1 = best", "notice": fit.island_notice()},
    )
