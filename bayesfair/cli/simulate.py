"""The command ``bayesfair simulate``: run a decision rule and log its exact probabilities."""

from __future__ import annotations

from typing import Annotated

import typer

from bayesfair.base.progress import following
from bayesfair.cli.options import SIMULATION_OPTIONS, SIMULATION_OUTPUT, Values
from bayesfair.cli.tools import check_targets, show_progress, write

__all__ = ["simulate_command"]


def simulate_command(
    shell: typer.Context,
    policy: Annotated[
        str, typer.Argument(help="sd_ts, sd_ts_mixture, fair_sd_ts, thompson, uniform, ...")
    ],
    arms: Annotated[str, typer.Option("--arms", help="True mean rewards, such as a=.6,b=.5.")],
    options: Annotated[Values, SIMULATION_OPTIONS],
    output: Annotated[Values, SIMULATION_OUTPUT],
) -> None:
    """Run a decision rule on Bernoulli arms and log its exact selection probabilities.

    Example: `bayesfair simulate sd_ts --arms a=.6,b=.5,c=.4 --out run.parquet`

    Then: `bayesfair audit run.parquet`

    A rule that sees a context, its log audited with `--context context`, and one of duels, whose
    arms are worths:

    Example: `bayesfair simulate sd_ts --contexts x,y --arms "a=.6,b=.3;a=.2,b=.5"`

    Example: `bayesfair simulate fair_sd_dts --arms a=3,b=2,c=1 --rounds 300`
    """
    from bayesfair.report.simulation import formulas, next_step, report, write_runs

    out = output.out
    check_targets({"--json": output.json_file, "--out": out}, read=None)
    with following(show_progress()):
        numbers, text, logs = report(policy, arms, **vars(options))
    if out is not None:
        write_runs(logs, out)
        text += f"\n\n{next_step(logs, out, options.context_model)}{formulas(logs, out)}"
    write(numbers, text, output.json_file, shell)
