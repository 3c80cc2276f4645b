"""The command ``bayesfair fit``: a table of worths and ranks from a file of comparisons."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import typer

from bayesfair.base.options import Effect
from bayesfair.base.shown import MOST_ROWS, cells, shortened, table
from bayesfair.base.writing import replacing, write_tree
from bayesfair.cli import options as opt
from bayesfair.cli.tools import check_suffix, check_targets, meanings, write
from bayesfair.cli.tools import labels as csv_labels

__all__ = ["FIT_HELP", "fit_command", "render_fit"]

FIT_HELP = """Fit duels, choices or rankings: worths and ranks with their uncertainty.

Columns are found by their usual names (left, right, winner; model_a, model_b, winner; winner,
loser; ranking, item, rank) or named. PrefLib files (.soc, .soi, .toc, .toi) and arena-style JSON
lines are read too.

Example: `bayesfair fit --example baseball`

Example: `bayesfair fit battles.csv --left model_a --right model_b --winner winner --json fit.json`

Example: `bayesfair fit counts.csv --left i --right j --wins w_ij,w_ji --tied t_ij`
"""

#: Longest side of a picture; the renderer stops at 2^16.
_MOST_PIXELS = 60_000

#: Columns that a narrow terminal can spare, in this order.
_SPARED = ("sd", "log-worth", "won", "n", "tier", "95 %")

#: How the bundled comparisons are read.
_EXAMPLES: dict[str, dict[str, Any]] = {
    "baseball": {
        "left": "home",
        "right": "away",
        "wins": ("home_wins", "away_wins"),
        "first": "left",
    },
}


_WITH_EXAMPLE = {
    name: Effect(frozenset(), "bundled comparisons are read in one way")
    for name in ("left", "right", "wins", "first")
}


def fit_command(  # noqa: D103, PLR0917 - typer: the help is FIT_HELP, options are arguments
    context: typer.Context,
    file: opt.File = None,
    example: opt.ExampleComparisons = None,
    format: opt.Format = "auto",
    left: opt.Left = None,
    right: opt.Right = None,
    winner: opt.Winner = None,
    loser: opt.Loser = None,
    wins: opt.Wins = None,
    tied: opt.Tied = None,
    outcomes: opt.Outcomes = None,
    winner_is: opt.WinnerIs = None,
    unknown: opt.Unknown = "error",
    both_bad: opt.BothBad = "tie",
    ranking: opt.Ranking = None,
    item: opt.Item = None,
    rank: opt.Rank = None,
    orderings: opt.Orderings = None,
    ranks: opt.Ranks = None,
    lowest_is_best: opt.LowestIsBest = True,
    tie_tolerance: opt.TieTolerance = 0.0,
    unranked: opt.Unranked = None,
    last_tie: opt.LastTie = None,
    chosen: opt.Chosen = None,
    offered: opt.OfferedItems = None,
    separator: opt.Separator = "|",
    first: opt.First = None,
    weight: opt.Weight = None,
    items: opt.Items = None,
    partial: opt.Partial = None,
    missing: opt.MissingRows = "error",
    labels: opt.PreflibLabels = "names",
    delimiter: opt.Delimiter = None,
    model: opt.WorthModel = None,
    ties: opt.Ties = None,
    order_effect: opt.OrderEffect = None,
    method: opt.Method = "auto",
    prior_sd: opt.PriorSd = 1.0,
    anchor: opt.Anchor = None,
    check: opt.Check = False,
    draws: opt.Draws = 4000,
    seed: opt.Seed = 0,
    json_file: opt.JsonFile = None,
    plot: opt.Plot = None,
    save: opt.SaveFit = None,
) -> None:
    from bayesfair.base.checks import check_choice
    from bayesfair.base.options import refuse_without_effect
    from bayesfair.errors import BayesfairWarning, DataError, OptionError
    from bayesfair.inference import fit
    from bayesfair.ranking.summary import fit_summary
    from bayesfair.readers.duels.comparisons import read_comparisons

    if (file is None) == (example is None):
        raise OptionError(
            "give a FILE of comparisons, or --example baseball; see bayesfair fit --help."
        )
    check_targets({"--json": json_file, "--plot": plot, "--save": save}, read=file)
    check_suffix(plot, "--plot", (".png", ".svg", ".pdf"))
    named: dict[str, Any] = {
        "format": format, "left": left, "right": right, "winner": winner, "loser": loser,
        "wins": _pair(wins), "tied": tied, "outcomes": meanings(outcomes, "--outcomes"),
        "ranking": ranking, "item": item, "rank": rank,
        "orderings": csv_labels(orderings, "--orderings"), "ranks": csv_labels(ranks, "--ranks"),
        "lowest_is_best": lowest_is_best, "tie_tolerance": tie_tolerance, "unranked": unranked,
        "last_tie": last_tie, "separator": separator, "winner_is": winner_is, "chosen": chosen,
        "offered": offered, "first": first, "weight": weight, "delimiter": delimiter,
    }  # fmt: skip
    source: Any = file
    if example is not None:
        from bayesfair import examples

        fixed = _EXAMPLES[check_choice(example, "--example", tuple(_EXAMPLES))]
        asked = {name: named[name] for name in fixed if named[name] is not None}
        refuse_without_effect(asked, (), _WITH_EXAMPLE, f"--example {example}")
        named |= fixed
        source = examples.path(example)
    options: dict[str, Any] = {"ties": ties} if ties is not None else {}
    if order_effect is not None:
        options["order_effect"] = order_effect
    with warnings.catch_warnings():
        # what these warnings say is among the notices of the report
        warnings.simplefilter("ignore", BayesfairWarning)
        comparisons = read_comparisons(
            source, **named, items=csv_labels(items, "--items"), partial=partial, missing=missing,
            labels=labels, unknown=unknown, both_bad=both_bad,
        )  # fmt: skip
        if not comparisons.n_comparisons:
            raise DataError(
                f"no comparison is left in {comparisons.source}: rows may have been left out, have "
                "weight 0, or compare an item with itself; rankings need two items. "
                + " ".join(comparisons.notices)
            )
        tree = fit(
            comparisons, model=model, method=method, prior_sd=prior_sd, draws=draws, seed=seed,
            progress=_on_terminal(), **options,
        )  # fmt: skip
    numbers = fit_summary(tree, comparisons, anchor=anchor)
    if check:
        numbers["notices"] += _checks(tree, comparisons, seed)
    if save is not None:
        write_tree(tree, save)
    if plot is not None:
        _draw(tree, plot, anchor)
    text = render_fit(tree, comparisons, numbers, width=_terminal_width())
    write(numbers, text, json_file, context)


def _checks(tree: Any, comparisons: Any, seed: int) -> list[str]:
    """Return, in plain words, how well the model fits and how few comparisons its top hangs on."""
    import math

    from bayesfair.errors import BayesfairError
    from bayesfair.ranking import influence, pl_consistency

    sentences = []
    try:
        found = pl_consistency(tree, comparisons, seed=seed)
    except BayesfairError as reason:
        sentences.append(f"Check: whether one worth per item fits could not be judged: {reason}")
    else:
        p = float(found["p_value"])
        verdict = (
            "fits badly: the pairs contradict one worth per item" if p < 0.05 else "is not refuted"
        )
        sentences.append(
            f"Check: one worth per item {verdict}. Inconsistency "
            f"{float(found['inconsistency']):.3f}, {float(found['inconsistency_expected']):.3f} "
            f"expected under the model (p = {p:.3g}); {int(found['cycles'])} triples in a circle, "
            f"{float(found['cycles_expected']):.1f} expected."
        )
    try:
        hangs = influence(tree, comparisons)
    except BayesfairError as reason:
        return [*sentences, f"Check: no influence on the top could be computed: {reason}"]
    n, leader = float(hangs["flip_n"]), hangs.attrs["leader"]
    if math.isnan(n):
        return [
            *sentences,
            f"Check: no set of comparisons was found without which {leader!r} falls.",
        ]
    removed: dict[str, float] = {}  # the same duel on either side is one kind
    for name, count in zip(hangs["comparison"].values, hangs["flip_removed"].values, strict=True):
        if count:
            removed[str(name)] = removed.get(str(name), 0.0) + float(count)
    few = [f"{count:.12g} x {name}" for name, count in removed.items()]
    more = f" and {len(few) - 4} more kinds" if len(few) > 4 else ""
    return [
        *sentences,
        f"Check: without {n:.12g} of {tree.attrs['n_comparisons']:.12g} comparisons "
        f"({100 * float(hangs['flip_share']):.2g} %) {hangs.attrs['flip_to']!r} would have the "
        f"highest worth instead of {leader!r}: {'; '.join(few[:4])}{more}.",
    ]


def _pair(text: str | None) -> tuple[str, str] | None:
    names = csv_labels(text, "--wins")
    if names is None:
        return None
    if len(names) != 2:
        from bayesfair.errors import OptionError

        raise OptionError(
            f"--wins {text!r} must name two columns: wins of left, wins of right, with a comma.",
            kind="bad_value",
            column="wins",
            value=text,
        )
    return names[0], names[1]


def _on_terminal() -> bool:
    import sys

    return sys.stderr.isatty()


def _draw(tree: Any, path: Path, anchor: str | None) -> None:
    """Write the plot without touching the state of pyplot: no display is needed."""
    from matplotlib.figure import Figure

    from bayesfair.plots import plot_ranks, rank_figure_size
    from bayesfair.ranking import rank_table

    table = rank_table(tree, anchor=anchor)
    size = rank_figure_size(table.sizes["item"])
    figure = Figure(figsize=size, layout="constrained")
    plot_ranks(table, ax=figure.subplots())
    kind = path.suffix[1:].lower()
    with replacing(path) as draft:
        figure.savefig(draft, format=kind, dpi=min(100, _MOST_PIXELS / max(size)))


def _terminal_width() -> int | None:
    """Return the columns of the terminal that is printed to; None if it is none."""
    import shutil
    import sys

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


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
    tree: Any, comparisons: Any, numbers: dict[str, Any], *, width: int | None = None
) -> str:
    """Return the report of a fit as plain text, for lines of `width` characters if given."""
    import textwrap

    from bayesfair.audit.text import number
    from bayesfair.ranking import rank_table

    ranks = rank_table(tree)
    links = comparisons.connectivity()
    many = len(links.weak_components) > 1
    posterior = "posterior" in tree.children
    header = ["item", "rank", "tier", "n", "won", "worth", "95 %", "log-worth", "sd"]
    header += ["P(rank 1)", "ranks 95 %"] if posterior else []
    header += ["island"] if many else []
    rows = []
    most = len(numbers["items"]) if width is None else MOST_ROWS  # in a file all of them
    shown = numbers["items"][:most]
    labels = shortened(row["item"] for row in shown)
    for i, row in enumerate(shown):
        at = {name: ranks[name].values[i] for name in ranks.data_vars}
        none = at["island"] < 0
        line = [
            labels[i],
            "no data" if none else f"{at['rank_shared']:.0f}",
            "-" if none else f"{at['tier']}",
            number(row["n"], 1),
            f"{at['n_wins']:.12g}",
            number(row["worth"]["mean"]),
            f"[{number(row['worth']['lower'])}, {number(row['worth']['upper'])}]",
            f"{row['log_worth']['mean']:.3f}",
            f"{row['log_worth']['sd']:.3f}",
        ]
        if posterior:
            limits = (row["rank"]["lower"], row["rank"]["upper"])
            line += [
                "-" if none else f"{row['p_rank1']:.3f}",
                "-" if none else f"{limits[0]}-{limits[1]}",
            ]
        if many:
            line.append("-" if none else str(at["island"] + 1))
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
    lines = [
        f"{numbers['model']} fit of {comparisons.source}",
        f"  {numbers['n_comparisons']:.12g} {comparisons.kind} of {comparisons.n_items} items"
        f"{ties.get(numbers['ties'], '')}{partial.get(comparisons.partial or '', '')}",
        f"  method: {method}",
        f"  prior: {numbers['prior']}",
        "",
        *table(header, rows, n=len(numbers["items"]), most=most),
        "",
        *_extras(tree, posterior),
    ]
    legend = [
        "Rank 1 = best. rank: 1 + number of items told apart from it and better (probability >= "
        f"{ranks.attrs['tier_probability']:g}).",
        "A new tier begins where every item above is told apart from every item below.",
        f"Intervals: {ranks.attrs['interval']}; won: came first alone.",
    ]
    if gone:
        legend.append(
            f"Left out for want of width: {', '.join(gone)} (a wider terminal, or --json)."
        )
    for text in legend:
        lines += textwrap.wrap(text, 110 if width is None else width)
    if numbers["notices"]:
        lines += ["", "Notices"]
        for notice in numbers["notices"]:
            lines += textwrap.wrap(
                notice, min(96, width or 96), initial_indent="  * ", subsequent_indent="    ",
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
    return "\n".join(lines)


def _extras(tree: Any, posterior: bool) -> list[str]:
    """Describe the parameters besides worths: order effect, ties, covariates."""
    import numpy as np

    group = tree["posterior" if posterior else "mode"].to_dataset()
    lines = []
    scale = (
        "on the scale of log-worths, probit" if tree.attrs["model"] == "thurstone" else "log-odds"
    )
    names = {"order_effect": f"order effect ({scale})", "log_tie": "log tie parameter"}
    for name, title in names.items():
        if name not in group:
            continue
        value = group[name].values
        if posterior:
            low, high = np.quantile(value, [0.025, 0.975])
            lines.append(f"{title}: {value.mean():.3f} [{low:.3f}, {high:.3f}]")
        else:
            error = float(group[f"{name}_standard_error"].values)
            lines.append(f"{title}: {float(value):.3f} (standard error {error:.3f})")
    if "coefficient" in group:
        for covariate in group["covariate"].values:
            value = group["coefficient"].sel(covariate=covariate).values
            low, high = np.quantile(value, [0.025, 0.975])
            lines.append(f"coefficient of {covariate}: {value.mean():.3f} [{low:.3f}, {high:.3f}]")
    return [*lines, ""] if lines else []
