"""Posterior of the arms of a history: closed form, or NUTS on the PyMC model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.checks import as_generator, check_choice, check_in_range, listed
from bayesfair.base.labels import by_label, label_order
from bayesfair.base.notices import few_draws, notices_to_json
from bayesfair.errors import ConvergenceError, OptionError
from bayesfair.families import FAMILIES, Family
from bayesfair.families.logs import choose_family, prior_notices, prior_of
from bayesfair.families.priors import describe_prior
from bayesfair.history import History
from bayesfair.history.cells import reward_cells
from bayesfair.inference.conjugate import fit_conjugate
from bayesfair.inference.contract import (
    Contract,
    check_reads,
    closed_form,
    contract_of,
    family_of_models,
)
from bayesfair.inference.nuts import CompiledModel, divergence_notices, refusal, unconverged
from bayesfair.inference.posterior import bins_of
from bayesfair.inference.sampler import Sampler
from bayesfair.inference.tree import N_CHAINS, in_order_of, make_tree, seed_label, storable_groups

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fit_history", "options_in_label_order", "resolve_model", "total_draws"]

# Cells are kept with the fit for `loo` and `prior_sensitivity`; continuous rewards have too many.
_MAX_CELLS = 20_000


def total_draws(draws: Any, chains: int = N_CHAINS) -> int:
    """Return the number of draws, rounded up to a multiple of the number of chains."""
    number = check_in_range(draws, "draws", chains, 10_000_000)
    if number != int(number):
        raise OptionError(f"draws={draws!r} must be a whole number, the total over all chains.")
    return -(-int(number) // chains) * chains


def resolve_model(
    history: History, model: Any, family: str
) -> tuple[Any, Family | None, tuple[str, ...]]:
    """Return (model, its reward family if known without importing it, notices)."""
    check_choice(family, "family", ("auto", *FAMILIES))
    notices: tuple[str, ...] = ()
    if isinstance(model, str):
        return model, FAMILIES[family_of_models(family, model)], notices
    if model is not None:
        return model, FAMILIES.get(family), notices
    if family == "auto":
        family, why = choose_family(history)
        notices = () if FAMILIES[family].binary else (why,)
    return FAMILIES[family].model, FAMILIES[family], notices


def fit_history(
    history: History,
    *,
    model: Any = None,
    method: str = "auto",
    family: str = "auto",
    prior: Any = None,
    draws: int = 4000,
    seed: Any,
    allow_unconverged: bool = False,
    cores: int | None = None,
    sampler: Sampler | None = None,
    **options: Any,
) -> xr.DataTree:
    """Return the posterior of the arms' parameters; see `bayesfair.fit`."""
    if not history.n_arms:
        raise OptionError(f"{history.source} has no arms, so there is nothing to fit.")
    check_choice(method, "method", ("auto", "conjugate", "nuts"))
    rng = as_generator(seed)
    sampler = sampler or Sampler()
    n_draws = total_draws(draws, sampler.chains)
    model, known, notices = resolve_model(history, model, family)
    closed = closed_form(model)
    if method == "conjugate" and closed is None:
        forms = listed([family.model for family in FAMILIES.values()])
        raise OptionError(
            f"method='conjugate' needs a model with a closed form: {forms}; "
            f"for model={model!r} use method='nuts'."
        )
    if prior is not None:
        named = isinstance(prior, Mapping)
        options["prior"] = by_label(prior, "arm", "prior") if named else prior
    if closed is not None and method != "nuts":
        sampler.refuse_without_chains(
            f"the posterior of {closed.model} is known in closed form and drawn exactly; "
            "the method 'nuts' samples it."
        )
        name, reads, chosen = str(model), closed.reads, closed.name
        tree = fit_conjugate(history, closed, draws=n_draws, rng=rng, **options)
        extra: dict[str, Any] = {"method": "conjugate"}
    else:
        contract = contract_of(model)
        if known is not None and contract.family != known.name:
            raise OptionError(
                f"model {contract.name!r} has rewards of family {contract.family!r}, not "
                f"{known.name!r}."
            )
        name, reads, chosen = contract.name, contract.reads, contract.family
        log, taken = history, contract.checked(options)
        if isinstance(model, str):  # a model of one's own may count on the arms as they stand
            log, taken = history.in_label_order(), options_in_label_order(taken, history.arms)
        tree, found = _fit_nuts(
            log, contract, taken, draws=n_draws,
            seed=int(rng.integers(2**31)), cores=cores, sampler=sampler,
        )  # fmt: skip
        if log is not history:
            tree = in_order_of(tree, history.arms, "arm")
        notices = (*notices, *divergence_notices(found))
        extra = {
            "method": "nuts",
            "rhat_max": found["rhat_max"],
            "ess_min": found["ess_min"],
            "divergences": found["divergences"],
        } | ({"sampler": sampler.given()} if sampler.given() else {})
    if closed is not None:
        prior, support = options.get("prior"), options.get("support")
        notices = (*notices, *prior_notices(history, closed, prior=prior, support=support))
    notices = (*notices, *few_draws(n_draws))
    tree.attrs.update(
        make_tree(
            {},
            {
                "model": name,
                "family": chosen,
                "reads": ",".join(reads),
                "seed": seed_label(seed),
                "draws": n_draws,
                "n_rounds": history.n_rounds,
                "model_options": options,
                "notices": list(notices),
                **extra,
            },
        ).attrs
    )
    _attach_cells(tree, history)
    if extra["method"] == "nuts":
        reason = refusal(found)
        if reason and not allow_unconverged:
            raise ConvergenceError(f"{name}: {reason}", tree, kind="unconverged")
        tree.attrs["converged"] = int(not reason)
        if reason:
            tree.attrs["notices"] = notices_to_json([*notices, unconverged(reason)])
    return tree


def options_in_label_order(options: dict[str, Any], arms: Sequence[str]) -> dict[str, Any]:
    """Return options with a prior that is given arm by arm in the order of the labels."""
    prior = options.get("prior")
    if prior is None or isinstance(prior, Mapping) or np.ndim(prior) < 2 or len(prior) != len(arms):
        return options
    return options | {"prior": [prior[i] for i in label_order(arms)]}


def _fit_nuts(
    history: History,
    contract: Contract,
    options: dict[str, Any],
    *,
    draws: int,
    seed: int,
    cores: int | None,
    sampler: Sampler,
) -> tuple[xr.DataTree, dict[str, Any]]:
    model = contract.build(history, **options)
    check_reads(contract, model, history)
    tree, found = CompiledModel(model, sampler).fit(draws=draws, seed=seed, cores=cores)
    groups = storable_groups(tree) | _data_groups(model)
    prior = contract.describe(options)
    family = closed_form(contract.name)
    if family is not None:
        levels = groups["posterior"].sizes.get("level")
        table, learned = prior_of(history, family, options.get("prior"), levels)
        prior = describe_prior(table, family, history.arms, learned)
    return make_tree(groups, {"prior": prior}), found


def _data_groups(model: Any) -> dict[str, xr.Dataset]:
    """Return observed and constant data of a PyMC model, labelled."""
    import xarray as xr
    from pytensor.compile.mode import Mode

    def dataset(values: dict[str, Any]) -> xr.Dataset:
        variables: dict[str, Any] = {}
        coords: dict[str, Any] = {}
        for name, given in values.items():
            dims = model.named_vars_to_dims.get(name)
            value = np.asarray(given)
            if dims is None or len(dims) != value.ndim:
                dims = [f"{name}_dim_{axis}" for axis in range(value.ndim)]
            variables[name] = (list(dims), value)
            coords |= {
                d: np.asarray(model.coords[d]) for d in dims if model.coords.get(d) is not None
            }
        return xr.Dataset(variables, coords=coords)

    # nothing worth compiling: a cast of a data container at most
    plain = Mode(linker="py", optimizer=None)
    observed = {v.name: model.rvs_to_values[v].eval(mode=plain) for v in model.observed_RVs}
    constants = {v.name: v.get_value() for v in model.data_vars}
    return {"observed_data": dataset(observed), "constant_data": dataset(constants)}


def _attach_cells(tree: xr.DataTree, history: History) -> None:
    """Keep the distinct rewards with their multiplicities, if they are few."""
    import xarray as xr

    cells = reward_cells(history, bins_of(tree, history))
    if len(cells["arm"]) <= _MAX_CELLS:
        names = ("arm", "reward", "bin", "count")
        # not `arm`: that is a dimension with labels in the other groups
        stored = {f"cell_{name}": ("cell", cells[name]) for name in names}
        stored["cell_of_observation"] = ("observation", cells["cell"].astype(np.int32))
        tree["reward_cells"] = xr.DataTree(xr.Dataset(stored))
