"""What `bayesfair simulate` shows and writes: a few numbers per run, and a log that audits read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesfair import __version__
from bayesfair.base.checks import counted
from bayesfair.base.options import Effect, given, refuse_without_effect
from bayesfair.base.shown import number, shortened, table
from bayesfair.base.writing import replacing
from bayesfair.comparisons import DuelLog
from bayesfair.errors import OptionError
from bayesfair.history import History
from bayesfair.performance import utility
from bayesfair.policies import FairSDDTS, policy_from_name
from bayesfair.simulation.arms import simulate
from bayesfair.simulation.duels import simulate_duels
from bayesfair.simulation.truth import truth_of

__all__ = ["formulas", "next_step", "parse_arms", "report", "write_runs"]

_OF_ARMS = {
    name: Effect(frozenset(), "it is for rules that choose one arm a round")
    for name in ("batch", "delay", "contexts", "context_model")
}
_FORMULA = frozenset("=+-@\t\r")
"""What a cell begins with that spreadsheets take for a formula."""


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def parse_arms(text: str, *, worths: bool = False) -> dict[str, float]:
    """Return label -> mean reward from ``a=.6,b=.5``; `worths` are any numbers above 0.

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
        if worths and not (sign and label and 0 < mean < float("inf")):
            raise OptionError(
                f"--arms: {part.strip()!r} is not label=worth with a worth above 0; "
                "expected for example a=3,b=2,c=1."
            )
        if not worths and not (sign and label and 0 <= mean <= 1):
            raise OptionError(
                f"--arms: {part.strip()!r} is not label=mean with a mean in [0, 1]; "
                "expected for example a=.6,b=.5."
            )
        if label in means:
            raise OptionError(f"--arms names {label!r} twice.")
        means[label] = mean
    return means


def _contexts(
    text: str | None, arms: str, n_rounds: int, seed: int
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the truth, by context where there are some, and the context of each round.

    Raises
    ------
    OptionError
        Naming what cannot be read.
    """
    if text is None:
        return parse_arms(arms), None
    shares: dict[str, float] = {}
    for part in text.split(","):
        pair = part if "=" in text else f"{part}=1"
        label, _, value = (p.strip() for p in pair.rpartition("="))
        try:
            share = float(value)
        except ValueError:
            share = -1.0
        if not (label and 0 < share < float("inf")) or label in shares:
            raise OptionError(
                f"--contexts: {part.strip()!r} is no label of its own, or label=share with a share "
                "above 0; expected for example phone,desk or phone=.7,desk=.3.",
                kind="option_value", column="contexts", value=part.strip(),
            )  # fmt: skip
        shares[label] = share
    every = [parse_arms(one) for one in arms.split(";")]
    if len(every) != len(shares):
        raise OptionError(
            f"--contexts names {counted(len(shares), 'context')}, and --arms has the means in "
            f"{len(every)}: write them in this order, separated by semicolons, such as "
            '--arms "a=.6,b=.3;a=.2,b=.5".',
            kind="wrong_shape", column="arms", value=len(every),
        )  # fmt: skip
    p = np.array(list(shares.values()))
    drawn = np.random.default_rng([11, seed]).choice(list(shares), n_rounds, p=p / p.sum())
    return dict(zip(shares, every, strict=True)), {"context": drawn}


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
    *,
    rounds: int,
    seed: int,
    param: Sequence[str] | None = None,
    runs: int = 1,
    batch: int = 1,
    delay: int = 0,
    contexts: str | None = None,
    context_model: str | None = None,
) -> tuple[dict[str, Any], str, Mapping[str, History | DuelLog]]:
    """Simulate and return JSON-ready numbers, a text report, and the logs by run.

    For ``fair_sd_dts`` the arms are items, their values worths, and the logs are of duels.
    """
    rule = policy_from_name(policy, _parameters(param or []))
    if isinstance(rule, FairSDDTS):
        asked = given(report, {"batch": batch, "delay": delay, "contexts": contexts,
                               "context_model": context_model})  # fmt: skip
        refuse_without_effect(asked, (), _OF_ARMS, "a rule that chooses pairs")
        return _duel_report(rule, parse_arms(arms, worths=True), rounds, runs=runs, seed=seed)
    truth, seen = _contexts(contexts, arms, rounds, seed)
    logs: Mapping[str, History] = simulate(
        rule, truth, rounds, seed=seed, n_runs=runs, batch=batch, delay=delay or None,
        contexts=seen, context_model=context_model,
    )  # fmt: skip
    true = truth_of(truth, next(iter(logs.values())).context)
    rows: list[dict[str, Any]] = []
    for label, log in logs.items():
        found = utility(log, true)
        assert found.fairness_regret is not None  # a run logs the whole rule
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
    names = next(iter(logs.values())).arms
    given_words = ""
    if seen is not None:
        given_words = f", {counted(len(truth), 'context')} ({context_model or 'cells'})"
    numbers = {
        "bayesfair": __version__,
        "policy": rule.describe(),
        "arms": truth,
        **({} if seen is None else {"context_model": context_model or "cells"}),
        "n_rounds": rounds,
        "batch": batch,
        "delay": delay,
        "seed": seed,
        "runs": rows,
    }
    lines = [
        f"{rule.describe()}: {rounds} rounds, {len(names)} arms{given_words}, seed {seed}",
        "",
        *table(
            ["run", "reward/round", "standard regret", "fairness regret", *shortened(names)],
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


def _duel_report(
    rule: FairSDDTS, worth: dict[str, float], n_rounds: int, *, runs: int, seed: int
) -> tuple[dict[str, Any], str, dict[str, DuelLog]]:
    logs: dict[str, DuelLog] = simulate_duels(rule, worth, n_rounds, seed=seed, n_runs=runs)
    rows: list[dict[str, Any]] = [
        {
            "run": label,
            "fairness_regret": float(log.fairness_regret(worth).sum()),
            "without_outcome": log.n_without_outcome,
            "left": {
                item: int(n)
                for item, n in zip(
                    log.items, np.bincount(log.left, minlength=len(log.items)), strict=True
                )
            },
        }
        for label, log in logs.items()
    ]
    numbers = {
        "bayesfair": __version__,
        "policy": rule.describe(),
        "worth": worth,
        "n_rounds": n_rounds,
        "seed": seed,
        "runs": rows,
    }
    lines = [
        f"{rule.describe()}: {counted(n_rounds, 'duel')} of {counted(len(worth), 'item')}, "
        f"seed {seed}",
        "",
        *table(
            ["run", "fairness regret", "no outcome", *shortened(worth)],
            [
                [
                    str(row["run"]),
                    number(row["fairness_regret"], 1),
                    str(row["without_outcome"]),
                    *[str(n) for n in row["left"].values()],
                ]
                for row in rows
            ],
        ),
        "",
        "Total against the worths given; under each item, how often it was on the left.",
    ]
    return numbers, "\n".join(lines), logs


def next_step(
    logs: Mapping[str, History | DuelLog], path: Path, context_model: str | None = None
) -> str:
    """Return the sentence that says how to go on with a written log."""
    first = next(iter(logs.values()))
    if isinstance(first, DuelLog):
        duels = [log for log in logs.values() if isinstance(log, DuelLog)]
        wasted = any(log.n_without_outcome for log in duels)
        missing = " --missing drop" if wasted else ""
        slot = "" if first.slot == "first" else f" --slot {first.slot}"
        return (
            f"Written to {path}. Fit the worths with: bayesfair fit {path}{missing}\n"
            f"Audit who is compared with whom: bayesfair audit-comparisons {path}{slot}{missing}"
        )
    options = " --by run" if len(logs) > 1 else ""
    if first.context is not None:
        options += f" --context {','.join(first.context.columns)}"
        options += f" --context-model {context_model or 'cells'}"
    return f"Written to {path}. Audit it with: bayesfair audit {path}{options}"


def formulas(logs: Mapping[str, History | DuelLog], path: Path) -> str:
    """Return the sentence that warns of labels which a spreadsheet would run, or nothing.

    Labels are written as they are: changed ones would be other labels when the log is read again.
    """
    if path.suffix.lower() not in {".csv", ".tsv"}:
        return ""
    names = dict.fromkeys(
        label
        for log in logs.values()
        for label in (log.items if isinstance(log, DuelLog) else log.arms)
    )
    risky = [label for label in names if label[:1] in _FORMULA and not _is_number(label)]
    if not risky:
        return ""
    return (
        f"\nA spreadsheet may run labels such as {risky[0]!r} as formulas: import the file as text."
    )


def _columns(log: History | DuelLog) -> dict[str, Any]:
    import pyarrow as pa

    if isinstance(log, DuelLog):
        labels = np.array(log.items, dtype=object)
        winner = log.winner
        columns: dict[str, Any] = {
            "left": pa.array(labels[log.left], pa.string()),
            "right": pa.array(labels[log.right], pa.string()),
            "winner": pa.array(labels[winner], pa.string(), mask=winner < 0),
            "pair_propensity": pa.array(log.pair_propensity),
        }
        names = log.items
    else:
        names = log.arms
        codes = pa.DictionaryArray.from_arrays(pa.array(log.arm), pa.array(names, pa.string()))
        columns = {
            "arm": codes.cast(pa.string()),
            "reward": pa.array(log.reward.astype(np.int8)),
        }
    assert log.selection_probability is not None
    for i, name in enumerate(names):
        column = np.ascontiguousarray(log.selection_probability[:, i])
        columns[f"p_{name}"] = pa.array(column, from_pandas=True)
    if isinstance(log, History) and log.context is not None:
        for j, name in enumerate(log.context.columns):
            labels = np.array(log.context.labels[j], dtype=object)
            columns[name] = pa.array(labels[log.context.codes[:, j]], pa.string())
    if isinstance(log, History) and log.known_at is not None:
        columns["known_at"] = pa.array(log.known_at)
    return columns


def write_runs(logs: Mapping[str, History | DuelLog], path: Path) -> None:
    """Write logs so that `bayesfair audit` (duels: `bayesfair fit`) reads them without options.

    Columns: ``run`` (several runs), ``arm``, ``reward``, ``p_{arm}``, the context, and
    ``known_at`` where rewards are not known in the next round. Duels: ``left``, ``right``,
    ``winner``, ``pair_propensity`` (of the ordered pair), and ``p_{item}``, the law of the rule's
    slot.

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
        run = {"run": pa.array([label] * log.n_rounds, pa.string())} if len(logs) > 1 else {}
        tables.append(pa.table(run | _columns(log)))
    whole = pa.concat_tables(tables)
    with replacing(path) as draft:
        if path.suffix == ".csv":
            pa_csv.write_csv(whole, draft)
        else:
            pq.write_table(whole, draft)
