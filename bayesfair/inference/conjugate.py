"""Exact posterior draws where a closed form exists; nothing here imports PyMC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.checks import listed
from bayesfair.errors import OptionError
from bayesfair.families import Family
from bayesfair.families.logs import posterior_of, prior_of
from bayesfair.families.priors import describe_prior
from bayesfair.history import History
from bayesfair.inference.tree import N_CHAINS, make_tree, posterior_dataset

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fit_conjugate"]


def fit_conjugate(
    history: History,
    family: Family,
    *,
    draws: int,
    rng: np.random.Generator,
    prior: Any = None,
    support: Any = None,
    **options: Any,
) -> xr.DataTree:
    """Return exact draws of the closed-form posterior, folded into four chains.

    Raises
    ------
    OptionError
        For options that the closed form does not have.
    """
    import xarray as xr

    if support is not None and not family.has_levels:
        options["support"] = support
    if options:
        known = ["prior"] + (["support"] if family.has_levels else [])
        raise OptionError(
            f"model {family.model!r} has no option {next(iter(options))!r}. "
            f"Options: {listed(known)}.",
            kind="unknown_option",
            column=next(iter(options)),
        )
    before, after, levels = posterior_of(history, family, prior=prior, support=support)
    _, learned = prior_of(history, family, prior, before.shape[1])
    values = family.draw(after, (N_CHAINS, draws // N_CHAINS), rng, history.arms)
    coords: dict[str, Any] = {"arm": list(history.arms)}
    extra: tuple[str, ...] = ()
    parameters = list(family.parameters)
    if family.has_levels:
        coords["level"], extra = levels, ("level",)
        parameters = [f"{parameters[0]}[{level:g}]" for level in levels]
    dims = {name: ("arm", *extra) for name in family.reads}
    tables = xr.Dataset(
        {
            "prior": (("arm", "parameter"), before),
            "closed_form": (("arm", "parameter"), after),
        },
        coords={"arm": list(history.arms), "parameter": parameters},
    )
    return make_tree(
        {"posterior": posterior_dataset(values, dims, coords), "constant_data": tables},
        {"prior": describe_prior(before, family, history.arms, learned)},
    )
