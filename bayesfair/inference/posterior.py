"""From posterior draws to reward distributions, one set of arms per draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import FIT, takes
from bayesfair.base.checks import listed
from bayesfair.base.read_fits import reads_fits
from bayesfair.errors import OptionError
from bayesfair.families import FAMILIES
from bayesfair.history import History
from bayesfair.history.cells import bins_along
from bayesfair.inference.tree import flat_reads

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["bin_starts", "bins_of", "dim_of", "rewards_from_posterior"]


@takes(tree=FIT)
@reads_fits
def rewards_from_posterior(tree: xr.DataTree) -> Any:
    """Return the reward distributions of the arms under each posterior draw.

    Parameters
    ----------
    tree : xarray.DataTree
        What `bayesfair.fit` returned for a history.

    Returns
    -------
    Rewards
        Family of the model, batch ``(draw,)`` with chains joined in order; ``(draw, bin)`` for a
        model with time bins (`bin_starts` says which rounds they hold), ``(draw, context)`` or
        ``(draw, round)`` for one given the context. Arms keep their labels.

    Raises
    ------
    OptionError
        If the tree has no record of what to read.

    Examples
    --------
    >>> from bayesfair.history import History
    >>> from bayesfair.inference import fit
    >>> posterior = fit(History(["a", "b", "a"], [1, 0, 1]), draws=400, seed=1)
    >>> rewards_from_posterior(posterior).mean.shape
    (400, 2)
    """
    reads = flat_reads(tree)
    posterior = tree["posterior"].to_dataset()
    if "arm" not in posterior.coords:
        raise OptionError(
            "this is a fit to comparisons, whose worths are no rewards: give one to a History.",
            kind="wrong_kind",
            column="tree",
        )
    arms = tuple(str(arm) for arm in posterior["arm"].values)
    level = np.asarray(posterior["level"].values, float) if "level" in posterior.coords else None
    return FAMILIES[str(tree.attrs["family"])].truth(reads, arms, level)


def dim_of(tree: xr.DataTree) -> str | None:
    """Return the dim that parameters have beside the arms: bin, context, round, or None."""
    sizes = tree["posterior"].to_dataset().sizes
    return next((dim for dim in ("bin", "context", "round") if dim in sizes), None)


def bins_of(tree: xr.DataTree, history: History) -> NDArray[np.int64] | None:
    """Return the time bin of every round, or its context, as the fit numbers them, (T,), or None.

    Raises
    ------
    OptionError
        If the log has other contexts than the one that was fitted.
    """
    dim = dim_of(tree)
    if dim == "context":
        fitted = tuple(str(c) for c in tree["posterior"].to_dataset()["context"].values)
        here = () if history.context is None else history.context.cells[1]
        if here != fitted:
            raise OptionError(
                f"the fit has the contexts {listed(fitted)}, the log {listed(here)}: give the log "
                "that was fitted.",
                kind="other_fit", column="context",
            )  # fmt: skip
    return bins_along(dim, history, bin_starts(tree))


def bin_starts(tree: xr.DataTree) -> NDArray[np.int64] | None:
    """Return the first round of each time bin, ``(B,)``, or None for a model without bins.

    Of a model with rewards by round each round is a bin.
    """
    posterior = tree["posterior"].to_dataset()
    if "round" in posterior.sizes:
        return np.arange(int(tree.attrs["n_rounds"]))
    if "bin" not in posterior.sizes:
        return None
    if "constant_data" in tree.children and "bin_start" in tree["constant_data"]:
        return np.asarray(tree["constant_data"]["bin_start"].values, dtype=np.int64)
    n_rounds, n_bins = int(tree.attrs["n_rounds"]), posterior.sizes["bin"]
    return np.arange(n_bins, dtype=np.int64) * n_rounds // n_bins
