"""What was changed in a fit that comes from a file or from other hands, where reading it fails."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, cast

from bayesfair.errors import BayesfairError, OptionError

__all__ = ["fault_of", "reads_fits"]

_TEXT = {
    "bayesfair", "family", "kind", "method", "model", "model_options", "notices", "partial",
    "prior", "reads", "source", "standard_errors", "ties",
}  # fmt: skip
_NUMBERS = {
    "certified", "coefficient_sd", "converged", "draws", "efficiency", "ess", "ess_min", "khat",
    "n_comparisons", "n_rounds", "n_ties_left_out", "order_sd", "power", "prior_sd", "rhat_max",
    "tie_sd",
}  # fmt: skip
_FAULTS = (KeyError, IndexError, TypeError, ValueError, AttributeError)


def reads_fits[F: Callable[..., Any]](function: F) -> F:
    """Let a function that takes a fit, or a mapping of them, say what is wrong with the fit.

    The fit is looked at only where the function fails: what is wrong elsewhere stays as it is.
    """

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BayesfairError:
            raise
        except _FAULTS as error:
            tree: Any = next(iter((*args, *kwargs.values())), None)
            trees: list[Any] = list(tree.values()) if _is_mapping(tree) else [tree]
            found = next((f for one in trees if (f := fault_of(one, error)) is not None), None)
            if found is None:
                raise
            raise OptionError(
                f"this is not what bayesfair.fit returned: {found}. Fit again, or read the file "
                "that was saved.",
                kind="changed_fit",
                column="tree",
            ) from error

    return cast(F, guarded)


def _is_mapping(tree: Any) -> bool:
    """Whether this is a mapping of fits; a tree is a mapping too, of its groups."""
    import xarray as xr

    return isinstance(tree, Mapping) and not isinstance(tree, xr.DataTree)


def fault_of(tree: Any, error: Exception) -> str | None:
    """Return what is wrong with a fit that could not be read; None if nothing seems to be.

    Parameters
    ----------
    tree : xarray.DataTree
        The fit.
    error : Exception
        What its reading ended with.
    """
    import xarray as xr

    if not isinstance(tree, xr.DataTree):
        return f"it is {type(tree).__name__}"
    for name, value in tree.attrs.items():
        if name in _TEXT and not isinstance(value, str):
            return f"its attribute {name!r} is {value!r:.60}, no text"
        if name in _NUMBERS and (not isinstance(value, Real) or isinstance(value, bool)):
            return f"its attribute {name!r} is {value!r:.60}, no number"
    for group, node in tree.children.items():
        for name, values in node.data_vars.items():
            if values.dtype.kind not in "fiub":
                return f"{name!r} in its group {group!r} holds no numbers"
    if isinstance(error, KeyError):
        return f"it lacks something ({str(error.args[0] if error.args else error)[:80]})"
    return None
