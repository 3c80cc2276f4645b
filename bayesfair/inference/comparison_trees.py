"""Groups of a fit to comparisons, labelled: the mode, draws, and what the data say of each item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.labels import text_of
from bayesfair.comparisons import Comparisons
from bayesfair.comparisons.connectivity import Connectivity
from bayesfair.comparisons.worths import worth_of
from bayesfair.errors import ConvergenceError, OptionError
from bayesfair.inference.laplace import Mode, centred_covariance
from bayesfair.inference.nuts import CompiledModel, diagnose, divergence_notices, refusal
from bayesfair.inference.sampler import Sampler
from bayesfair.inference.tree import in_order_of, posterior_dataset, storable_groups
from bayesfair.inference.worth_nuts import sample_worths
from bayesfair.kernels.team import usable_cores

if TYPE_CHECKING:
    import xarray as xr

    from bayesfair.inference.comparison_problem import Problem
    from bayesfair.inference.robust import Robust

__all__ = [
    "add_worth",
    "data_group",
    "draws_group",
    "fitted_in_label_order",
    "mode_group",
    "nuts_groups",
    "worth_nuts_groups",
]

_LEAST = 1000  # draws per chain that convergence is judged by


def data_group(comparisons: Comparisons, links: Connectivity) -> xr.Dataset:
    """Return per item: comparisons, wins (came first alone), island (-1 = no data)."""
    import xarray as xr

    return xr.Dataset(
        {
            "n": ("item", comparisons.item_counts()),
            "n_wins": ("item", _times_first(comparisons)),
            "island": ("item", links.island),
        },
        coords={"item": np.array(comparisons.items)},
    )


def _times_first(comparisons: Comparisons) -> NDArray[np.float64]:
    k, count = comparisons.n_items, comparisons.count
    if comparisons.kind == "duels":
        won = comparisons.outcome < 2
        first = np.where(comparisons.outcome == 0, comparisons.left, comparisons.right)[won]
        return np.bincount(first, count[won], k).astype(np.float64)
    at, level = comparisons.start[:-1], comparisons.level
    alone = level[at] != level[np.minimum(at + 1, len(level) - 1)]
    return np.bincount(comparisons.item[at[alone]], count[alone], k).astype(np.float64)


def _parts(
    comparisons: Comparisons, problem: Problem, theta: NDArray[np.float64]
) -> dict[str, tuple[tuple[str, ...], NDArray[np.float64]]]:
    """Name the blocks of (rows of) the parameter vector: {name: (dims, values)}."""
    layout = problem.likelihood.layout
    log_worth = layout.log_worth(theta)
    parts: dict[str, tuple[tuple[str, ...], NDArray[np.float64]]] = {}
    parts["log_worth"] = (("item",), log_worth - log_worth.mean(axis=-1, keepdims=True))
    if layout.n_coefficients:
        scale = comparisons.standard_covariates()[1]
        slope = theta[..., layout.n_items : layout.order_at] / scale
        parts["coefficient"] = (("covariate",), slope)
    if layout.order:
        parts["order_effect"] = ((), theta[..., layout.order_at])
    if layout.tie:
        parts["log_tie"] = ((), theta[..., -1])
        parts["tie"] = ((), np.exp(theta[..., -1]))
    return parts


def mode_group(
    comparisons: Comparisons,
    problem: Problem,
    mode: Mode,
    reference: str | None,
    robust: Robust | None = None,
) -> xr.Dataset:
    """Return the mode with standard errors from the curvature there, or with robust ones."""
    import xarray as xr

    layout = problem.likelihood.layout
    outer, power = (None, 1.0) if robust is None else (robust.outer, robust.power)
    covariance, others = centred_covariance(
        problem.likelihood, mode.theta, problem.precision, outer
    )
    covariance, others = covariance / power, others / power
    items = np.array(comparisons.items)
    parts = _parts(comparisons, problem, mode.theta)
    values: dict[str, Any] = {name: part for name, part in parts.items()}
    values["worth"] = ("item", worth_of(problem.model, parts["log_worth"][1]))
    values["standard_error"] = ("item", np.sqrt(np.diag(covariance)))
    values["covariance"] = (("item", "item_other"), covariance)
    values["log_likelihood"] = ((), mode.log_likelihood / problem.power)
    spread = np.sqrt(others)
    if layout.n_coefficients:
        scale = comparisons.standard_covariates()[1]
        error = spread[: layout.n_coefficients] / scale
        values["coefficient_standard_error"] = ("covariate", error)
    if layout.order:
        values["order_effect_standard_error"] = ((), spread[layout.n_coefficients])
    if layout.tie:
        values["log_tie_standard_error"] = ((), spread[-1])
    if reference is not None:
        r = comparisons.items.index(reference)
        variance = np.diag(covariance) + covariance[r, r] - 2 * covariance[:, r]
        log_worth = parts["log_worth"][1]
        values["log_worth_relative"] = ("item", log_worth - log_worth[r])
        values["standard_error_relative"] = ("item", np.sqrt(np.maximum(variance, 0.0)))
    coords: dict[str, Any] = {"item": items, "item_other": items}
    if layout.n_coefficients:
        coords["covariate"] = np.array(comparisons.covariate_names)
    attrs = {"newton_steps": mode.n_steps} | ({"reference": reference} if reference else {})
    return xr.Dataset(values, coords=coords, attrs=attrs)


def draws_group(
    comparisons: Comparisons, problem: Problem, theta: NDArray[np.float64]
) -> xr.Dataset:
    """Return draws of the parameter vector, ``(chains, n, P)``, by name and label."""
    parts = _parts(comparisons, problem, theta)
    draws = {name: value for name, (_, value) in parts.items()}
    coords: dict[str, Any] = {"item": np.array(comparisons.items)}
    if "coefficient" in parts:
        coords["covariate"] = np.array(comparisons.covariate_names)
    return posterior_dataset(draws, {name: dims for name, (dims, _) in parts.items()}, coords)


def worth_nuts_groups(
    comparisons: Comparisons,
    problem: Problem,
    mode: Mode,
    *,
    rng: np.random.Generator,
    draws: int,
    cores: int | None,
    sampler: Sampler,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sample a shipped model by its own NUTS; return groups and attributes.

    Chains of at least 1000 draws, so that convergence is judged alike whatever `draws`; they
    are thinned to `draws` afterwards.
    """
    import xarray as xr

    per_chain = draws // sampler.chains
    every = -(-_LEAST // per_chain)
    groups: dict[str, Any] = {}
    found: dict[str, Any] = {}
    reason = ""
    for sampled in sample_worths(
        problem.likelihood,
        mode,
        problem.precision,
        draws=every * per_chain,
        rng=rng,
        threads=cores or usable_cores(),
        sampler=sampler,
    ):
        dims = ("chain", "draw")
        groups = {
            "posterior": draws_group(comparisons, problem, sampled.theta),
            "sample_stats": xr.Dataset(
                {
                    "n_steps": (dims, sampled.n_steps),
                    "diverging": (dims, sampled.diverging),
                    "step_size": ("chain", sampled.step_size),
                },
                attrs={"sample_dims": list(dims)},
            ),
        }
        found = diagnose(xr.DataTree.from_dict({f"/{n}": group for n, group in groups.items()}))
        reason = refusal(found)
        if not reason:
            break
    groups = {n: group.isel(draw=slice(None, None, every)) for n, group in groups.items()}
    attrs = {"method": "nuts", "refusal": reason}
    attrs |= {name: found[name] for name in ("rhat_max", "ess_min", "divergences")}
    return groups, attrs


def nuts_groups(
    comparisons: Comparisons,
    build: Callable[..., Any],
    options: Mapping[str, Any],
    *,
    rng: np.random.Generator,
    draws: int,
    cores: int | None,
    sampler: Sampler,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sample a PyMC model, ``build(comparisons, **options)``; return groups and attributes.

    Raises
    ------
    OptionError
        If the model has no `log_worth` with dims ("item",) over the items.
    """
    try:
        model = build(comparisons, **options)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # from within the model
        raise _no_model(f"{build!r:.60} cannot be called so: {error}") from None
    if not hasattr(model, "free_RVs"):
        raise _no_model(f"{build!r:.60} returned {type(model).__name__}")
    dims = tuple(getattr(model, "named_vars_to_dims", {}).get("log_worth") or ())
    if dims != ("item",) or tuple(map(text_of, model.coords["item"])) != comparisons.items:
        names = [v.name for v in (*model.free_RVs, *model.deterministics)]
        raise OptionError(
            "a model of comparisons needs a variable 'log_worth' with dims ('item',) and the items "
            f"of the data as coordinate; found {names} and dims {dims} of log_worth."
        )
    seed = int(rng.integers(2**31))
    tree, found = CompiledModel(model, sampler).fit(draws=draws, seed=seed, cores=cores)
    name = f"{getattr(build, '__module__', '?')}.{getattr(build, '__qualname__', 'build')}"
    attrs = {"method": "nuts", "refusal": refusal(found), "model": name, "ties": "none"}
    attrs |= {"prior": f"as written in {name}"}
    attrs |= {name: found[name] for name in ("rhat_max", "ess_min", "divergences")}
    return storable_groups(tree), attrs | {"notices": divergence_notices(found)}


def _no_model(found: str) -> OptionError:
    return OptionError(
        "model= must be a function build(comparisons, **options) that returns a pymc.Model, or the "
        f"name of a shipped model; {found}.",
        kind="no_model",
        column="model",
    )


def add_worth(tree: xr.DataTree) -> None:
    """Complete the posterior with worths, item by draw."""
    posterior = tree["posterior"].to_dataset()
    log_worth = posterior["log_worth"].transpose("chain", "draw", "item")
    worth = worth_of(str(tree.attrs["model"]), log_worth.values)
    tree["posterior"] = posterior.assign(worth=(log_worth.dims, worth))


_WIDE_SD = 30.0
_WIDE = (
    "With prior_sd={sd:g} the prior says next to nothing, and what the data leave open (items that "
    "always win or always lose, or that no chain of comparisons links) is as wide: give a smaller "
    "prior_sd, such as 3, or prior_sd=inf for maximum likelihood without a prior."
)


def _too_wide(width: Any) -> OptionError:
    return OptionError(
        f"prior_sd={width!r}: the curvature of the posterior cannot be inverted in double "
        "precision, as with a prior so wide that it says nothing. Give a smaller "
        "prior_sd, or prior_sd=inf for maximum likelihood without a prior.",
        kind="singular",
        column="prior_sd",
        value=width,
    )


def fitted_in_label_order[F: Callable[..., Any]](fit: F) -> F:
    """Let a fit take the items in the order of their labels, and give them back as they came.

    So a seed gives the same numbers by label, whatever the order of items or columns. A model of
    one's own may count on the items as they stand, and is left alone.
    """

    @wraps(fit)
    def fitted(comparisons: Comparisons, **asked: Any) -> xr.DataTree:
        ordered = comparisons.in_label_order()
        model = asked.get("model")
        if callable(getattr(model, "build", model)):
            made: xr.DataTree = fit(comparisons, **asked)
            return made
        dims = ("item", "item_other")
        width = asked.get("prior_sd", 1.0)
        wide = isinstance(width, (int, float)) and _WIDE_SD <= width < np.inf
        if wide and width * width == np.inf:
            raise _too_wide(width)
        try:
            made = fit(ordered, **asked)
            return made if ordered is comparisons else in_order_of(made, comparisons.items, *dims)
        except np.linalg.LinAlgError as error:
            raise _too_wide(width) from error
        except ConvergenceError as error:
            if error.tree is not None:
                error.tree = in_order_of(error.tree, comparisons.items, *dims)
            if wide:  # of a shipped model: not the model is at fault, but the prior
                error.args = (f"{error} {_WIDE.format(sd=width)}", *error.args[1:])
            raise

    return cast("F", fitted)
