"""The command ``bayesfair fit``: a table of worths and ranks from a file of comparisons."""

from __future__ import annotations

import math
import shutil
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesfair.base.options import Effect
from bayesfair.base.progress import following
from bayesfair.base.writing import replacing, write_tree
from bayesfair.cli.options import COMPARISON_COLUMNS, FIT_OUTPUT, FIT_QUESTION, Values, is_written
from bayesfair.cli.tools import check_suffix, check_targets, report_to, show_progress, write
from bayesfair.errors import BayesfairWarning

__all__ = ["FIT_HELP", "fit_command"]

FIT_HELP = """Fit duels, choices or rankings: worths and ranks with their uncertainty.

Columns are found by their usual names (left, right, winner; model_a, model_b, winner; winner,
loser; ranking, item, rank) or named. PrefLib files (.soc, .soi, .toc, .toi) and arena-style JSON
lines are read too.

Example: `bayesfair fit --example baseball`

Example: `bayesfair fit --example baseball --check --json fit.json`

Other columns: `bayesfair fit games.csv --left a --right b --winner won`

Counts: `bayesfair fit games.csv --left a --right b --wins a_won,b_won`
"""

#: Longest side of a picture; the renderer stops at 2^16.
_MOST_PIXELS = 60_000

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


def fit_command(  # noqa: D103 - the help is FIT_HELP
    shell: typer.Context,
    columns: Annotated[Values, COMPARISON_COLUMNS],
    question: Annotated[Values, FIT_QUESTION],
    output: Annotated[Values, FIT_OUTPUT],
    file: Annotated[str | None, typer.Argument(help="CSV, Parquet, PrefLib or JSON lines.")] = None,
    example: Annotated[
        str | None, typer.Option(help="Fit bundled comparisons instead: baseball.")
    ] = None,
) -> None:
    from bayesfair.errors import BayesfairWarning, DataError, OptionError
    from bayesfair.inference import fit
    from bayesfair.ranking.summary import fit_summary
    from bayesfair.ranking.text import render_fit
    from bayesfair.readers.duels.comparisons import read_comparisons
    from bayesfair.report.fit_checks import check_sentences

    if (file is None) == (example is None):
        raise OptionError(
            "give a FILE of comparisons, or --example baseball; see bayesfair fit --help."
        )
    check_targets(
        {
            "--json": output.json_file,
            "--plot": output.plot,
            "--save": output.save,
            "--report": output.report,
        },
        read=file,
    )
    check_suffix(output.plot, "--plot", (".png", ".svg", ".pdf"))
    source: Any = file if example is None else _bundled(example, columns)
    if math.isinf(question.prior_sd) and not is_written(shell, "seed"):
        question.seed = None  # maximum likelihood draws nothing
    options = {n: v for n, v in vars(question).items() if v is not None or n == "model"}
    own = {n: options.pop(n) for n in ("order_effect",) if n in options}
    with warnings.catch_warnings():
        # what these warnings say is among the notices of the report
        warnings.simplefilter("ignore", BayesfairWarning)
        named = vars(columns) | ({"weight": False} if columns.weight == "" else {})
        comparisons = read_comparisons(source, **named)
        if not comparisons.n_comparisons:
            raise DataError(
                f"no comparison is left in {comparisons.source}: rows may have been left out, have "
                "weight 0, or compare an item with itself; rankings need two items. "
                + " ".join(comparisons.notices)
            )
        tree = fit(comparisons, **options, model_options=own, progress=show_progress())
    numbers = fit_summary(
        tree, comparisons, anchor=output.anchor, tier_probability=output.tier_probability
    )
    if output.check:
        with following(show_progress()):
            numbers["notices"] += check_sentences(tree, comparisons, shell.params["seed"])
    if output.save is not None:
        write_tree(tree, output.save)
    report_to(tree, output.report, source, comparisons=comparisons)
    if output.plot is not None:
        _draw(tree, output.plot, output.anchor, output.tier_probability)
    text = render_fit(comparisons, numbers, width=_terminal_width())
    write(numbers, text, output.json_file, shell)


def _bundled(example: str, columns: Values) -> Any:
    """Return the file of a bundled example, and let the columns be those that it has."""
    from bayesfair import examples
    from bayesfair.base.checks import check_choice
    from bayesfair.base.options import refuse_without_effect

    fixed = _EXAMPLES[check_choice(example, "--example", tuple(_EXAMPLES))]
    given = vars(columns)
    asked = {name: given[name] for name in fixed if given[name] is not None}
    refuse_without_effect(asked, (), _WITH_EXAMPLE, f"--example {example}")
    given.update(fixed)
    return examples.path(example)


def _draw(tree: Any, path: Path, anchor: str | None, level: float) -> None:
    """Write the plot without touching the state of pyplot: no display is needed."""
    from matplotlib.figure import Figure

    from bayesfair.plots import plot_ranks, rank_figure_size
    from bayesfair.ranking import rank_table

    table = rank_table(tree, anchor=anchor, tier_probability=level)
    size = rank_figure_size(table.sizes["item"])
    figure = Figure(figsize=size, layout="constrained")
    plot_ranks(table, ax=figure.subplots())
    kind = path.suffix[1:].lower()
    with replacing(path) as draft, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure.savefig(draft, format=kind, dpi=min(100, _MOST_PIXELS / max(size)))
    letters = [w for w in told if str(w.message).startswith("Glyph ")]
    for other in told:
        if other not in letters:
            warnings.warn(other.message, stacklevel=1)
    if letters:
        warnings.warn(
            f"no font at hand has {len(letters)} of the letters of these items, and {str(path)!r} "
            "shows boxes for them: install a font of their script, such as Noto Sans CJK.",
            BayesfairWarning,
            stacklevel=1,
        )


def _terminal_width() -> int | None:
    """Return the columns of the terminal that is printed to; None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
