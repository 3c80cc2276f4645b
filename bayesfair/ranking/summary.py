"""A fit as plain values with fixed keys, for JSON and for the command line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayesfair.comparisons import Comparisons
from bayesfair.inference.fitted_data import fitted_data
from bayesfair.notices import notices_from_json, unique
from bayesfair.ranking.table import rank_table

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fit_summary"]


def fit_summary(
    tree: xr.DataTree, comparisons: Comparisons, *, anchor: str | None = None
) -> dict[str, Any]:
    """Return a fit as a JSON-ready dict.

    Parameters
    ----------
    tree : xarray.DataTree
        What ``fit(comparisons, ...)`` returned.
    comparisons : Comparisons
    anchor : str, optional
        As in `rank_table`.

    Returns
    -------
    dict
        Keys ``bayesfair, model, method, prior, ties, n_comparisons, items, graph, diagnostics,
        notices``; items best first, those without data last and unranked. Intervals are
        equal-tailed 95 %. A value that cannot be had is None, with its reason under notices.

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> duels = Comparisons.from_counts(["a"], ["b"], [7], [3])
    >>> summary = fit_summary(fit(duels, seed=1), duels)
    >>> [item["item"] for item in summary["items"]], summary["graph"]["never_lose"]
    (['a', 'b'], [])
    """
    comparisons = fitted_data(tree, comparisons)
    table = rank_table(tree, anchor=anchor)
    links = comparisons.connectivity()
    attrs = tree.attrs
    items = []
    for i, name in enumerate(table["item"].values):
        value: dict[str, Any] = {
            str(column): _plain(table[column].values[i]) for column in table.data_vars
        }
        items.append(
            {
                "item": str(name),
                "n": value["n"],
                "log_worth": _spread(value, "log_worth") | {"sd": value["log_worth_sd"]},
                "worth": _spread(value, "worth"),
                "p_rank1": value["p_rank1"],
                "rank": _spread(value, "rank", mean="rank_mean"),
            }
        )
        order = ("mean", "sd", "lower", "upper")
        items[-1]["log_worth"] = {key: items[-1]["log_worth"][key] for key in order}
    notices = unique(_notices(tree, comparisons, anchor))
    found = ("khat", "ess", "rhat_max", "ess_min", "divergences")
    return {
        "bayesfair": str(attrs["bayesfair"]),
        "model": str(attrs["model"]),
        "method": str(attrs["method"]),
        "prior": str(attrs["prior"]),
        "ties": str(attrs["ties"]),
        "n_comparisons": _plain(comparisons.n_comparisons),
        "items": items,
        "graph": {
            "weak_components": [list(part) for part in links.weak_components],
            "strong_components": [list(part) for part in links.strong_components],
            "never_lose": list(links.never_lose),
            "never_win": list(links.never_win),
        },
        "diagnostics": {name: _plain(attrs.get(name)) for name in found},
        "notices": [str(text) for text in notices],
        "findings": [text.to_dict() for text in notices],
    }


def _notices(tree: xr.DataTree, comparisons: Comparisons, anchor: str | None) -> list[str]:
    notices: list[str] = list(notices_from_json(tree.attrs.get("notices")))
    links = comparisons.connectivity()
    known = set(notices)
    notices += [text for text in links.sentences() if text not in known and not links.mle_exists]
    if links.no_data:
        notices.append("Items without data have no rank: their worth is the prior's.")
    if "posterior" not in tree.children:
        notices.append(
            "Maximum likelihood: mean is the estimate, sd its standard error, intervals are normal "
            "approximations. There is no posterior, so p_rank1 and ranks have no value."
        )
    if anchor is not None:
        notices.append(
            f"Log-worths are shown relative to {anchor!r} at 0; gaps and widths of intervals are "
            "those of the sum-to-zero scale."
        )
    return notices


def _spread(value: dict[str, Any], name: str, mean: str | None = None) -> dict[str, Any]:
    return {
        "mean": value[mean or name],
        "lower": value[f"{name}_lower"],
        "upper": value[f"{name}_upper"],
    }


def _plain(value: Any) -> Any:
    """Return a number that JSON can hold: whole numbers as int, what is not finite as None."""
    if value is None:
        return None
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
