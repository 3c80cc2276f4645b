"""The table of items, best first, with honest ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from bayesfair.base.arguments import takes
from bayesfair.base.checks import check_in_range, check_known
from bayesfair.base.estimates import ENDS, Z95
from bayesfair.base.labels import one_label
from bayesfair.base.read_fits import reads_fits
from bayesfair.comparisons.worths import worth_of
from bayesfair.ranking.draws import Fitted, better_probability, fitted, ranks_of
from bayesfair.ranking.letters import letters_of
from bayesfair.typing import Floats

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["interval_of", "rank_table"]


@takes()
@reads_fits
def rank_table(
    tree: xr.DataTree, *, anchor: str | None = None, tier_probability: float = 0.95
) -> xr.Dataset:
    r"""Return the items, best first, with their worths, ranks and tiers.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for comparisons.
    anchor : str, optional
        An item whose log-worth is shown as 0. All log-worths and their intervals move by the same
        amount: gaps, standard deviations and widths of intervals stay those of the sum-to-zero
        scale (fixing an item instead would move its uncertainty onto all others).
    tier_probability : float
        In (0.5, 1): two items are *told apart* if one is better with at least this posterior
        probability and some chain of comparisons links them.

    Returns
    -------
    xarray.Dataset
        Dimension ``item``, sorted by worth; items without data last. Variables: ``worth``,
        ``log_worth`` (posterior means) with ``_lower``, ``_upper`` (equal-tailed 95 %),
        ``log_worth_sd``; ``p_rank1`` (probability of being first in the true order of worths; not
        P*, which is ``worth``); ``rank_mean``, ``rank_lower``, ``rank_upper`` (1 = best);
        ``rank_shared``: 1 + the number of items that are told apart from it and better;
        ``tier``: 1 = top, and ``letters``, see Notes; ``n`` comparisons, ``n_wins`` (came first
        alone); ``island`` (-1 = no data). After maximum likelihood, the values are estimates, the
        intervals normal approximations (of worths on the logit scale), and the ranks of draws NaN.
        Attribute ``interval`` says what the intervals are.

    Notes
    -----
    Two items that cannot be told apart share a tier, and so do items that a chain of such items
    links: a new tier begins where *every* item above is told apart from *every* item below.
    `rank_shared` is finer: 1, 1, 3 for two equals above a third. Finest are the `letters` of
    overlapping groups: two items share a letter if and only if they are not told apart (items
    without data have none). Comparisons of pairs are not adjusted for their number.

    Examples
    --------
    >>> from bayesfair.comparisons import Comparisons
    >>> from bayesfair.inference import fit
    >>> wins = [[0, 50, 90], [50, 0, 90], [10, 10, 0]]
    >>> table = rank_table(fit(Comparisons.from_win_matrix(wins, ["a", "b", "c"]), seed=1))
    >>> table["rank_shared"].values.tolist(), table["tier"].values.tolist()
    ([1.0, 1.0, 3.0], [1, 1, 2])
    >>> table["letters"].values.tolist()
    ['a', 'a', 'b']
    """
    import xarray as xr

    level = check_in_range(
        tier_probability, "tier_probability", 0.5, 1.0, low_open=True, high_open=True
    )
    fit = fitted(tree)
    if anchor is not None:
        anchor = one_label(anchor, "item", "anchor")
    at = None if anchor is None else check_known(anchor, fit.items, "item")
    columns, better = _from_mode(fit) if fit.log_worth is None else _from_draws(fit)
    if at is not None:
        shift = columns["log_worth"][at]
        for name in ("log_worth", "log_worth_lower", "log_worth_upper"):
            columns[name] = columns[name] - shift
    order = np.lexsort((np.arange(len(fit.items)), -columns["worth"], ~fit.has_data))
    told = (better >= level) & fit.linked
    seen = fit.has_data
    columns["rank_shared"] = np.where(seen, 1.0 + told[seen].sum(axis=0), np.nan)
    n_seen = int(seen.sum())
    tier = np.zeros(len(fit.items), np.int64)
    first = order[:n_seen]
    tier[first] = _tiers(told[np.ix_(first, first)])
    letters = np.full(len(fit.items), "", dtype=object)
    letters[first] = letters_of((told | told.T)[np.ix_(first, first)])
    columns |= {"tier": tier, "letters": letters.astype(str)}
    columns |= {"n": fit.n, "n_wins": fit.n_wins, "island": fit.island}
    attrs: dict[str, Any] = {
        "direction": "rank 1 = best",
        "interval": interval_of(tree),
        "tier_probability": level,
        "n_ranked": n_seen,
        "anchor": anchor or "",
        "notice": fit.island_notice(),
    }
    attrs |= {name: tree.attrs[name] for name in ("model", "method", "prior", "ties")
              if name in tree.attrs}  # fmt: skip
    return xr.Dataset(
        {name: ("item", np.asarray(value)[order]) for name, value in columns.items()},
        coords={"item": np.array(fit.items)[order]},
        attrs=attrs,
    )


def interval_of(tree: xr.DataTree) -> str:
    """Return what the intervals of a fit are, in words."""
    if "posterior" not in tree.children:
        robust = "robust " if tree.attrs.get("standard_errors") == "robust" else ""
        return f"estimate +- 1.96 {robust}s.e., of worths on the logit scale"
    if "power" not in tree.attrs:
        return "equal-tailed 95 %"
    return f"equal-tailed 95 % of a posterior tempered to the power {tree.attrs['power']:.3g}"


def _tiers(told: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the tier of each item of a table in order; ``told[i, j]``: i is surely better."""
    k = len(told)
    if not k:
        return np.zeros(0, np.int64)
    # the last item further down that is not told apart from this one
    reach = np.where(told, -1, np.arange(k)).max(axis=1)
    ends = np.maximum.accumulate(reach) <= np.arange(k)
    return 1 + np.concatenate([[0], np.cumsum(ends[:-1])]).astype(np.int64)


def _ends(draws: Floats) -> tuple[Floats, Floats]:
    low, high = np.quantile(draws, ENDS, axis=0)
    return low, high


def _from_draws(fit: Fitted) -> tuple[dict[str, Any], Floats]:
    assert fit.log_worth is not None and fit.worth is not None
    k, seen = len(fit.items), fit.has_data
    columns: dict[str, Any] = {}
    for name, draws in (("worth", fit.worth), ("log_worth", fit.log_worth)):
        columns[name] = draws.mean(axis=0)
        columns[f"{name}_lower"], columns[f"{name}_upper"] = _ends(draws)
    columns["log_worth_sd"] = fit.log_worth.std(axis=0, ddof=1)
    ranks = ranks_of(fit.log_worth[:, seen])
    low, high = np.quantile(ranks, ENDS, axis=0, method="inverted_cdf")
    found = {"p_rank1": (ranks == 1).mean(axis=0), "rank_mean": ranks.mean(axis=0),
             "rank_lower": low, "rank_upper": high}  # fmt: skip
    for name, value in found.items():
        columns[name] = np.full(k, np.nan)
        columns[name][seen] = value
    better = np.full((k, k), np.nan)
    better[np.ix_(seen, seen)] = better_probability(ranks)
    return columns, better


def _worth_interval(
    model: str, log_worth: Floats, worth: Floats, covariance: Floats
) -> tuple[Floats, Floats]:
    """Return 95 % limits of worths, normal on the logit scale.

    There a worth and the chance of all others together are complementary: limits lie between 0
    and 1, and those of two items mirror each other.
    """
    if model == "thurstone":
        step = 1e-4
        moved = [
            worth_of(model, log_worth + sign * step * np.eye(len(worth))) for sign in (1.0, -1.0)
        ]
        slope = ((moved[0] - moved[1]) / (2 * step)).T / (worth * (1 - worth))[:, None]
    else:
        # logit worth_i = log_worth_i - log sum_{j != i} exp(log_worth_j)
        slope = (np.eye(len(worth)) - worth) / (1 - worth)[:, None]
    spread = np.sqrt(np.einsum("ij,jk,ik->i", slope, covariance, slope, optimize=True))
    middle = logit(worth)
    return expit(middle - Z95 * spread), expit(middle + Z95 * spread)


def _from_mode(fit: Fitted) -> tuple[dict[str, Any], Floats]:
    mode = fit.mode
    log_worth, error = mode["log_worth"].values, mode["standard_error"].values
    covariance, worth = mode["covariance"].values, mode["worth"].values
    columns: dict[str, Any] = {"worth": worth}
    nothing = np.full(len(fit.items), np.nan)
    low, high = _worth_interval(fit.model, log_worth, worth, covariance)
    columns |= {"worth_lower": low, "worth_upper": high}
    columns |= {
        "log_worth": log_worth,
        "log_worth_lower": log_worth - Z95 * error,
        "log_worth_upper": log_worth + Z95 * error,
        "log_worth_sd": error,
    }
    for name in ("p_rank1", "rank_mean", "rank_lower", "rank_upper"):
        columns[name] = nothing
    variance = np.diag(covariance)
    gap_variance = variance[:, None] + variance - 2 * covariance
    np.fill_diagonal(gap_variance, np.nan)
    better = ndtr((log_worth[:, None] - log_worth) / np.sqrt(np.maximum(gap_variance, 1e-300)))
    np.fill_diagonal(better, np.nan)
    return columns, np.asarray(better)
