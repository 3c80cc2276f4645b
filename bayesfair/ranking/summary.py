"""A fit as plain values with fixed keys, for JSON and for the command line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayesfair.base.arguments import takes
from bayesfair.base.estimates import Z95, interval
from bayesfair.base.notices import Notice, notices_from_json, unique
from bayesfair.base.read_fits import reads_fits
from bayesfair.comparisons import Comparisons
from bayesfair.comparisons.fitted_data import fitted_data
from bayesfair.ranking.table import rank_table

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fit_summary"]


@takes()
@reads_fits
def fit_summary(
    tree: xr.DataTree,
    comparisons: Comparisons,
    *,
    anchor: str | None = None,
    tier_probability: float = 0.95,
) -> dict[str, Any]:
    """Return a fit as a JSON-ready dict.

    Parameters
    ----------
    tree : xarray.DataTree
        What ``fit(comparisons, ...)`` returned.
    comparisons : Comparisons
    anchor, tier_probability
        As in `rank_table`.

    Returns
    -------
    dict
        Keys ``bayesfair, model, method, prior, ties, n_ties_left_out, n_comparisons,
        log_likelihood`` (at the mode, without binomial coefficients), ``interval`` (what the
        intervals are), ``tier_probability`` (from which two items are told apart), ``power`` (of a
        tempered posterior), ``parameters{order_effect, log_tie, coefficients{name}}`` (each
        ``mean, sd, lower, upper``; None where the model has none),
        ``items, graph, diagnostics, notices, findings``. Items best first, those without data last
        and unranked: ``item, n, n_wins`` (came first alone), ``log_worth, worth, p_rank1, rank``
        (with ``shared``: 1 + number of items told apart from it and better), ``tier``,
        ``letters`` (items that share one are not told apart), ``island``
        (numbered from 0). A value that cannot be had is None, with its reason under notices.

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> duels = Comparisons.from_counts(["a"], ["b"], [7], [3])
    >>> summary = fit_summary(fit(duels, seed=1), duels)
    >>> [item["item"] for item in summary["items"]], summary["graph"]["never_lose"]
    (['a', 'b'], [])
    """
    comparisons = fitted_data(tree, comparisons)
    table = rank_table(tree, anchor=anchor, tier_probability=tier_probability)
    links = comparisons.connectivity()
    attrs = tree.attrs
    items = []
    for i, name in enumerate(table["item"].values):
        value: dict[str, Any] = {
            str(column): _plain(table[column].values[i])
            for column in table.data_vars
            if column != "letters"
        }
        items.append(
            {
                "item": str(name),
                "n": value["n"],
                "n_wins": value["n_wins"],
                "log_worth": _spread(value, "log_worth") | {"sd": value["log_worth_sd"]},
                "worth": _spread(value, "worth"),
                "p_rank1": value["p_rank1"],
                "rank": _spread(value, "rank", mean="rank_mean") | {"shared": value["rank_shared"]},
                "tier": value["tier"] or None,
                "letters": str(table["letters"].values[i]) or None,
                "island": None if value["island"] == -1 else value["island"],
            }
        )
        order = ("mean", "sd", "lower", "upper")
        items[-1]["log_worth"] = {key: items[-1]["log_worth"][key] for key in order}
    notices = unique(_notices(tree, comparisons, anchor))
    found = ("certified", "khat", "efficiency", "ess", "rhat_max", "ess_min", "divergences")
    return {
        "bayesfair": str(attrs["bayesfair"]),
        "model": str(attrs["model"]),
        "method": str(attrs["method"]),
        "prior": str(attrs["prior"]),
        "ties": str(attrs["ties"]),
        "n_ties_left_out": _plain(attrs.get("n_ties_left_out", 0)),
        "n_comparisons": _plain(comparisons.n_comparisons),
        "log_likelihood": _log_likelihood(tree),
        "interval": str(table.attrs["interval"]),
        "tier_probability": float(table.attrs["tier_probability"]),
        "power": _plain(attrs.get("power")),
        "parameters": _parameters(tree),
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


def _log_likelihood(tree: xr.DataTree) -> float | None:
    """Return the log-likelihood at the mode; a model of one's own has no mode."""
    if "mode" not in tree.children:
        return None
    return float(tree["mode"].to_dataset()["log_likelihood"].values)


def _parameters(tree: xr.DataTree) -> dict[str, Any]:
    """Return what a model has besides worths: order effect, log tie parameter, coefficients."""
    sampled = "posterior" in tree.children
    group = tree["posterior" if sampled else "mode"].to_dataset()

    def one(name: str, at: Mapping[str, str] | None = None) -> dict[str, Any]:
        value = group[name].sel(at or {}).values
        if sampled:
            found: list[Any] = [value.mean(), value.std(ddof=1), *interval(value.ravel())]
        else:
            error = float(group[f"{name}_standard_error"].sel(at or {}).values)
            found = [value, error, value - Z95 * error, value + Z95 * error]
        return dict(zip(("mean", "sd", "lower", "upper"), map(_plain, found), strict=True))

    names = group["covariate"].values if "coefficient" in group else ()
    return {
        "order_effect": one("order_effect") if "order_effect" in group else None,
        "log_tie": one("log_tie") if "log_tie" in group else None,
        "coefficients": {str(name): one("coefficient", {"covariate": name}) for name in names},
    }


def _notices(tree: xr.DataTree, comparisons: Comparisons, anchor: str | None) -> list[str]:
    notices: list[str] = list(notices_from_json(tree.attrs.get("notices")))
    links = comparisons.connectivity()
    known = set(notices)
    notices += [text for text in links.sentences() if text not in known and not links.mle_exists]
    if links.no_data:
        notices.append(Notice(
            "Items without data have no rank: their worth is the prior's.",
            kind="no_data", n=len(links.no_data),
        ))  # fmt: skip
    if "posterior" not in tree.children:
        notices.append(Notice(
            "Maximum likelihood: mean is the estimate, sd its standard error, intervals are normal "
            "approximations. There is no posterior, so p_rank1 and ranks have no value.",
            kind="maximum_likelihood",
        ))  # fmt: skip
    if anchor is not None:
        notices.append(Notice(
            f"Log-worths are shown relative to {anchor!r} at 0; gaps and widths of intervals are "
            "those of the sum-to-zero scale.",
            kind="anchor", column="anchor", value=anchor,
        ))  # fmt: skip
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
