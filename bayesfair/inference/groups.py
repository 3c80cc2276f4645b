"""The groups of a fit that ArviZ's own functions read, one value for each observed round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.arguments import FIT, FLAG, takes
from bayesfair.base.checks import as_generator, no_seed
from bayesfair.base.read_fits import reads_fits
from bayesfair.errors import OptionError
from bayesfair.history import History
from bayesfair.inference.elpd import cells_of_fit, log_likelihood_of_cells
from bayesfair.inference.posterior import rewards_from_posterior
from bayesfair.inference.prior_power import log_prior_of
from bayesfair.typing import Floats, Model, Seed

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["with_groups"]

_MOST = 100_000_000
"""Draws times observed rounds that a group may hold: 800 MB."""


@takes(tree=FIT, log_likelihood=FLAG, posterior_predictive=FLAG, log_prior=FLAG)
@reads_fits
def with_groups(
    tree: xr.DataTree,
    data: History | None = None,
    *,
    model: Model | None = None,
    log_likelihood: bool = True,
    posterior_predictive: bool = True,
    log_prior: bool = True,
    seed: Seed | None = None,
) -> xr.DataTree:
    """Return a fit with the groups that ArviZ's own functions read.

    ``arviz.loo``, ``compare``, ``psense_summary``, ``plot_ppc_dist`` and ``plot_loo_pit`` take what
    it returns. `bayesfair.loo`, `bayesfair.compare` and `bayesfair.prior_sensitivity` need none of
    it, and work on the distinct rewards of a log however long it is.

    Parameters
    ----------
    tree : xarray.DataTree
        What `bayesfair.fit` returned for a history.
    data : History, optional
        The history that was fitted; needed as for `bayesfair.loo` and `bayesfair.prior_sensitivity`
        (more than 20 000 distinct rewards; a model of your own without ``log_prior``).
    model : callable, optional
        Your own build function, if the tree is a fit of it and `log_prior` is wanted.
    log_likelihood : bool
        Group ``log_likelihood``: ``reward``, dims ``(chain, draw, observation)``, in nats.
    posterior_predictive : bool
        Group ``posterior_predictive``: a reward drawn anew for each observed round and draw.
    log_prior : bool
        Group ``log_prior``: ``prior``, dims ``(chain, draw)``, the log density of the top-level
        prior, up to a constant.
    seed : int or numpy Generator, optional
        Of the predictive draws; default that of the fit.

    Returns
    -------
    xarray.DataTree
        A new tree. Its group ``observed_data`` holds ``reward``, ``(observation,)``: the observed
        rewards in the order of their rounds, instead of the counts that the model may have taken.

    Raises
    ------
    OptionError
        For a fit of comparisons, another history, a prior that cannot be evaluated, or groups above
        10^8 numbers.

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> history = History(["a", "b"] * 20, [1, 0, 1, 1] * 10)
    >>> whole = with_groups(fit(history, seed=1, draws=400))
    >>> whole["log_likelihood"]["reward"].shape, whole["observed_data"]["reward"].shape
    ((4, 100, 40), (40,))
    """
    import xarray as xr

    if tree.attrs.get("reads") == "log_worth":
        raise OptionError(
            "with_groups is for fits of histories, and this is one of comparisons: bayesfair.loo "
            "and bayesfair.compare take it with its comparisons.",
            kind="wrong_kind",
            column="tree",
        )
    cells = cells_of_fit(tree, data)
    posterior = tree["posterior"].to_dataset()
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    place = cells["cell"]
    size = shape[0] * shape[1] * len(place)
    if size > _MOST and (log_likelihood or posterior_predictive):
        raise OptionError(
            f"{shape[0] * shape[1]} draws of {len(place)} observed rounds are {size:.2g} numbers, "
            f"more than {_MOST:.0e}: give fewer draws (tree.isel(draw=slice(None, None, 10))), or "
            "use bayesfair.loo and bayesfair.compare, which need no such table.",
            kind="too_large",
            column="data",
            value=size,
        )

    def of_rounds(values: Floats) -> xr.Dataset:
        """Return numbers ``(draw, observation)`` as a group."""
        each = values.reshape(*shape, len(place))
        group: xr.Dataset = coords.assign(reward=(("chain", "draw", "observation"), each))
        return group.assign_attrs(sample_dims=["chain", "draw"])

    coords = xr.Dataset(
        coords={
            "chain": posterior["chain"],
            "draw": posterior["draw"],
            "observation": np.arange(len(place)),
        }
    )
    groups = {str(name): node.to_dataset() for name, node in tree.children.items()}
    seen = ("observation", cells["reward"][place])
    groups["observed_data"] = xr.Dataset({"reward": seen}, {"observation": coords["observation"]})
    if log_likelihood:
        groups["log_likelihood"] = of_rounds(log_likelihood_of_cells(tree, cells)[:, place])
    if posterior_predictive:
        groups["posterior_predictive"] = of_rounds(_predicted(tree, cells, seed))
    if log_prior:
        density = np.broadcast_to(log_prior_of(tree, data, model), shape)
        group = coords.drop_vars("observation").assign(prior=(("chain", "draw"), density))
        groups["log_prior"] = group.assign_attrs(sample_dims=["chain", "draw"])
    whole = xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    whole.attrs.update(tree.attrs)
    return whole


def _predicted(tree: xr.DataTree, cells: dict[str, Any], seed: Seed | None) -> Floats:
    """Return one reward for each draw and observed round, ``(draw, observation)``."""
    if seed is None:
        try:
            seed = int(tree.attrs["seed"])
        except (KeyError, ValueError):
            raise no_seed("posterior predictive rewards are drawn, and the fit has no seed of its "
                          "own,", ", or posterior_predictive=False") from None  # fmt: skip
    rng = as_generator(seed)
    rewards = rewards_from_posterior(tree)
    arm, time_bin = cells["arm"][cells["cell"]], cells["bin"][cells["cell"]]
    names = [str(i) for i in range(len(arm))]
    if len(rewards.batch_shape) == 1:
        return np.asarray(rewards.taken(arm, names).sample(seed=rng))
    found = np.empty((rewards.batch_shape[0], len(arm)))
    for b in np.unique(time_bin).tolist():
        here = np.flatnonzero(time_bin == b)
        found[:, here] = rewards[:, b].taken(arm[here], names[: len(here)]).sample(seed=rng)
    return found
