"""Draws of a fit to comparisons, chains joined, and which of its items have data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.errors import OptionError
from bayesfair.kernels.orders.orders import before_counts

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Fitted", "better_probability", "fitted", "ranks_of"]


@dataclass(frozen=True)
class Fitted:
    """What the tables read of a fit.

    Attributes
    ----------
    items : tuple of str
    model : str
    log_worth, worth : (n, k) arrays or None
        Draws; None after maximum likelihood.
    extra : dict of str to (n,) array
        Draws of ``order_effect`` and ``log_tie``, where the model has them.
    mode : xarray.Dataset or None
        Group ``mode``.
    n, n_wins : (k,) arrays
        Comparisons of each item; how often it came first alone. NaN where the tree does not say.
    island : (k,) array of int
        Items on different islands share no chain of comparisons; -1 = no data.
    """

    items: tuple[str, ...]
    model: str
    log_worth: NDArray[np.float64] | None
    worth: NDArray[np.float64] | None
    extra: dict[str, NDArray[np.float64]]
    mode: Any
    n: NDArray[np.float64]
    n_wins: NDArray[np.float64]
    island: NDArray[np.int64]

    @property
    def has_data(self) -> NDArray[np.bool_]:
        """Items that were compared at all, ``(k,)``."""
        return self.island >= 0

    @property
    def linked(self) -> NDArray[np.bool_]:
        """Pairs that the data compare, directly or through others, ``(k, k)``."""
        seen = self.has_data
        same: NDArray[np.bool_] = self.island[:, None] == self.island
        return same & seen[:, None] & seen

    @property
    def draws_or_estimate(self) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Log-worths ``(n, k)`` and `extra`; of maximum likelihood the one estimate, n = 1."""
        if self.log_worth is not None:
            return self.log_worth, self.extra
        names = [name for name in ("order_effect", "log_tie") if name in self.mode]
        extra = {name: np.atleast_1d(self.mode[name].values) for name in names}
        return self.mode["log_worth"].values[None, :], extra

    def island_notice(self) -> str:
        """Return what to say of islands and items without data; "" if there is nothing to say."""
        parts = []
        n_islands = len(set(self.island[self.has_data].tolist()))
        if n_islands > 1:
            parts.append(
                f"{n_islands} islands share no comparison: between them only the prior speaks, and "
                "items of different islands are never counted as told apart."
            )
        n_none = int((~self.has_data).sum())
        if n_none:
            are = "item without data is" if n_none == 1 else "items without data are"
            parts.append(f"{n_none} {are} listed last and not ranked.")
        return " ".join(parts)


def fitted(tree: xr.DataTree) -> Fitted:
    """Return the draws of a fit.

    Raises
    ------
    OptionError
        If the tree is no fit to comparisons.
    """
    import xarray as xr

    if not isinstance(tree, xr.DataTree):
        raise OptionError(
            f"a fit to comparisons is needed, got {type(tree).__name__}; give what "
            "bayesfair.fit(comparisons, ...) returned.",
            kind="no_fit",
            column="tree",
        )
    groups = set(tree.children)
    source = "posterior" if "posterior" in groups else "mode"
    if source not in groups or "log_worth" not in tree[source]:
        raise OptionError(
            f"this tree has groups {sorted(groups)} and no log_worth; use one that "
            "bayesfair.fit(comparisons, ...) returned."
        )
    group = tree[source].to_dataset()
    items = tuple(str(item) for item in group["item"].values)
    draws: dict[str, NDArray[np.float64]] = {}
    if source == "posterior":
        for name in ("log_worth", "worth", "order_effect", "log_tie"):
            if name in group:
                rest = [dim for dim in group[name].dims if dim not in ("chain", "draw")]
                value = group[name].transpose("chain", "draw", *rest).values
                draws[name] = np.asarray(value.reshape(-1, *value.shape[2:]), dtype=np.float64)
        if "worth" not in draws:
            share = np.exp(draws["log_worth"] - draws["log_worth"].max(axis=1, keepdims=True))
            draws["worth"] = share / share.sum(axis=1, keepdims=True)
    nothing = np.full(len(items), np.nan)
    counts = {"n": nothing, "n_wins": nothing, "island": np.zeros(len(items), np.int64)}
    if "constant_data" in groups:
        data = tree["constant_data"].to_dataset()
        for name in counts:
            if name in data:
                counts[name] = data[name].sel(item=list(items)).values
    return Fitted(
        items,
        str(tree.attrs.get("model", "")),
        draws.get("log_worth"),
        draws.get("worth"),
        {name: draws[name] for name in ("order_effect", "log_tie") if name in draws},
        tree["mode"].to_dataset() if "mode" in groups else None,
        np.asarray(counts["n"], dtype=np.float64),
        np.asarray(counts["n_wins"], dtype=np.float64),
        np.asarray(counts["island"], dtype=np.int64),
    )


def ranks_of(log_worth: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the rank of each item in each draw, 1 = best, ``(n, k)``.

    Examples
    --------
    >>> ranks_of(np.array([[0.1, 0.9, -1.0]]))
    array([[2, 1, 3]], dtype=int32)
    """
    order = np.argsort(-log_worth, axis=1, kind="stable")
    ranks = np.empty(order.shape, np.int32)
    place = np.arange(1, order.shape[1] + 1, dtype=np.int32)
    np.put_along_axis(ranks, order, np.broadcast_to(place, order.shape), axis=1)
    return ranks


def better_probability(ranks: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the share of draws in which item i ranks before item j, ``(k, k)``; diagonal NaN.

    Examples
    --------
    >>> better_probability(np.array([[1, 2], [2, 1], [1, 2], [1, 2]], np.int32))
    array([[ nan, 0.75],
           [0.25,  nan]])
    """
    table = before_counts(ranks) / len(ranks)
    np.fill_diagonal(table, np.nan)
    return np.asarray(table)
