"""The comparisons that a fit used, told from the tree it returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayesfair.base.checks import counted
from bayesfair.comparisons import Comparisons
from bayesfair.errors import OptionError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fitted_data"]


def fitted_data(tree: xr.DataTree, comparisons: Comparisons) -> Comparisons:
    """Return comparisons as the fit used them: without the ties that it was told to drop.

    Raises
    ------
    OptionError
        If `tree` is no fit to comparisons, or one to others than these.
    """
    attrs = getattr(tree, "attrs", {})
    if "n_comparisons" not in attrs or "constant_data" not in getattr(tree, "children", {}):
        raise OptionError(
            f"a fit to comparisons is needed, got {type(tree).__name__}; give what "
            "bayesfair.fit(comparisons, ...) returned.",
            kind="no_fit",
            column="tree",
        )
    if not isinstance(comparisons, Comparisons):
        raise OptionError(
            f"the fitted Comparisons are needed, got {type(comparisons).__name__}.",
            kind="no_comparisons",
            column="comparisons",
        )
    used = comparisons.without_ties() if attrs["ties"] == "drop" else comparisons
    items = {str(item) for item in tree["constant_data"].to_dataset()["item"].values}
    n = float(attrs["n_comparisons"])
    if items != set(used.items) or n != float(used.n_comparisons):
        raise OptionError(
            f"the fit saw {n:.12g} comparisons of {counted(len(items), 'item')}, these are "
            f"{used.n_comparisons:.12g} of {used.n_items}. Give the fitted data.",
            kind="other_data",
            column="comparisons",
        )
    return used
