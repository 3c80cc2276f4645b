"""Whether one worth per item describes the comparisons: consistency, cycles, win matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesfair.base.arguments import takes
from bayesfair.base.checks import as_generator, check_in_range
from bayesfair.base.estimates import ENDS
from bayesfair.base.progress import tells
from bayesfair.base.read_fits import reads_fits
from bayesfair.comparisons import Comparisons
from bayesfair.comparisons.fitted_data import fitted_data
from bayesfair.errors import OptionError
from bayesfair.ranking.draws import fitted
from bayesfair.ranking.probability import win_probability
from bayesfair.ranking.replicate import observed_wins, replicated_wins
from bayesfair.typing import Floats, Progress

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["pl_consistency", "predicted_wins"]


def _frequencies(wins: Floats, fill: Floats) -> Floats:
    """Return how often i beat j among their comparisons, with `fill` where there is none."""
    total = wins + wins.T
    return np.where(total > 0, wins / np.where(total > 0, total, 1.0), fill)


def _top1(frequency: Floats) -> Floats:
    r"""Return :math:`1 / (1 + \sum_j (1/p_{ij} - 1))` of each item; 0 where some p is 0."""
    with np.errstate(divide="ignore"):
        odds = 1 / frequency - 1
    np.fill_diagonal(odds, 0.0)
    return np.asarray(1 / (1 + odds.sum(axis=1)))


def _cycles(wins: Floats) -> int:
    """Return the number of triples a > b > c > a by majority."""
    beats = (wins > wins.T).astype(np.float64)
    return round(float(np.trace(beats @ beats @ beats)) / 3)


def _asked(
    tree: xr.DataTree, comparisons: Comparisons, seed: int, replicates: int
) -> tuple[np.random.Generator, int, Comparisons]:
    """Return the source of randomness, the number of replicates and the data that were fitted."""
    count = int(check_in_range(replicates, "replicates", 20, np.inf, high_open=True))
    return as_generator(seed), count, fitted_data(tree, comparisons)


@takes()
@reads_fits
@tells
def pl_consistency(
    tree: xr.DataTree,
    comparisons: Comparisons,
    *,
    seed: int,
    replicates: int = 500,
    progress: Progress = None,
) -> xr.Dataset:
    r"""Return how far the pairs are from having one worth per item.

    .. math:: 1 - \sum_i \hat P_i, \qquad
              \hat P_i = \frac{1}{1 + \sum_{j \ne i} (1/\tilde p_{ij} - 1)}

    is 0 if the frequencies :math:`\tilde p_{ij}` with which i beats j are ratios of worths, and
    positive otherwise (up to 1); it is no probability. Noise alone makes it positive: it is
    compared with its law in data replicated from the fit.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit to `comparisons`.
    comparisons : Comparisons
        Ties count as half wins (those that the fit left out count nowhere); pairs that were never
        compared get the fit's probability.
    seed : int or numpy Generator
    replicates : int
    progress : bool or callable, optional
        How many replicates are done, as in `bayesfair.audit`.

    Returns
    -------
    xarray.Dataset
        ``top1`` (item): :math:`\hat P_i`; ``inconsistency``, with ``inconsistency_expected``
        (mean of the replicates) and ``p_value`` (share of replicates at least as inconsistent;
        small = the model does not fit); ``cycles``: triples a > b > c > a by majority, with
        ``cycles_expected`` and ``cycles_p_value``.

    Notes
    -----
    The sum is at most 1 for any frequencies. One lopsided pair among few comparisons can move it
    much; the p-value allows for that.

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> cycle = Comparisons.from_counts(["a", "b", "c"], ["b", "c", "a"], [90] * 3, [10] * 3)
    >>> found = pl_consistency(fit(cycle, seed=1), cycle, seed=1)
    >>> round(float(found["inconsistency"]), 4), bool(found["p_value"] < 0.01)
    (0.7033, True)
    """
    import xarray as xr

    rng, count, given = _asked(tree, comparisons, seed, replicates)
    comparisons = given.in_label_order()  # a seed then draws the same data in any order
    fill = _fitted_probability(tree, comparisons)
    wins = observed_wins(comparisons)
    estimate = _top1(_frequencies(wins, fill))
    here = 1 - float(estimate.sum())
    cycles = _cycles(wins)
    values = np.empty((2, count))
    for r, drawn in enumerate(replicated_wins(tree, comparisons, replicates=count, rng=rng)):
        values[:, r] = 1 - _top1(_frequencies(drawn, fill)).sum(), _cycles(drawn)

    # the data count as one more replicate, so that no p-value is 0
    def p_value(row: Floats, value: float) -> float:
        return float((1 + (row >= value - 1e-12).sum()) / (count + 1))

    found = xr.Dataset(
        {
            "top1": ("item", estimate),
            "inconsistency": here,
            "inconsistency_expected": float(values[0].mean()),
            "p_value": p_value(values[0], here),
            "cycles": cycles,
            "cycles_expected": float(values[1].mean()),
            "cycles_p_value": p_value(values[1], cycles),
        },
        coords={"item": np.array(comparisons.items)},
        attrs={"replicates": count, "notice": fitted(tree).island_notice()},
    )
    return found.sel(item=list(given.items))


def _fitted_probability(tree: xr.DataTree, comparisons: Comparisons) -> Floats:
    pairs = win_probability(tree).sel(
        item=list(comparisons.items), item_other=list(comparisons.items)
    )
    return np.asarray((pairs["p_beats"] + pairs["p_tie"] / 2).fillna(0.5).values)


@takes()
@reads_fits
@tells
def predicted_wins(
    tree: xr.DataTree,
    comparisons: Comparisons,
    *,
    seed: int,
    replicates: int = 500,
    progress: Progress = None,
) -> xr.Dataset:
    """Return the observed wins of every pair beside those that the fit predicts.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit to `comparisons`.
    comparisons : Comparisons
        Ties count as half wins (those that the fit left out count nowhere). In rankings, a win is
        coming before the other.
    seed : int or numpy Generator
    replicates : int
    progress : bool or callable, optional
        How many replicates are done, as in `bayesfair.audit`.

    Returns
    -------
    xarray.Dataset
        Dimensions ``item``, ``item_other``: ``observed`` wins of `item`; ``expected``, ``lower``,
        ``upper``: posterior predictive mean and equal-tailed 95 % interval; ``n``: comparisons;
        ``p_value``: two-sided, NaN for pairs never compared; ``linked`` as in `win_probability`.

    Notes
    -----
    The data are used twice, for the fit and for the check, so p-values are too large rather than
    too small. Of many pairs some are outside by chance: about one in twenty at most.

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> duels = Comparisons.from_counts(["a", "b"], ["b", "c"], [7, 6], [3, 4])
    >>> pairs = predicted_wins(fit(duels, seed=1), duels, seed=1)
    >>> float(pairs["observed"].sel(item="a", item_other="b"))
    7.0
    >>> bool((pairs["p_value"] < 0.05).any())
    False
    """
    import xarray as xr

    rng, count, given = _asked(tree, comparisons, seed, replicates)
    comparisons = given.in_label_order()  # a seed then draws the same data in any order
    k = comparisons.n_items
    if k > 400:
        raise OptionError(f"{k} items give {k * k} pairs, too many to replicate; leave some out.")
    wins = observed_wins(comparisons)
    drawn = np.stack(
        list(replicated_wins(tree, comparisons, replicates=count, rng=rng)), dtype=np.float32
    )
    low, high = np.quantile(drawn, ENDS, axis=0, method="inverted_cdf")
    above = (1 + (drawn >= wins - 1e-6).sum(axis=0)) / (count + 1)
    below = (1 + (drawn <= wins + 1e-6).sum(axis=0)) / (count + 1)
    total = wins + wins.T
    p_value = np.where(total > 0, np.minimum(1.0, 2 * np.minimum(above, below)), np.nan)
    dims, items = ("item", "item_other"), np.array(comparisons.items)
    fit = fitted(tree)
    at = [fit.items.index(item) for item in comparisons.items]
    found = xr.Dataset(
        {
            "observed": (dims, wins),
            "expected": (dims, drawn.mean(axis=0, dtype=np.float64)),
            "lower": (dims, low.astype(np.float64)),
            "upper": (dims, high.astype(np.float64)),
            "n": (dims, total),
            "p_value": (dims, p_value),
            "linked": (dims, fit.linked[np.ix_(at, at)]),
        },
        coords={"item": items, "item_other": items},
        attrs={"replicates": count, "notice": fit.island_notice()},
    )
    return found.sel(item=list(given.items), item_other=list(given.items))
