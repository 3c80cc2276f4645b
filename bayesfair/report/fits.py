"""What the page of a fit to comparisons shows."""

from __future__ import annotations

from typing import Any

from bayesfair.base.checks import counted
from bayesfair.base.shown import number
from bayesfair.errors import BayesfairError
from bayesfair.inference.influence import influence
from bayesfair.plots import plot_influence
from bayesfair.ranking.letters import in_runs
from bayesfair.report.figures import fit_figures
from bayesfair.report.fit_checks import check_sentences
from bayesfair.report.svg import figure

__all__ = ["fit_context"]

_MOST_ITEMS = 200


def fit_context(tree: Any, comparisons: Any, numbers: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return what the page of a fit shows.

    Parameters
    ----------
    tree : xarray.DataTree
    comparisons : Comparisons
    numbers : dict
        Of `bayesfair.ranking.summary.fit_summary`.
    seed : int
        Of replicated data in the checks.
    """
    figures = fit_figures(tree, comparisons, seed)
    hangs: Any = None
    try:
        hangs = influence(tree, comparisons)
    except BayesfairError:
        pass  # the sentence of the checks says why
    else:
        shown = min(hangs.sizes["comparison"], 30)
        figures.append(figure(
            "influence", lambda axes: plot_influence(hangs, ax=axes),
            "How the lead of the top item changes without each kind of comparison.",
            "How the lead of the top item over the next changes without each kind of comparison; "
            "marked: the fewest that would turn it.", 1.3 + 0.24 * shown,
        ))  # fmt: skip
    first = numbers["items"][0]
    ranked = [item for item in numbers["items"] if item["island"] is not None]
    graph = numbers["graph"]
    return {
        "audit": numbers,
        "source": str(comparisons.source),
        "size": _size(comparisons, numbers),
        "first": first,
        "leader": _leader(first),
        "rows": [_row(item) for item in numbers["items"][:_MOST_ITEMS]],
        "n_unlisted": max(len(numbers["items"]) - _MOST_ITEMS, 0),
        "n_ranked": len(ranked),
        "extras": _extras(numbers),
        "links": _links(graph),
        "check_lines": [
            _sentence(text.removeprefix("Check: "))
            for text in check_sentences(tree, comparisons, seed, hangs)
        ],
        "method": _method(numbers),
        "figures": figures,
    }


def _size(comparisons: Any, numbers: dict[str, Any]) -> str:
    n, left_out = int(comparisons.n_comparisons), int(numbers["n_ties_left_out"])
    of = f"{n - left_out} of {n} comparisons" if left_out else counted(n, "comparison")
    return f"{of} of {counted(comparisons.n_items, 'item')}{', ties left out' * bool(left_out)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _leader(item: dict[str, Any]) -> str:
    if item["p_rank1"] is None:
        return "has the highest estimated worth; an estimate alone has no probability of ranks."
    low, high = item["rank"]["lower"], item["rank"]["upper"]
    rank = f"is {low}" if low == high else f"lies between {low} and {high}"
    return (
        f"has the highest worth; it ranks first with probability {number(item['p_rank1'])}, and "
        f"its rank {rank} (95 %)."
    )


def _row(item: dict[str, Any]) -> list[str]:
    none, rank = item["island"] is None, item["rank"]
    known = not none and item["p_rank1"] is not None
    worth, log = item["worth"], item["log_worth"]
    return [
        item["item"],
        "no data" if none else str(rank["shared"]),
        f"{rank['lower']} to {rank['upper']}" if known else "-",
        number(item["p_rank1"]) if known else "-",
        in_runs(item["letters"] or "") or "-",
        number(worth["mean"]),
        f"[{number(worth['lower'])}, {number(worth['upper'])}]",
        f"{log['mean']:.3f}",
        f"[{log['lower']:.3f}, {log['upper']:.3f}]" if log["lower"] is not None else "-",
        number(item["n"], 1),
        f"{item['n_wins']:.12g}",
    ]


def _extras(numbers: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the effects besides worths, each with its 95 % interval."""
    found = numbers["parameters"]
    named = {
        "order effect (of being first)": found["order_effect"],
        "log tie parameter": found["log_tie"],
        **{f"coefficient of {name}": value for name, value in found["coefficients"].items()},
    }
    return [
        (name, f"{value['mean']:.3f} [{value['lower']:.3f}, {value['upper']:.3f}]")
        for name, value in named.items()
        if value is not None
    ]


def _links(graph: dict[str, Any]) -> list[str]:
    """Say what links the items: islands, and who never lost or won."""
    weak, strong = graph["weak_components"], graph["strong_components"]
    found = [
        "Chains of comparisons link all items."
        if len(weak) == 1
        else f"The items form {len(weak)} islands that share no comparison: between islands only "
        "the prior speaks."
    ]
    if len(weak) == 1:
        found.append(
            "From each item a chain of wins leads to each other: worths are finite without a prior."
            if len(strong) == 1
            else f"By wins they form {len(strong)} classes: without a prior, worths of some would "
            "be infinitely far apart."
        )
    for key, what in (("never_lose", "never lost"), ("never_win", "never won")):
        if graph[key]:
            found.append(f"{counted(len(graph[key]), 'item')} {what}.")
    return found


def _method(numbers: dict[str, Any]) -> str:
    found, method = numbers["diagnostics"], numbers["method"]
    if method == "laplace":
        return (
            f"a normal approximation at the mode, reweighted to the posterior (k-hat "
            f"{number(found['khat'], 2)}, effective sample size {found['ess']:.0f})"
        )
    if method == "nuts":
        return (
            f"NUTS (R-hat {number(found['rhat_max'], 3)}, effective sample size "
            f"{found['ess_min']:.0f}, {found['divergences']} divergences)"
        )
    return str(method)
