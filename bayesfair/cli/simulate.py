"""The command ``bayesfair simulate``: run a decision rule and log its exact probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesfair.cli.tools import check_targets, write

__all__ = ["simulate_command"]


def simulate_command(  # noqa: PLR0917 - typer: options are arguments
    policy: Annotated[
        str, typer.Argument(help="sd_ts, sd_ts_mixture, fair_sd_ts, thompson, uniform, ...")
    ],
    arms: Annotated[str, typer.Option(help="True mean rewards, such as a=.6,b=.5.")],
    rounds: Annotated[int, typer.Option(help="Rounds per run.")] = 10_000,
    param: Annotated[
        list[str] | None, typer.Option(help="Parameter of the rule, eps2=.1; may be repeated.")
    ] = None,
    runs: Annotated[int, typer.Option(help="Independent runs; column `run` in the log.")] = 1,
    batch: Annotated[int, typer.Option(help="Rounds between updates of the beliefs.")] = 1,
    delay: Annotated[int, typer.Option(help="Rounds by which every reward comes late.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the run.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the log to this .parquet or .csv file.")
    ] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", help="Write JSON to a file, or - for standard output.")
    ] = None,
) -> None:
    """Run a decision rule on Bernoulli arms and log its exact selection probabilities.

    Example: `bayesfair simulate sd_ts --arms a=.6,b=.5,c=.4 --rounds 100000 --out run.parquet`

    Then: `bayesfair audit run.parquet`

    The rule fair_sd_dts runs duels; its arms are worths: `--arms a=3,b=2,c=1`.
    """
    from bayesfair.simulation_report import next_step, report, write_runs

    check_targets({"--json": json_file, "--out": out}, read=None)
    numbers, text, logs = report(
        policy, arms, rounds, param or [], runs=runs, batch=batch, delay=delay, seed=seed
    )
    if out is not None:
        write_runs(logs, out)
        text += f"\n\n{next_step(logs, out)}"
    write(numbers, text, json_file)
