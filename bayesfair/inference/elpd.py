"""How well a model predicts single rounds: LOO and the comparison of models by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.base.arguments import takes
from bayesfair.base.checks import check_choice, listed
from bayesfair.base.progress import steps, tells
from bayesfair.base.read_fits import reads_fits
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.history import History
from bayesfair.history.cells import reward_cells
from bayesfair.inference.comparison_cells import cell_columns, whole_counts
from bayesfair.inference.posterior import bins_of, dim_of
from bayesfair.inference.reweight import psis_weights
from bayesfair.inference.tree import flat_reads
from bayesfair.typing import Floats, Progress

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["cells_of_fit", "compare", "log_likelihood_of_cells", "loo"]


def cells_of_fit(tree: xr.DataTree, history: History | None) -> dict[str, NDArray[Any]]:
    """Return the distinct rewards of the log that was fitted, and the cell of each round."""
    if history is not None:
        if not isinstance(history, History):
            raise OptionError(
                "history must be the History that was fitted (bayesfair.read_history reads one), "
                f"got {type(history).__name__}.",
                kind="wrong_kind",
                column="history",
            )
        if history.n_rounds != int(tree.attrs.get("n_rounds", history.n_rounds)):
            raise OptionError(
                f"the fit saw {tree.attrs['n_rounds']} rounds, this history has "
                f"{history.n_rounds}; give the history that was fitted."
            )
        return reward_cells(history, bins_of(tree, history))
    if "reward_cells" not in tree.children:
        raise OptionError(
            "this fit does not hold its rewards (they are too many); give the history too."
        )
    stored = tree["reward_cells"].to_dataset()
    cells = {name: stored[f"cell_{name}"].values for name in ("arm", "reward", "bin", "count")}
    return cells | {"cell": stored["cell_of_observation"].values}


def _is_fit(given: Any) -> bool:
    return hasattr(given, "attrs") and hasattr(given, "children")


def log_likelihood_of_cells(tree: xr.DataTree, cells: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the log likelihood of one round of each cell, ``(draw, C)``."""
    reads = flat_reads(tree)
    posterior = tree["posterior"].to_dataset()
    if dim_of(tree) is None:
        reads = {name: value[:, None] for name, value in reads.items()}
    level = np.asarray(posterior["level"].values, float) if "level" in posterior.coords else None
    family = FAMILIES[str(tree.attrs["family"])]
    return family.log_likelihood(reads, cells["arm"], cells["reward"], cells["bin"], level)


def _relative_efficiency(tree: xr.DataTree) -> float:
    """Return effective over actual draws, averaged over variables as ArviZ does; 1 if exact."""
    if tree.attrs.get("method") != "nuts":
        return 1.0
    import arviz_stats as az

    posterior = tree["posterior"].to_dataset()
    ess = az.ess(posterior, method="mean")
    values = np.concatenate([np.ravel(ess[name].values) for name in ess.data_vars])
    n_draws = posterior.sizes["chain"] * posterior.sizes["draw"]
    return float(np.nanmean(values)) / n_draws


def _elpd_of(
    tree: xr.DataTree,
    columns: Iterable[Floats],
    count: Floats,
    place: NDArray[np.int64],
    dim: str,
) -> Any:
    """Return ArviZ's record of PSIS-LOO from the log likelihoods of distinct cells.

    Parameters
    ----------
    tree : xarray.DataTree
        The fit.
    columns : iterable of (n,) arrays
        Log likelihood of one observation of each cell under each draw.
    count : (C,) array
        Observations of each cell: one is left out at a time, never a whole cell.
    place : (n_observations,) array
        Cell of each observation.
    dim : str
        What an observation is called.
    """
    import xarray as xr
    from arviz_stats.utils import ELPDDataLOO

    efficiency = _relative_efficiency(tree)
    # draws of a tempered fit leave out the likelihood to the power that they hold it with
    power = float(tree.attrs.get("power", 1.0))
    elpd, khat, in_sample = np.empty((3, len(count)))
    n_draws, told = 0, steps(f"distinct {dim}s", len(count))
    for c, column in enumerate(columns):
        n_draws = len(column)
        weight, khat[c] = psis_weights(-power * column, efficiency)
        elpd[c] = special.logsumexp(column, b=weight)
        in_sample[c] = special.logsumexp(column) - np.log(n_draws)
        told.add()
    n = float(count.sum())
    total = float(count @ elpd)
    # as ArviZ: the sample variance over observations
    variance = float(count @ (elpd - total / n) ** 2) / max(n - 1, 1.0)
    good_k = min(1 - 1 / np.log10(n_draws), 0.7)
    return ELPDDataLOO(
        elpd=total,
        se=float(np.sqrt(n * variance)),
        p=float(count @ (in_sample - elpd)),
        n_samples=n_draws,
        n_data_points=int(n),
        scale="log",
        warning=bool((khat > good_k).any()),
        good_k=good_k,
        elpd_i=xr.DataArray(elpd[place], dims=dim),
        pareto_k=xr.DataArray(khat[place], dims=dim),
    )


@takes()
@reads_fits
@tells
def loo(
    tree: xr.DataTree,
    history: History | Comparisons | None = None,
    *,
    progress: Progress = None,
) -> Any:
    r"""Return the expected log predictive density of a left-out round or comparison (PSIS-LOO).

    Rounds with equal arm, reward and time bin have equal terms, and so have equal comparisons: each
    distinct one is computed once and counted as often as it occurred. One is left out at a time.

    Parameters
    ----------
    tree : xarray.DataTree
        What `bayesfair.fit` returned, with draws.
    history : History or Comparisons, optional
        What was fitted. A history is needed only where the fit does not hold the rewards (more
        than 20 000 distinct ones); comparisons always.
    progress : bool or callable, optional
        How many distinct observations are done, as in `bayesfair.audit`.

    Returns
    -------
    arviz_stats.ELPDData
        ArviZ's own object, pointwise over the observed rounds in order, or over comparisons, cell
        by cell (a ranking is one): ``elpd`` and ``se`` in nats for all of them, ``p``, ``elpd_i``,
        ``pareto_k``.

    Raises
    ------
    OptionError
        If the history is needed, or is not the one that was fitted; for comparisons without
        draws, models of your own, ties as half wins.
    DataError
        If no reward was observed, or weights are not whole numbers.

    Notes
    -----
    Leaving out a round means: its reward, given all others, those of later rounds included. It
    says how well the model describes the arms, not how well it forecasts.

    References
    ----------
    .. [1] Vehtari, Gelman, Gabry (2017), Statistics and Computing 27, 1413-1432.

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> history = History(["a", "b"] * 20, [1, 0, 1, 1] * 10)
    >>> result = loo(fit(history, seed=1))
    >>> result.n_data_points, bool(result.warning)
    (40, False)
    >>> duels = Comparisons.from_counts(["a", "b"], ["b", "c"], [7, 6], [3, 4])
    >>> loo(fit(duels, seed=1), duels).n_data_points
    20
    """
    if not _is_fit(tree):
        raise OptionError(
            f"loo needs a fit, got {type(tree).__name__}: "
            "loo(bayesfair.fit(history, model=..., seed=...))."
        )
    if isinstance(history, Comparisons) or tree.attrs.get("reads") == "log_worth":
        if not isinstance(history, Comparisons):
            raise OptionError("this is a fit to comparisons: give loo(tree, comparisons).")
        used, times = whole_counts(tree, history)
        each = np.repeat(np.arange(len(used)), times.astype(np.int64))
        return _elpd_of(tree, cell_columns(tree, history, used), times, each, "comparison")
    cells = cells_of_fit(tree, history)
    if not len(cells["count"]):
        raise DataError("no reward of this log was observed, so no round can be left out.")
    columns = log_likelihood_of_cells(tree, cells).T
    return _elpd_of(tree, columns, cells["count"].astype(float), cells["cell"], "observation")


def _require_same_log(trees: Mapping[str, xr.DataTree]) -> None:
    """Refuse fits of different logs, as far as the fits hold their rewards."""
    seen: dict[str, Floats] = {}
    for name, tree in trees.items():
        if "reward_cells" in tree.children:
            cells = cells_of_fit(tree, None)
            place = cells["cell"]
            seen[name] = np.stack([cells["arm"][place], cells["reward"][place]])
    first = next(iter(seen), None)
    for name, rewards in seen.items():
        assert first is not None
        if rewards.shape == seen[first].shape and not np.array_equal(rewards, seen[first]):
            raise OptionError(
                f"{first!r} and {name!r} are fits of different logs: their arms or rewards differ."
            )


@takes()
@reads_fits
@tells
def compare(
    fits: Mapping[str, xr.DataTree],
    history: History | Comparisons | None = None,
    *,
    method: str = "stacking",
    progress: Progress = None,
) -> pd.DataFrame:
    """Return ArviZ's comparison of models of one log, best first, per round or comparison.

    Parameters
    ----------
    fits : mapping of name to DataTree or ELPDData
        At least two fits of the same history, or what `loo` returned for them.
    history : History or Comparisons, optional
        As for `loo`.
    method : {"stacking", "bb-pseudo-bma", "pseudo-bma"}
        How the model weights are found.
    progress : bool or callable, optional
        How many distinct observations of a fit are done, as in `bayesfair.audit`.

    Returns
    -------
    pandas.DataFrame
        rank, elpd, elpd_diff and their standard errors in nats, weight, ArviZ's diagnostics.

    Raises
    ------
    OptionError
        For fewer than two fits, fits of different logs, rewards of different kinds (a density
        cannot be compared with a probability), or fits that used different comparisons (ties left
        out by one).

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> history = History(["a", "b"] * 20, [1, 0, 1, 1] * 10)
    >>> flat = fit(history, seed=1, prior=(1, 1))
    >>> table = compare({"wrong": fit(history, seed=1, prior=(1, 99)), "flat": flat})
    >>> list(table.index)
    ['flat', 'wrong']
    >>> duels = Comparisons.from_counts(["a", "b"], ["b", "c"], [70, 60], [30, 40])
    >>> fits = {model: fit(duels, model=model, seed=1) for model in ("bradley_terry", "thurstone")}
    >>> sorted(compare(fits, duels).index)
    ['bradley_terry', 'thurstone']
    """
    import arviz_stats as az

    if not isinstance(fits, Mapping) or len(fits) < 2:
        raise OptionError(
            "compare needs at least two fits by name, {'flat': fit_1, 'pooled': fit_2}, got "
            f"{listed(fits) if isinstance(fits, Mapping) else type(fits).__name__}."
        )
    check_choice(method, "method", ("stacking", "bb-pseudo-bma", "pseudo-bma"))
    trees = {name: fit for name, fit in fits.items() if _is_fit(fit)}
    densities = [family.name for family in FAMILIES.values() if family.continuous]
    continuous = {name: tree.attrs.get("family") in densities for name, tree in trees.items()}
    if len(set(continuous.values())) > 1:
        density = [name for name, is_density in continuous.items() if is_density]
        raise OptionError(
            f"{listed(density)} gives rewards a density, the other fits a probability: their log "
            "predictive densities are in different units and cannot be compared."
        )
    _require_same_log(trees)
    results = {name: loo(fit, history) if name in trees else fit for name, fit in fits.items()}
    sizes = {name: result.n_data_points for name, result in results.items()}
    if len(set(sizes.values())) > 1 and isinstance(history, Comparisons):
        raise OptionError(
            f"the fits used different comparisons: {sizes}. Treat ties alike in all of them."
        )
    if len(set(sizes.values())) > 1:
        raise OptionError(f"the fits saw different numbers of rounds: {sizes}.")
    return az.compare(results, method=method, round_to="none")
