"""The command ``bayesfair audit-comparisons``: whether who is compared with whom is fair."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import typer

from bayesfair.cli import options as opt

__all__ = ["AUDIT_COMPARISONS_HELP", "audit_comparisons_command"]

AUDIT_COMPARISONS_HELP = """Audit who is compared with whom: are similar items sampled similarly?

Columns: as in `bayesfair fit` (left, right, winner; model_a, model_b, winner; winner, loser), and
where present p_{item} (the law of the slot), or propensity (the probability with which the item on
the left was put there), and timestamp or tstamp. Without probabilities, shares in windows stand for
them.

Example: `bayesfair audit-comparisons battles.csv --json audit.json`

Example: `bayesfair audit-comparisons battles.jsonl --order tstamp --slot mean --window 1000`
"""

_STAMPS = ("timestamp", "tstamp")
_EXIT = {"unfair": ("unfair",), "undetermined": ("unfair", "undetermined")}


def audit_comparisons_command(  # noqa: D103, PLR0917 - typer: the help is above, options are arguments
    file: opt.DuelFile,
    left: opt.Left = None,
    right: opt.Right = None,
    winner: opt.Winner = None,
    loser: opt.Loser = None,
    outcomes: opt.Outcomes = None,
    unknown: opt.Unknown = "error",
    both_bad: opt.BothBad = "tie",
    missing: opt.MissingRows = "error",
    items: opt.Items = None,
    order: opt.DuelOrder = None,
    propensity: opt.DuelPropensity = None,
    probabilities: opt.DuelProbabilities = None,
    delimiter: opt.Delimiter = None,
    slot: opt.Slot = "first",
    window: opt.Window = None,
    eps1: opt.Eps1 = 2.0,
    eps2: opt.DuelEps2 = 0.05,
    delta: opt.Delta = 0.05,
    model: opt.DuelModel = None,
    prior_sd: opt.PriorSd = 1.0,
    draws: opt.Draws = 4000,
    seed: opt.Seed = 0,
    json_file: opt.JsonFile = None,
    fail_on: opt.FailOn = None,
) -> None:
    from bayesfair.audit.duels import audit_comparisons
    from bayesfair.checks import check_choice
    from bayesfair.cli.fit import outcome_words
    from bayesfair.cli.tools import check_targets, labels, reading, write
    from bayesfair.errors import BayesfairWarning
    from bayesfair.readers.comparison_probabilities import header_of, read_duel_probabilities
    from bayesfair.readers.comparisons import read_comparisons

    check_targets({"--json": json_file}, read=file)
    if fail_on is not None:
        check_choice(fail_on, "--fail-on", tuple(_EXIT))
    header = header_of(file, delimiter=delimiter)
    if order is None:
        order = next((name for name in _STAMPS if name in header), None)
    order = order or None  # '' takes the rows as they stand
    with warnings.catch_warnings(), reading(file):
        warnings.simplefilter("ignore", BayesfairWarning)  # they are among the notices
        duels = read_comparisons(
            file, left=left, right=right, winner=winner, loser=loser, items=labels(items),
            outcomes=outcome_words(outcomes), unknown=unknown, both_bad=both_bad, missing=missing,
            order=order, keep_rows=True, delimiter=delimiter,
        )  # fmt: skip
        logged = read_duel_probabilities(
            file, duels.items, **_columns(propensity, probabilities, header, duels.items),
            order=order, delimiter=delimiter,
        )  # fmt: skip
    audit = audit_comparisons(
        duels,
        slot=slot,
        selection_probability=logged.selection,
        propensity=logged.propensity,
        window=window,
        eps1=eps1,
        eps2=eps2,
        delta=delta,
        model=model,
        prior_sd=prior_sd,
        draws=draws,
        seed=seed,
    )
    write(audit.to_dict(), str(audit), json_file)
    if fail_on is not None and audit.verdict in _EXIT[fail_on]:
        print(f"verdict {audit.verdict} (--fail-on {fail_on})", file=sys.stderr)
        raise typer.Exit(1)


def _columns(
    propensity: str | None,
    probabilities: str | None,
    header: tuple[str, ...],
    items: tuple[str, ...],
) -> dict[str, Any]:
    """Return the columns of probabilities: those named, else those with the usual names."""
    if probabilities is None and not propensity and any(f"p_{item}" in header for item in items):
        probabilities = "p_{item}"
    if propensity is None and not probabilities and "propensity" in header:
        propensity = "propensity"
    return {"propensity": propensity or None, "probabilities": probabilities or None}
