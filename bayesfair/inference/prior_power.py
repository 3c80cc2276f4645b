"""How much a posterior owes to its prior: powers of the prior by reweighting its draws."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.arguments import MAPPING, NUMBER, takes
from bayesfair.base.json_text import from_json
from bayesfair.base.read_fits import reads_fits
from bayesfair.errors import OptionError
from bayesfair.families import FAMILIES
from bayesfair.history import History
from bayesfair.inference.contract import SHIPPED, closed_form, contract_of
from bayesfair.inference.elpd import cells_of_fit, log_likelihood_of_cells
from bayesfair.inference.posterior import dim_of, rewards_from_posterior
from bayesfair.inference.reweight import psis_weights
from bayesfair.typing import Floats, Model

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["log_prior_of", "prior_power_weights", "prior_sensitivity"]


@takes(quantities=MAPPING, threshold=NUMBER)
@reads_fits
def prior_sensitivity(
    tree: xr.DataTree,
    history: History | None = None,
    *,
    model: Model | None = None,
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
    _require_fit_of_a_history(tree, history)
    posterior = tree["posterior"].to_dataset()
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    cells = cells_of_fit(tree, history)
    log_likelihood = log_likelihood_of_cells(tree, cells) @ cells["count"].astype(float)
    log_prior = np.broadcast_to(log_prior_of(tree, history, model), shape)
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


def _require_fit_of_a_history(tree: Any, history: Any) -> None:
    """Raise unless these are a fit of a history and, where it is given, the history."""
    given = type(tree).__name__
    if "posterior" not in getattr(tree, "children", {}):
        raise OptionError(
            f"prior_sensitivity needs what bayesfair.fit(history, ...) returned, with draws; got "
            f"{given}. An audit of a history has a prior_sensitivity() of its own.",
            kind="wrong_kind",
            column="tree",
        )
    if tree.attrs.get("reads") == "log_worth" or "family" not in tree.attrs:
        raise OptionError(
            "this is a fit of comparisons, and prior_sensitivity is for fits of histories. Fit "
            "again with another prior_sd= to see what hangs on the prior of the worths.",
            kind="wrong_kind",
            column="tree",
        )
    if history is not None and not isinstance(history, History):
        raise OptionError(
            f"history= must be the History that was fitted, got {type(history).__name__}.",
            kind="wrong_kind",
            column="history",
        )


def _sensitivity_table(
    chosen: xr.Dataset, log_prior: Floats, log_likelihood: Floats, threshold: float
) -> pd.DataFrame:
    """Return ArviZ's sensitivities of each variable to both components, with its diagnosis."""
    import arviz_stats as az
    import xarray as xr
    from arviz_base import dataset_to_dataframe

    def component(name: str, values: Floats) -> xr.Dataset:
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
) -> tuple[Floats, Floats]:
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
    log_prior = np.broadcast_to(log_prior_of(tree, history, model), shape).ravel()
    weights, khat = np.empty((len(powers), log_prior.size)), np.empty(len(powers))
    for p, power in enumerate(powers):
        if power == 1:
            weights[p], khat[p] = 1 / log_prior.size, -np.inf
        else:
            weights[p], khat[p] = psis_weights((power - 1) * log_prior, 1.0)
    return weights, khat


def _default_quantities(tree: xr.DataTree) -> dict[str, Floats]:
    if dim_of(tree) is not None:
        return {}
    return {"best_arm_probability": rewards_from_posterior(tree).best_arm_probability()}


def log_prior_of(tree: xr.DataTree, history: History | None, model: Any) -> Any:
    """Return the log density of the top-level prior at each draw, ``(chain, draw)``."""
    posterior = tree["posterior"].to_dataset()
    name = str(tree.attrs["model"])
    options = from_json(
        tree.attrs["model_options"], "the attribute 'model_options' of the fit",
        remedy="Fit again.",
    )  # fmt: skip
    if closed_form(name) is not None:
        return _conjugate_log_prior(tree, posterior)
    if model is None and name not in SHIPPED:
        raise OptionError(
            f"this is a fit of your own model {name!r}; give it again (model=) with the history, "
            "so that its prior can be evaluated."
        )
    contract = contract_of(name if model is None else model)
    if contract.log_prior is not None:
        named = inspect.signature(contract.log_prior).parameters  # it may take options of build
        rest = any(p.kind is p.VAR_KEYWORD for p in named.values())
        taken = {n: value for n, value in options.items() if rest or n in named}
        return _of_draws(contract.log_prior(posterior, **taken), name, posterior)
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


def _of_draws(density: Any, name: str, posterior: xr.Dataset) -> Floats:
    """Return what a model's own `log_prior` gave, an array or a DataArray, by chain and draw."""
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    if hasattr(density, "dims") and set(density.dims) == {"chain", "draw"}:
        density = density.transpose("chain", "draw")
    found = np.asarray(density, dtype=np.float64)
    if found.shape != shape:
        dims = getattr(density, "dims", "no dims")
        raise OptionError(
            f"log_prior of model {name!r} returned shape {found.shape} ({dims}), expected one "
            f"number for each draw, {shape} (chain, draw): sum over the other dims.",
            kind="wrong_shape",
            column="log_prior",
            value=found.shape,
        )
    return found


def _conjugate_log_prior(tree: xr.DataTree, posterior: xr.Dataset) -> Floats:
    """Return the log prior density of a closed-form model, up to a constant."""
    data = tree["constant_data"].to_dataset()
    family = FAMILIES[str(tree.attrs["family"])]
    if "prior" in data:
        prior = data["prior"].values
    else:  # fitted by NUTS: the containers of the PyMC model
        columns = [data[name].values for name in family.containers]
        prior = columns[0] if family.has_levels else np.stack(columns, axis=-1)
    return family.log_prior({name: posterior[name].values for name in family.reads}, prior)
