"""Exact posterior draws where a closed form exists; nothing here imports PyMC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import listed
from bayesfair.base.labels import label_order
from bayesfair.base.notices import Notice
from bayesfair.errors import OptionError
from bayesfair.families.prior_conflict import prior_conflicts
from bayesfair.families.priors import (
    PRIOR_PARAMETERS,
    LearnedPrior,
    describe_prior,
    history_prior,
    prior_table,
)
from bayesfair.families.sufficient import (
    count_totals,
    earlier_counts,
    level_counts,
    moments,
    success_counts,
)
from bayesfair.history import History
from bayesfair.inference.contract import CLOSED_FORM, FAMILY_READS
from bayesfair.inference.tree import N_CHAINS, make_tree, posterior_dataset

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["closed_form_notices", "fit_conjugate", "posterior_table"]

FloatArray = NDArray[np.float64]


def posterior_table(
    history: History, family: str, *, prior: Any = None, support: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return the parameters of prior and posterior, ``(k, p)`` each, and the reward levels.

    Parameters are those of `bayesfair.families.priors.PRIOR_PARAMETERS`; the posterior has the
    same form as
    the prior.

    Examples
    --------
    >>> history = History(["a", "b", "a"], [1, 0, 0])
    >>> posterior_table(history, "bernoulli")[1]
    array([[1.5, 1.5],
           [0.5, 1.5]])
    """
    levels = None
    if family == "bernoulli":
        pulls, won = success_counts(history)
        before = earlier_counts(history, family, whole=False)
        table = prior_table(prior, family, history.arms)
        return table, table + before + np.stack([won, pulls - won], axis=1), levels
    earlier_counts(history, family, whole=False)
    if family == "finite":
        levels, counts = level_counts(history, support)
        table = prior_table(prior, family, history.arms, len(levels))
        return table, table + counts, levels
    table, _ = history_prior(prior, family, history)
    if family == "poisson":
        pulls, total = count_totals(history)
        return table, table + np.stack([total, pulls], axis=1), levels
    pulls, average, squares = moments(history)
    mean, kappa, shape, scale = table.T
    weight = kappa + pulls
    posterior = [
        (kappa * mean + pulls * average) / weight,
        weight,
        shape + pulls / 2,
        scale + squares / 2 + kappa * pulls * (average - mean) ** 2 / (2 * weight),
    ]
    return table, np.stack(posterior, axis=1), levels


def closed_form_notices(
    history: History, family: str, *, prior: Any = None, support: Any = None
) -> list[Notice]:
    """Say where the prior was learned, and where rewards lie far outside of it."""
    before, after, levels = posterior_table(history, family, prior=prior, support=support)
    _, learned = history_prior(prior, family, history, before.shape[1])
    found = [] if learned is None else [learned.notice()]
    return found + prior_conflicts(
        before, after, family, history.arms, levels, learned=learned is not None
    )


def draw_posterior(
    family: str,
    table: FloatArray,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    arms: Sequence[str],
) -> dict[str, FloatArray]:
    """Return independent draws, ``(*shape, k)`` or ``(*shape, k, L)`` each.

    An arm's draws go with its label, not with its place among the arms.
    """
    order = label_order(arms)
    drawn = _draws(family, table[order], shape, rng)
    back = np.argsort(order)
    if np.array_equal(order, np.arange(len(order))):
        return drawn
    return {name: values.take(back, axis=len(shape)) for name, values in drawn.items()}


def _draws(
    family: str, table: FloatArray, shape: tuple[int, ...], rng: np.random.Generator
) -> dict[str, FloatArray]:
    k = len(table)
    if family == "bernoulli":
        return {"theta": rng.beta(table[:, 0], table[:, 1], size=(*shape, k))}
    if family == "finite":
        weights = rng.standard_gamma(table, size=(*shape, *table.shape))
        total = weights.sum(axis=-1, keepdims=True)
        # concentrations far below 1 can underflow every weight: the mass then sits on one level
        share = np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0)
        bad = ~(total[..., 0] > 0)
        if bad.any():
            i = np.nonzero(bad)[-1]
            cumulative = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)[i]
            pick = (rng.random(len(i))[:, None] > cumulative[:, :-1]).sum(axis=1)
            share[bad] = np.eye(table.shape[1])[pick]
        return {"probability": share}
    if family == "poisson":
        return {"rate": rng.gamma(table[:, 0], 1 / table[:, 1], size=(*shape, k))}
    mean, kappa, a, scale = table.T
    sd = np.sqrt(scale / rng.standard_gamma(a, size=(*shape, k)))
    return {"mean": mean + sd / np.sqrt(kappa) * rng.standard_normal((*shape, k)), "sd": sd}


def fit_conjugate(
    history: History,
    family: str,
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

    if support is not None and family != "finite":
        options["support"] = support
    if options:
        known = ["prior"] + (["support"] if family == "finite" else [])
        raise OptionError(
            f"model {CLOSED_FORM[family]!r} has no option {next(iter(options))!r}. "
            f"Options: {listed(known)}."
        )
    before, after, levels = posterior_table(history, family, prior=prior, support=support)
    learned = LearnedPrior.of(history) if family == "normal" and prior is None else None
    values = draw_posterior(family, after, (N_CHAINS, draws // N_CHAINS), rng, history.arms)
    coords: dict[str, Any] = {"arm": list(history.arms)}
    extra: tuple[str, ...] = ()
    parameters = list(PRIOR_PARAMETERS[family])
    if levels is not None:
        coords["level"], extra = levels, ("level",)
        parameters = [f"{parameters[0]}[{level:g}]" for level in levels]
    dims = {name: ("arm", *extra) for name in FAMILY_READS[family]}
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
