"""A fit to comparisons as plain text, from the same values as its JSON."""

from __future__ import annotations

from typing import Any

from bayesfair.base.shown import MOST_ROWS, cells, in_cells, number, shortened, table
from bayesfair.comparisons import Comparisons
from bayesfair.ranking.letters import in_runs

__all__ = ["render_fit"]

#: Columns that a narrow terminal can spare, in this order.
_SPARED = ("sd", "log-worth", "won", "n", "tier", "letters", "95 %")


def _narrowed(
    header: list[str], rows: list[list[str]], width: int | None
) -> tuple[list[str], list[list[str]], list[str]]:
    """Leave out columns that can be spared until the table fits; return which."""
    gone: list[str] = []
    for name in _SPARED:
        widest = [max(map(cells, column)) for column in zip(header, *rows, strict=True)]
        if width is None or sum(widest) + 2 * len(widest) <= width:
            break
        if name in header:
            at = header.index(name)
            header = header[:at] + header[at + 1 :]
            rows = [row[:at] + row[at + 1 :] for row in rows]
            gone.append(name)
    return header, rows, gone


def render_fit(
    comparisons: Comparisons, numbers: dict[str, Any], *, width: int | None = None
) -> str:
    """Return the report of a fit as plain text, for lines of `width` characters if given."""
    many = len(numbers["graph"]["weak_components"]) > 1
    posterior = any(row["p_rank1"] is not None for row in numbers["items"])
    header = ["item", "rank", "tier", "letters", "n", "won", "worth", "95 %", "log-worth", "sd"]
    header += ["P(rank 1)", "ranks 95 %"] if posterior else []
    header += ["island"] if many else []
    rows = []
    most = len(numbers["items"]) if width is None else MOST_ROWS  # in a file all of them
    shown = numbers["items"][:most]
    letters = shortened(in_runs(row["letters"] or "") or "-" for row in shown)
    labels = shortened(row["item"] for row in shown)
    for label, same, row in zip(labels, letters, shown, strict=True):
        rank, none = row["rank"], row["island"] is None
        line = [
            label,
            "no data" if none else str(rank["shared"]),
            "-" if none else str(row["tier"]),
            same,
            number(row["n"], 1),
            f"{row['n_wins']:.12g}",
            number(row["worth"]["mean"]),
            f"[{number(row['worth']['lower'])}, {number(row['worth']['upper'])}]",
            f"{row['log_worth']['mean']:.3f}",
            f"{row['log_worth']['sd']:.3f}",
        ]
        if posterior:
            line += [
                "-" if none else f"{row['p_rank1']:.3f}",
                "-" if none else f"{rank['lower']}-{rank['upper']}",
            ]
        if many:
            line.append("-" if none else str(row["island"] + 1))
        rows.append(line)
    header, rows, gone = _narrowed(header, rows, width)
    method = numbers["method"]
    found = numbers["diagnostics"]
    if method == "laplace":
        method += f" (k-hat {number(found['khat'], 2)}, effective sample size {found['ess']:.0f})"
    elif method == "nuts":
        method += (
            f" (R-hat {number(found['rhat_max'], 3)}, effective sample size "
            f"{found['ess_min']:.0f}, {found['divergences']} divergences)"
        )
    ties = {"none": "", "model": ", ties modelled", "half": ", ties as half a win each",
            "drop": f", {numbers['n_ties_left_out'] or 0:.12g} ties left out",
            "average": ", ties averaged over their orders"}  # fmt: skip
    partial = {"subset": ", unranked items were not on offer",
               "top": ", unranked items rank below"}  # fmt: skip
    end = -1 if numbers["n_comparisons"] == 1 else None
    lines = [
        f"{numbers['model']} fit of {comparisons.source}",
        f"  {numbers['n_comparisons']:.12g} {comparisons.kind[:end]} of "
        f"{comparisons.n_items} items"
        f"{ties.get(numbers['ties'], '')}{partial.get(comparisons.partial or '', '')}",
        f"  method: {method}",
        f"  prior: {numbers['prior']}",
        "",
        *table(header, rows, n=len(numbers["items"]), most=most),
        "",
        *_extras(numbers, posterior),
    ]
    legend = [
        "Rank 1 = best. rank: 1 + number of items told apart from it and better (probability >= "
        f"{numbers['tier_probability']:g}).",
        "A new tier begins where every item above is told apart from every item below. Items that "
        "share a letter are not told apart; a-d stands for a, b, c and d.",
        f"Intervals: {numbers['interval']}; won: came first alone.",
    ]
    if gone:
        legend.append(
            f"Left out for want of width: {', '.join(gone)} (a wider terminal, or --json)."
        )
    for text in legend:
        lines += in_cells(text, 110 if width is None else width)
    if numbers["notices"]:
        lines += ["", "Notices"]
        for notice in numbers["notices"]:
            lines += in_cells(
                notice, min(96, width or 96), initial_indent="  * ", subsequent_indent="    "
            )
    return "\n".join(lines)


def _extras(numbers: dict[str, Any], posterior: bool) -> list[str]:
    """Describe the parameters besides worths: order effect, ties, covariates."""
    found = numbers["parameters"]
    scale = "on the scale of log-worths, probit" if numbers["model"] == "thurstone" else "log-odds"
    named = {
        f"order effect ({scale})": found["order_effect"],
        "log tie parameter": found["log_tie"],
        **{f"coefficient of {name}": value for name, value in found["coefficients"].items()},
    }
    lines = []
    for title, value in named.items():
        if value is None:
            continue
        within = f"[{number(value['lower'], 3)}, {number(value['upper'], 3)}]"
        error = within if posterior else f"(standard error {number(value['sd'], 3)})"
        lines.append(f"{title}: {number(value['mean'], 3)} {error}")
    return [*lines, ""] if lines else []
