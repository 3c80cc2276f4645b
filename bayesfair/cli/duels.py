"""The command ``bayesfair audit-comparisons``: whether who is compared with whom is fair."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import typer

from bayesfair.cli.gate import check_level, end_on_verdict
from bayesfair.cli.options import (
    DUEL_COLUMNS,
    DUEL_OUTPUT,
    DUEL_QUESTION,
    NOT_FOR_DUELS,
    SLOT_LAW,
    Values,
)
from bayesfair.cli.tools import check_targets, reading, report_to, show_progress, write
from bayesfair.errors import OptionError

__all__ = ["AUDIT_COMPARISONS_HELP", "audit_comparisons_command"]

AUDIT_COMPARISONS_HELP = """Audit who is compared with whom: are similar items sampled similarly?

Columns: as in `bayesfair fit` (left, right, winner; model_a, model_b, winner; winner, loser), and
where present p_{item} (the law of the slot), or propensity (the probability with which the item on
the left was put there), and timestamp or tstamp. Winner and loser do not say who stood on the left:
of these --slot mean is judged. Without probabilities, shares in windows stand for them. Judged is
how often an item fills the slot; whom it meets there is not (a notice says if items of like worth
met others by different laws). One row per duel: no counts of wins, no weights.

Example: `bayesfair simulate fair_sd_dts --arms a=3,b=2,c=1 --out duels.csv`

Then: `bayesfair audit-comparisons duels.csv --missing drop --json a.json`

Windows: `bayesfair audit-comparisons log.jsonl --slot mean --window 1000`
"""


def audit_comparisons_command(  # noqa: D103 - the help is above
    shell: typer.Context,
    file: Annotated[str, typer.Argument(help="CSV, Parquet or JSON lines, one row per duel.")],
    columns: Annotated[Values, DUEL_COLUMNS],
    law: Annotated[Values, SLOT_LAW],
    question: Annotated[Values, DUEL_QUESTION],
    output: Annotated[Values, DUEL_OUTPUT],
    refused: Annotated[Values, NOT_FOR_DUELS],
) -> None:
    from bayesfair.audit.duels.api import audit_comparisons
    from bayesfair.audit.duels.record import QUESTIONS
    from bayesfair.errors import BayesfairWarning
    from bayesfair.readers.duels.log import read_duels

    _refuse(refused)
    check_targets({"--json": output.json_file, "--report": output.report}, read=file)
    check_level(output.fail_on)
    law.weight = refused.weight  # '' for none, as of those
    named: dict[str, Any] = {n: False if v == "" else v for n, v in vars(law).items()}
    with warnings.catch_warnings(), reading(file):
        warnings.simplefilter("ignore", BayesfairWarning)  # they are among the notices
        log = read_duels(file, **vars(columns), **named)
    audit = audit_comparisons(log, **vars(question), progress=show_progress())
    report_to(audit, output.report, file)
    numbers = audit.to_dict()
    write(numbers, str(audit), output.json_file, shell)
    end_on_verdict(numbers, output.fail_on, QUESTIONS)


def _refuse(given: Values) -> None:
    """Refuse options of `fit`: each row is one decision, in its order."""
    for name, value in vars(given).items():
        if value is not None and (name, value) != ("weight", ""):
            raise OptionError(
                f"--{name} {value!r}: counts and weights have no order, and here each row is one "
                "decision. This command takes one row per duel: --left, --right, --winner, or "
                "--winner, --loser; what ties are called, --outcomes says. `bayesfair fit` takes "
                "--wins and --weight.",
                kind="unused_option",
                column=name,
                value=value,
            )
