"""The command ``bayesfair simulate``: run a decision rule and log its exact probabilities."""

from __future__ import annotations

import typer

from bayesfair.cli import options as opt
from bayesfair.cli.tools import check_targets, write

__all__ = ["simulate_command"]


def simulate_command(  # noqa: PLR0917 - typer: options are arguments
    context: typer.Context,
    policy: opt.Policy,
    arms: opt.TrueArms,
    rounds: opt.SimulatedRounds = 10_000,
    param: opt.Param = None,
    runs: opt.Runs = 1,
    batch: opt.Batch = 1,
    delay: opt.Delay = 0,
    seed: opt.Seed = 0,
    out: opt.LogOut = None,
    json_file: opt.JsonFile = None,
) -> None:
    """Run a decision rule on Bernoulli arms and log its exact selection probabilities.

    Example: `bayesfair simulate sd_ts --arms a=.6,b=.5,c=.4 --rounds 100000 --out run.parquet`

    Then: `bayesfair audit run.parquet`

    The rule fair_sd_dts runs duels; its arms are worths: `--arms a=3,b=2,c=1`.
    """
    from bayesfair.report.simulation import formulas, next_step, report, write_runs

    check_targets({"--json": json_file, "--out": out}, read=None)
    numbers, text, logs = report(
        policy, arms, rounds, param or [], runs=runs, batch=batch, delay=delay, seed=seed
    )
    if out is not None:
        write_runs(logs, out)
        text += f"\n\n{next_step(logs, out)}{formulas(logs, out)}"
    write(numbers, text, json_file, context)
