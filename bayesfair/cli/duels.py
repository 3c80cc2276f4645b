"""The command ``bayesfair audit-comparisons``: whether who is compared with whom is fair."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import typer

from bayesfair.cli import options as opt
from bayesfair.errors import OptionError

__all__ = ["AUDIT_COMPARISONS_HELP", "audit_comparisons_command"]

AUDIT_COMPARISONS_HELP = """Audit who is compared with whom: are similar items sampled similarly?

Columns: as in `bayesfair fit` (left, right, winner; model_a, model_b, winner; winner, loser), and
where present p_{item} (the law of the slot), or propensity (the probability with which the item on
the left was put there), and timestamp or tstamp. Without probabilities, shares in windows stand for
them. Judged is how often an item fills the slot; whom it meets there is not (a notice says if items
of like worth met others by different laws). One row per duel: no counts of wins, no weights.

Example: `bayesfair audit-comparisons battles.csv --json audit.json`

Example: `bayesfair audit-comparisons battles.jsonl --order tstamp --slot mean --window 1000`
"""

_EXIT = {
    "unfair": ("unfair",),
    "inconsistent": ("unfair", "inconsistent"),
    "undetermined": ("unfair", "inconsistent", "undetermined"),
}


def audit_comparisons_command(  # noqa: D103, PLR0917 - typer: the help is above, options are arguments
    context: typer.Context,
    file: opt.DuelFile,
    left: opt.Left = None,
    right: opt.Right = None,
    winner: opt.Winner = None,
    loser: opt.Loser = None,
    outcomes: opt.Outcomes = None,
    winner_is: opt.WinnerIs = None,
    first: opt.First = None,
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
    eps2: opt.Eps2 = None,
    delta: opt.Delta = 0.05,
    from_round: opt.FromRound = 0,
    judge: opt.Judge = "both",
    model: opt.DuelModel = None,
    prior_sd: opt.PriorSd = 1.0,
    draws: opt.Draws = 4000,
    seed: opt.Seed = 0,
    json_file: opt.JsonFile = None,
    fail_on: opt.FailOn = None,
    wins: opt.NotForDuels = None,
    tied: opt.NotForDuels = None,
    weight: opt.NotForDuels = None,
) -> None:
    from bayesfair.audit.duels.api import audit_comparisons
    from bayesfair.base.checks import check_choice
    from bayesfair.cli.tools import check_targets, labels, meanings, reading, write
    from bayesfair.errors import BayesfairWarning
    from bayesfair.readers.duels.log import read_duels

    _refuse({"wins": wins, "tied": tied, "weight": weight})
    check_targets({"--json": json_file}, read=file)
    if fail_on is not None:
        check_choice(fail_on, "--fail-on", tuple(_EXIT))
    with warnings.catch_warnings(), reading(file):
        warnings.simplefilter("ignore", BayesfairWarning)  # they are among the notices
        log = read_duels(
            file, left=left, right=right, winner=winner, loser=loser,
            items=labels(items, "--items"), outcomes=meanings(outcomes, "--outcomes"),
            winner_is=winner_is, first=first, unknown=unknown, both_bad=both_bad, missing=missing,
            order=_or_none(order), propensity=_or_none(propensity),
            probabilities=_or_none(probabilities), delimiter=delimiter,
        )  # fmt: skip
    audit = audit_comparisons(
        log,
        slot=slot,
        window=window,
        eps1=eps1,
        eps2=eps2,
        delta=delta,
        from_round=from_round,
        judge=judge,
        model=model,
        prior_sd=prior_sd,
        draws=draws,
        seed=seed,
    )
    write(audit.to_dict(), str(audit), json_file, context)
    if fail_on is not None:
        _check_verdict(audit.to_dict(), fail_on)


def _check_verdict(numbers: dict[str, Any], level: str) -> None:
    """End with status 1 where the verdict, or the log itself, is bad enough."""
    from bayesfair.audit.duels.record import QUESTIONS
    from bayesfair.audit.log.verdict_words import one_line

    found = []
    if numbers["verdict"] in _EXIT[level]:
        found.append(one_line(numbers, QUESTIONS))
    if not numbers["consistent"] and "inconsistent" in _EXIT[level]:
        found.append("the log contradicts itself")
    if found:
        print(f"{', '.join(found)} (--fail-on {level})", file=sys.stderr)
        raise typer.Exit(1)


def _refuse(given: dict[str, str | None]) -> None:
    """Refuse options of `fit`: each row is one decision, in its order."""
    for name, value in given.items():
        if value is not None:
            raise OptionError(
                f"--{name} {value!r}: counts and weights have no order, and here each row is one "
                "decision. This command takes one row per duel: --left, --right, --winner, or "
                "--winner, --loser; what ties are called, --outcomes says. `bayesfair fit` takes "
                "--wins, --tied and --weight.",
                kind="unused_option",
                column=name,
                value=value,
            )


def _or_none(column: str | None) -> str | bool | None:
    """Return a column; False for '', which stands for none."""
    return False if column == "" else column
