"""What `bayesfair simulate` shows and writes: a few numbers per run, and a log that audits read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesfair.errors import OptionError
from bayesfair.history import History
from bayesfair.performance import utility
from bayesfair.policies import policy_from_name
from bayesfair.simulate import simulate

__all__ = ["parse_arms", "report", "write_runs"]


def parse_arms(text: str) -> dict[str, float]:
    """Return label -> mean reward from ``a=.6,b=.5``.

    Raises
    ------
    OptionError
        Naming the part that cannot be read.

    Examples
    --------
    >>> parse_arms("a=.6, b=.5")
    {'a': 0.6, 'b': 0.5}
    """
    means: dict[str, float] = {}
    for part in text.split(","):
        label, sign, value = (p.strip() for p in part.rpartition("="))
        try:
            mean = float(value)
        except ValueError:
            mean = float("nan")
        if not sign or not label or not 0 <= mean <= 1:
            raise OptionError(
                f"--arms: {part.strip()!r} is not label=mean with a mean in [0, 1]; "
                "expected for example a=.6,b=.5."
            )
        if label in means:
            raise OptionError(f"--arms names {label!r} twice.")
        means[label] = mean
    return means


def _parameters(items: Sequence[str]) -> dict[str, str]:
    found = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign:
            raise OptionError(f"--param {item!r} must be name=value, for example eps2=.1.")
        found[name.strip()] = value.strip()
    return found


def report(
    policy: str,
    arms: str,
    n_rounds: int,
    params: Sequence[str],
    *,
    runs: int,
    batch: int,
    delay: int,
    seed: int,
) -> tuple[dict[str, Any], str, dict[str, History]]:
    """Simulate and return JSON-ready numbers, a text report, and the logs by run."""
    from bayesfair import __version__
    from bayesfair.audit.text import number, table

    truth = parse_arms(arms)
    rule = policy_from_name(policy, _parameters(params))
    if rule.name == "fair_sd_dts":
        raise OptionError(
            "fair_sd_dts chooses pairs of arms to duel; run it with bayesfair.simulate_duels."
        )
    logs: Mapping[str, History] = simulate(
        rule, truth, n_rounds, seed=seed, n_runs=runs, batch=batch, delay=delay or None
    )
    rows: list[dict[str, Any]] = []
    for label, log in logs.items():
        found = utility(log, truth)
        rows.append(
            {
                "run": label,
                "reward_per_round": float(np.mean(log.reward)),
                "standard_regret": float(found.standard_regret),
                "fairness_regret": float(found.fairness_regret),
                "plays": {a: int(n) for a, n in zip(log.arms, np.bincount(
                    log.arm, minlength=log.n_arms), strict=True)},
            }
        )  # fmt: skip
    numbers = {
        "bayesfair": __version__,
        "policy": rule.describe(),
        "arms": truth,
        "n_rounds": n_rounds,
        "batch": batch,
        "delay": delay,
        "seed": seed,
        "runs": rows,
    }
    lines = [
        f"{rule.describe()}: {n_rounds} rounds, {len(truth)} arms, seed {seed}",
        "",
        *table(
            ["run", "reward/round", "standard regret", "fairness regret", *truth],
            [
                [
                    row["run"],
                    number(row["reward_per_round"]),
                    number(row["standard_regret"], 1),
                    number(row["fairness_regret"], 1),
                    *[str(n) for n in row["plays"].values()],
                ]
                for row in rows
            ],
        ),
        "",
        "Totals against the true rewards; under each arm, how often it was played.",
    ]
    return numbers, "\n".join(lines), dict(logs)


def write_runs(logs: Mapping[str, History], path: Path) -> None:
    """Write logs so that `bayesfair audit` reads them without options.

    Columns: ``run`` (several runs), ``arm``, ``reward``, ``p_{arm}``, and ``known_at`` where
    rewards are not known in the next round.

    Raises
    ------
    OptionError
        If the file's ending is neither .parquet nor .csv.
    """
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    if path.suffix not in (".parquet", ".csv"):
        raise OptionError(f"--out {str(path)!r} must end in .parquet or .csv.")
    tables = []
    for label, log in logs.items():
        columns: dict[str, Any] = {}
        if len(logs) > 1:
            columns["run"] = pa.array([label] * log.n_rounds, pa.string())
        labels = pa.array(log.arms, pa.string())
        columns["arm"] = pa.DictionaryArray.from_arrays(pa.array(log.arm), labels).cast(pa.string())
        columns["reward"] = pa.array(log.reward.astype(np.int8))
        assert log.selection_probability is not None
        for i, arm in enumerate(log.arms):
            column = np.ascontiguousarray(log.selection_probability[:, i])
            columns[f"p_{arm}"] = pa.array(column, from_pandas=True)
        if log.known_at is not None:
            columns["known_at"] = pa.array(log.known_at)
        tables.append(pa.table(columns))
    whole = pa.concat_tables(tables)
    if path.suffix == ".csv":
        pa_csv.write_csv(whole, path)
    else:
        pq.write_table(whole, path)
