"""What users write, held against the types that the package gives them.

The type checker reads this file with the package (``files`` of ``[tool.mypy]``): what it cannot
follow, or follows to another type, fails there. It is not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, assert_type

import numpy as np
import xarray as xr

import bayesfair as bf
from bayesfair import examples

if TYPE_CHECKING:
    import polars as pl


def one_log() -> bf.Audit:
    history = bf.read_history(examples.path("ecmo"), arm="arm", missing="drop")
    assert_type(history, bf.History)
    audit = bf.audit(history, eps1=1, eps2=0.05, seed=1, sampler={"chains": 2})
    assert_type(audit, bf.Audit)
    assert_type(audit.verdict, str)
    assert_type(audit.state, bf.AuditState)
    assert_type(audit.rounds(), xr.Dataset)
    assert_type(audit.tree, xr.DataTree)
    assert_type(audit.prior_sensitivity(), bf.PriorSensitivity)
    return audit.resume(history, seed=np.random.default_rng(1), progress=print)


def several_logs(frame: pl.DataFrame) -> None:
    groups = bf.read_history(frame, by="position")
    assert_type(groups, Mapping[str, bf.History])
    audits = bf.audit(groups, seed=1)
    assert_type(audits, bf.AuditGroup)
    assert_type(audits["1"], bf.Audit)
    assert_type(bf.merge(audits, audits), bf.AuditGroup)
    bf.write_report(audits, Path("audits.html"))


def in_parts() -> None:
    scan = bf.scan_history("log.parquet", chunk_rounds=1000)
    assert_type(scan, bf.HistoryScan)
    assert_type(bf.audit(scan, seed=1), bf.Audit)
    scans = bf.scan_history("log.parquet", by="site")
    assert_type(scans, dict[str, bf.HistoryScan])
    assert_type(bf.audit(scans, objective=False), bf.AuditGroup)
    loaded = bf.load_audit("yesterday.nc")
    assert_type(loaded, bf.Audit | bf.AuditGroup)
    if isinstance(loaded, bf.Audit):
        loaded.save("today.nc")


def duels() -> None:
    log = bf.read_duels([{"left": "a", "right": "b", "winner": "left"}], order=False)
    assert_type(log, bf.DuelLog)
    assert_type(bf.audit_comparisons(log, seed=1, worth={"a": 1.0, "b": 2.0}), bf.DuelAudit)
    games = bf.read_comparisons("games.csv", wins=("won", "lost", "tied"))
    assert_type(games, bf.Comparisons)
    tree = bf.fit(games, prior_sd=2, seed=1)
    assert_type(tree, xr.DataTree)
    assert_type(bf.rank_table(tree), xr.Dataset)
    assert_type(bf.win_probability(tree), xr.Dataset)
    bf.plots.plot_ranks(tree)


def in_memory() -> None:
    log = bf.History(["a", "b"], [1, 0.5], selection_probability=[[0.5, 0.5]] * 2, arms="ab")
    assert_type(log.before(1), bf.History)
    pairs = bf.Comparisons.from_duels(["a"], ["b"], ["left"], keep_rows=True)
    assert_type(pairs, bf.Comparisons)
    bf.rewards.Normal([0.1, 0.2], 1.0, arms=["a", "b"])


def runs() -> None:
    run = bf.simulate("fair_sd_ts", {"a": 0.6, "b": 0.5}, 1000, seed=1)
    assert_type(run, bf.History)
    many = bf.simulate(bf.policies.FairSDTS(eps2=0.2), [0.6, 0.5], 1000, seed=1, n_runs=3)
    assert_type(many, dict[str, bf.History])
    truth = bf.rewards.Bernoulli([0.6, 0.5])
    assert_type(bf.audit(run, truth=truth), bf.Audit)
    assert_type(bf.utility(run, truth).standard_regret, float)
    assert_type(bf.beliefs(run, prior=(1, 1)), bf.Beliefs)
    bf.plots.plot_frontier(bf.audit(run, truth=truth))


def wrong() -> None:
    """What cannot be is said before it is run: an ignore that is not needed is an error too."""
    bf.audit("log.csv", seed=1)  # type: ignore[call-overload]
    bf.audit(one_log(), seed=1)  # type: ignore[call-overload]
    bf.audit(bf.read_history("log.csv"), epsilon=1)  # type: ignore[call-overload]
    bf.read_history("log.csv", reward=1)  # type: ignore[call-overload]
    bf.simulate("sd_ts", [0.5, 0.6], 10)  # type: ignore[call-overload]
    bf.fit("games.csv", seed=1)  # type: ignore[call-overload]
    bf.History(["a"], [1], probabilities=[[0.5]])  # type: ignore[call-arg]
