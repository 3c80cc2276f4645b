"""How well a model predicts single rounds, and how much its posterior owes to the prior."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.checks import check_choice, listed
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.inference.carry import psis_weights
from bayesfair.inference.contract import ARM_MODELS, CLOSED_FORM, contract_of
from bayesfair.inference.likelihood import cell_log_likelihood
from bayesfair.inference.posterior import bin_starts
from bayesfair.inference.tree import flat_reads
from bayesfair.sufficient import reward_cells

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["compare", "loo", "prior_sensitivity"]

FloatArray = NDArray[np.float64]


def _cells(tree: xr.DataTree, history: History | None) -> dict[str, NDArray[Any]]:
    """Return the distinct rewards of the log that was fitted, and the cell of each round."""
    if history is not None:
        if history.n_rounds != int(tree.attrs.get("n_rounds", history.n_rounds)):
            raise OptionError(
                f"the fit saw {tree.attrs['n_rounds']} rounds, this history has "
                f"{history.n_rounds}; give the history that was fitted."
            )
        return reward_cells(history, bin_starts(tree))
    if "reward_cells" not in tree.children:
        raise OptionError(
            "this fit does not hold its rewards (they are too many); give the history too."
        )
    stored = tree["reward_cells"].to_dataset()
    cells = {name: stored[f"cell_{name}"].values for name in ("arm", "reward", "bin", "count")}
    return cells | {"cell": stored["cell_of_observation"].values}


def _log_likelihood(tree: xr.DataTree, cells: Mapping[str, NDArray[Any]]) -> FloatArray:
    """Return the log likelihood of one round of each cell, ``(draw, C)``."""
    reads = flat_reads(tree)
    posterior = tree["posterior"].to_dataset()
    if "bin" not in posterior.sizes:
        reads = {name: value[:, None] for name, value in reads.items()}
    level = np.asarray(posterior["level"].values, float) if "level" in posterior.coords else None
    return cell_log_likelihood(
        str(tree.attrs["family"]), reads, arm=cells["arm"], reward=cells["reward"],
        time_bin=cells["bin"], level=level,
    )  # fmt: skip


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


def loo(tree: xr.DataTree, history: History | Comparisons | None = None) -> Any:
    r"""Return the expected log predictive density of a left-out round or comparison (PSIS-LOO).

    Rounds with equal arm, reward and time bin have equal terms: each distinct one is computed once
    and counted as often as it occurred.

    Parameters
    ----------
    tree : xarray.DataTree
        What `bayesfair.fit` returned for a history.
    history : History or Comparisons, optional
        What was fitted. A history is needed only where the fit does not hold the rewards (more
        than 20 000 distinct ones); comparisons always, see `loo_comparisons`.

    Returns
    -------
    arviz_stats.ELPDData
        ArviZ's own object, pointwise over the observed rounds in order: ``elpd`` and ``se`` in nats
        for the whole log, ``p``, ``elpd_i``, ``pareto_k``.

    Raises
    ------
    OptionError
        If the history is needed, or is not the one that was fitted.
    DataError
        If no reward was observed.

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
    """
    import xarray as xr
    from arviz_stats.utils import ELPDDataLOO

    if isinstance(history, Comparisons) or tree.attrs.get("reads") == "log_worth":
        from bayesfair.inference.comparison_loo import loo_comparisons

        if not isinstance(history, Comparisons):
            raise OptionError("this is a fit to comparisons: give loo(tree, comparisons).")
        return loo_comparisons(tree, history)
    cells = _cells(tree, history)
    if not len(cells["count"]):
        raise DataError("no reward of this log was observed, so no round can be left out.")
    log_likelihood = _log_likelihood(tree, cells)
    n_draws = len(log_likelihood)
    efficiency = _relative_efficiency(tree)
    elpd, khat = np.empty((2, log_likelihood.shape[1]))
    for c, column in enumerate(log_likelihood.T):
        weight, khat[c] = psis_weights(-column, efficiency)
        elpd[c] = special.logsumexp(column, b=weight)
    in_sample = special.logsumexp(log_likelihood, axis=0) - np.log(n_draws)
    count = cells["count"].astype(float)
    n_rounds = float(count.sum())
    total = float(count @ elpd)
    # as ArviZ: the sample variance over rounds
    variance = float(count @ (elpd - total / n_rounds) ** 2) / max(n_rounds - 1, 1)
    good_k = min(1 - 1 / np.log10(n_draws), 0.7)
    place = cells["cell"]
    return ELPDDataLOO(
        elpd=total,
        se=float(np.sqrt(n_rounds * variance)),
        p=float(count @ (in_sample - elpd)),
        n_samples=n_draws,
        n_data_points=int(n_rounds),
        scale="log",
        warning=bool((khat > good_k).any()),
        good_k=good_k,
        elpd_i=xr.DataArray(elpd[place], dims="observation"),
        pareto_k=xr.DataArray(khat[place], dims="observation"),
    )


def compare(
    fits: Mapping[str, xr.DataTree],
    history: History | Comparisons | None = None,
    *,
    method: str = "stacking",
) -> pd.DataFrame:
    """Return ArviZ's comparison of models of one log, best first, per round or comparison.

    Parameters
    ----------
    fits : mapping of name to DataTree
        At least two fits of the same history.
    history : History or Comparisons, optional
        As for `loo`.
    method : {"stacking", "bb-pseudo-bma", "pseudo-bma"}
        How the model weights are found.

    Returns
    -------
    pandas.DataFrame
        rank, elpd, elpd_diff and their standard errors in nats, weight, ArviZ's diagnostics.

    Raises
    ------
    OptionError
        For fewer than two fits, fits of different logs, or rewards of different kinds (a density
        cannot be compared with a probability).

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> history = History(["a", "b"] * 20, [1, 0, 1, 1] * 10)
    >>> flat = fit(history, seed=1, prior=(1, 1))
    >>> table = compare({"wrong": fit(history, seed=1, prior=(1, 99)), "flat": flat})
    >>> list(table.index)
    ['flat', 'wrong']
    """
    import arviz_stats as az

    if isinstance(history, Comparisons):
        from bayesfair.inference.comparison_loo import compare_comparisons

        return compare_comparisons(fits, history, method=method)
    check_choice(method, "method", ("stacking", "bb-pseudo-bma", "pseudo-bma"))
    if len(fits) < 2:
        raise OptionError(f"compare needs at least two fits, got {listed(fits)}.")
    continuous = {name: tree.attrs["family"] == "normal" for name, tree in fits.items()}
    if len(set(continuous.values())) > 1:
        density = [name for name, is_density in continuous.items() if is_density]
        raise OptionError(
            f"{listed(density)} gives rewards a density, the other fits a probability: their log "
            "predictive densities are in different units and cannot be compared."
        )
    results = {name: loo(tree, history) for name, tree in fits.items()}
    sizes = {name: result.n_data_points for name, result in results.items()}
    if len(set(sizes.values())) > 1:
        raise OptionError(f"the fits saw different numbers of rounds: {sizes}.")
    return az.compare(results, method=method, round_to="none")


def prior_sensitivity(
    tree: xr.DataTree,
    history: History | None = None,
    *,
    model: Any = None,
    quantities: Mapping[str, Any] | None = None,
    threshold: float = 0.05,
) -> pd.DataFrame:
    """Return how strongly results react to the prior and to the likelihood, by power scaling.

    Both are raised to powers near 1 and the draws reweighted; nothing is fitted again.

    Parameters
    ----------
    tree : xarray.DataTree
        What `bayesfair.fit` returned for a history.
    history : History, optional
        The history that was fitted; needed for models of your own, and as for `loo`.
    model : callable, optional
        Your own build function, if the tree is a fit of it.
    quantities : mapping of name to array, optional
        Further quantities, one value per draw: ``(draw,)`` or ``(draw, n)``, chains joined in
        order; for example an audit's regret under each draw. Default: P* of each arm.
    threshold : float
        Sensitivities above it are named in the diagnosis; 0.05 is the authors' suggestion.

    Returns
    -------
    pandas.DataFrame
        One row per quantity: ``prior``, ``likelihood`` (sensitivities, dimensionless) and
        ``diagnosis``: "potential prior-data conflict", "potential strong prior / weak likelihood",
        or a tick.

    Raises
    ------
    OptionError
        If the log density of the prior cannot be had.

    Notes
    -----
    Only top-level priors are scaled: in a hierarchical model the law of the arms given mu and tau
    belongs to the model.

    References
    ----------
    .. [1] Kallioinen, Paananen, Buerkner, Vehtari (2024), Statistics and Computing 34, 57.

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> history = History(["a", "b"] * 20, [1, 0, 1, 1] * 10)
    >>> table = prior_sensitivity(fit(history, prior=(10, 200), seed=1))
    >>> table.loc["theta[a]", "diagnosis"]
    'potential prior-data conflict'
    """
    posterior = tree["posterior"].to_dataset()
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    cells = _cells(tree, history)
    log_likelihood = _log_likelihood(tree, cells) @ cells["count"].astype(float)
    log_prior = np.broadcast_to(_log_prior(tree, history, model), shape)
    chosen = posterior[str(tree.attrs["reads"]).split(",")]
    for name, value in (_default_quantities(tree) if quantities is None else quantities).items():
        array = np.asarray(value, dtype=np.float64)
        if array.shape[:1] != (shape[0] * shape[1],):
            raise OptionError(
                f"quantity {name!r} has shape {array.shape}, expected one row for each of the "
                f"{shape[0] * shape[1]} draws."
            )
        dims = ["chain", "draw", *(f"{name}_{axis}" for axis in range(array.ndim - 1))]
        if array.shape[1:] == (posterior.sizes["arm"],):
            dims[2] = "arm"
        chosen = chosen.assign({name: (dims, array.reshape(*shape, *array.shape[1:]))})

    return _sensitivity_table(chosen, log_prior, log_likelihood.reshape(shape), threshold)


def _sensitivity_table(
    chosen: xr.Dataset, log_prior: FloatArray, log_likelihood: FloatArray, threshold: float
) -> pd.DataFrame:
    """Return ArviZ's sensitivities of each variable to both components, with its diagnosis."""
    import arviz_stats as az
    import xarray as xr
    from arviz_base import dataset_to_dataframe

    def component(name: str, values: FloatArray) -> xr.Dataset:
        if np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())):
            # a flat prior (or a log without rewards): no power of it changes anything
            return xr.zeros_like(chosen.isel(chain=0, draw=0, drop=True), dtype=np.float64)
        part = xr.Dataset(
            {"total": (("chain", "draw", "part"), values[..., None])},
            attrs={"sample_dims": ["chain", "draw"]},
        )
        group = f"log_{name}"
        tree = xr.DataTree.from_dict({"/posterior": chosen, f"/{group}": part})
        with np.errstate(invalid="ignore"):
            found: xr.Dataset = az.psense(tree, group=name)
        return found.fillna(0.0)  # a quantity that cannot vary

    names = ("prior", "likelihood")
    parts = [component(n, v) for n, v in zip(names, (log_prior, log_likelihood), strict=True)]
    joined = xr.concat(parts, dim="component").assign_coords(component=list(names))
    table: pd.DataFrame = dataset_to_dataframe(joined, sample_dims=["component"]).T

    def diagnosis(prior: float, likelihood: float) -> str:
        if prior < threshold:
            return "✓"
        if likelihood >= threshold:
            return "potential prior-data conflict"
        return "potential strong prior / weak likelihood"

    pairs = zip(table["prior"], table["likelihood"], strict=True)
    table["diagnosis"] = [diagnosis(p, q) for p, q in pairs]
    return table.round(6)


def prior_power_weights(
    tree: xr.DataTree, powers: Sequence[float], history: History | None = None, *, model: Any = None
) -> tuple[FloatArray, FloatArray]:
    """Return importance weights of the draws for the prior raised to each power, PSIS-smoothed.

    Parameters
    ----------
    tree, history, model
        As for `prior_sensitivity`.
    powers : sequence of float
        1 is the prior itself, below 1 a flatter and above 1 a more peaked one.

    Returns
    -------
    weights : (P, draw) array
        Each row sums to 1; chains joined in order.
    khat : (P,) array
        Pareto k-hat; above 0.7 the weights are not to be trusted.
    """
    posterior = tree["posterior"].to_dataset()
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    log_prior = np.broadcast_to(_log_prior(tree, history, model), shape).ravel()
    weights, khat = np.empty((len(powers), log_prior.size)), np.empty(len(powers))
    for p, power in enumerate(powers):
        if power == 1:
            weights[p], khat[p] = 1 / log_prior.size, -np.inf
        else:
            weights[p], khat[p] = psis_weights((power - 1) * log_prior, 1.0)
    return weights, khat


def _default_quantities(tree: xr.DataTree) -> dict[str, FloatArray]:
    from bayesfair.inference.posterior import rewards_from_posterior

    if "bin" in tree["posterior"].to_dataset().sizes:
        return {}
    return {"best_arm_probability": rewards_from_posterior(tree).best_arm_probability()}


def _log_prior(tree: xr.DataTree, history: History | None, model: Any) -> Any:
    """Return the log density of the top-level prior at each draw, ``(chain, draw)``."""
    posterior = tree["posterior"].to_dataset()
    name = str(tree.attrs["model"])
    options = json.loads(str(tree.attrs["model_options"]))
    if name in CLOSED_FORM.values():
        return _conjugate_log_prior(tree, posterior)
    if model is None and name not in ARM_MODELS:
        raise OptionError(
            f"this is a fit of your own model {name!r}; give it again (model=) with the history, "
            "so that its prior can be evaluated."
        )
    contract = contract_of(name if model is None else model)
    if contract.log_prior is not None:
        return contract.log_prior(posterior, **options).transpose("chain", "draw").values
    if history is None:
        raise OptionError(
            f"model {name!r} has no log_prior of its own; give the history (and model=, for a "
            "build function of yours), so that the prior can be evaluated."
        )
    from pymc.stats import compute_log_prior
    from pytensor.graph.traversal import ancestors

    built = contract.build(history, **options)
    free = built.free_RVs
    top = [v.name for v in free if not set(ancestors([v])).intersection(set(free) - {v})]
    density = compute_log_prior(
        tree, var_names=top, model=built, extend_inferencedata=False,
        progressbar=False,
    )  # fmt: skip
    return sum(
        density[v].sum([d for d in density[v].dims if d not in ("chain", "draw")]).values
        for v in density.data_vars
    )


def _conjugate_log_prior(tree: xr.DataTree, posterior: xr.Dataset) -> FloatArray:
    """Return the log prior density of a closed-form model, up to a constant."""
    from scipy import stats

    data = tree["constant_data"].to_dataset()
    family = str(tree.attrs["family"])
    if "prior" in data:
        columns = list(data["prior"].values.T)
    else:  # fitted by NUTS: the containers of the PyMC model
        names = {
            "bernoulli": ("alpha", "beta"),
            "finite": ("concentration",),
            "poisson": ("shape", "inverse_scale"),
            "normal": ("prior_mean", "prior_kappa", "prior_shape", "prior_scale"),
        }[family]
        columns = [data[n].values for n in names]
        columns = list(columns[0].T) if family == "finite" else columns
    if family == "finite":
        mass = np.maximum(posterior["probability"].values, 1e-300)
        return np.asarray(((np.asarray(columns).T - 1) * np.log(mass)).sum(axis=(-2, -1)))
    if family == "bernoulli":
        density = stats.beta.logpdf(
            np.clip(posterior["theta"].values, 1e-300, 1 - 2.0**-53), columns[0], columns[1]
        )
    elif family == "poisson":
        density = stats.gamma.logpdf(
            np.maximum(posterior["rate"].values, 1e-300), columns[0], scale=1 / columns[1]
        )
    else:
        mean, sd = posterior["mean"].values, posterior["sd"].values
        density = stats.norm.logpdf(mean, columns[0], sd / np.sqrt(columns[1]))
        density = density + stats.invgamma.logpdf(sd**2, columns[2], scale=columns[3])
    return np.asarray(density.sum(axis=-1))
