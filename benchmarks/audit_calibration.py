"""Is the audit itself calibrated? Coverage of its intervals, false alarms, power.

Run: python benchmarks/audit_calibration.py [--logs 400] [--out FILE.md]

(b) Coverage of the 95 % intervals of the objective fairness regret and of the objective smallest
    eps2, theta drawn from the prior of the fit, rules that see only the log. With theta fixed
    (second table) coverage is no promise of a Bayesian interval, and both quantities fold at 0.
(c) How often runs violate a guarantee at the true theta.
(d) Power: how often a rule that exceeds the criterion by a known amount gets the verdict "unfair".
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

import numpy as np

import bayesfair as bf
from bayesfair.policies import SDTS, FairSDTS, Thompson, Uniform

RULES = {"sd_ts": SDTS(), "uniform": Uniform(), "thompson": Thompson()}


def covered(log: bf.History, theta: np.ndarray, seed: int) -> dict[str, bool]:
    """Whether the intervals hold what the truth gives, for one log."""
    numbers = bf.audit(log, eps1=1, eps2=0, seed=seed).to_dict()
    truth = bf.audit(log, eps1=1, eps2=0, truth=bf.rewards.Bernoulli(theta)).to_dict()
    regret = truth["calibration"]["objective"]["regret_per_round"]
    eps2 = truth["objective"]["smallest_eps2"]["mean"]
    held = numbers["calibration"]["objective"], numbers["objective"]["smallest_eps2"]
    tiny = 1e-12
    return {
        "regret": held[0]["lower"] - tiny <= regret <= held[0]["upper"] + tiny,
        "eps2": held[1]["lower"] - tiny <= eps2 <= held[1]["upper"] + tiny,
    }


def coverage(
    rule: str, k: int, n_logs: int, n_rounds: int, theta: object, seed: int
) -> dict[str, float]:
    """Return the share of logs whose intervals hold the truth."""
    rng = np.random.default_rng([seed, k])
    hits = {"regret": 0, "eps2": 0}
    for _ in range(n_logs):
        truth = rng.beta(0.5, 0.5, k) if theta is None else np.asarray(theta, float)
        log = bf.simulate(RULES[rule], truth, n_rounds, seed=int(rng.integers(2**31)))
        for name, hit in covered(log, truth, int(rng.integers(2**31))).items():
            hits[name] += hit
    return {name: count / n_logs for name, count in hits.items()}


def verdicts(
    policy: object, eps1: float, eps2: float, k: int, n_logs: int, n_rounds: int, seed: int
) -> tuple[float, float, float]:
    """Return shares of runs: unfair at their own true theta, found unfair, found so wrongly."""
    rng = np.random.default_rng([seed, k])
    unfair, found, wrong = 0, 0, 0
    for _ in range(n_logs):
        truth = rng.beta(0.5, 0.5, k)
        log = bf.simulate(policy, truth, n_rounds, seed=int(rng.integers(2**31)))
        exact = bf.audit(log, eps1=eps1, eps2=eps2, truth=bf.rewards.Bernoulli(truth))
        audit = bf.audit(log, eps1=eps1, eps2=eps2, seed=int(rng.integers(2**31)))
        really = exact.objective_verdict == "unfair"
        says = audit.objective_verdict == "unfair"
        unfair, found, wrong = unfair + really, found + says, wrong + (says and not really)
    return unfair / n_logs, found / n_logs, wrong / n_logs


def power(excess: float, k: int, eps1: float, n_logs: int, n_rounds: int, seed: int) -> float:
    """Return how often a constant rule off by ``excess`` at the true theta is found unfair."""
    rng = np.random.default_rng([seed, k])
    eps2, found = 0.05, 0
    theta = np.full(k, 0.5)
    theta[0] = 0.6
    gap = eps1 * 0.1 + eps2 + excess
    low = (1 - gap) / k  # the favoured arm gets low + gap
    pi = np.full(k, low)
    pi[0] += gap
    for _ in range(n_logs):
        arm = rng.choice(k, n_rounds, p=pi)
        reward = rng.random(n_rounds) < theta[arm]
        log = bf.History(arm, reward, selection_probability=np.tile(pi, (n_rounds, 1)))
        result = bf.audit(log, eps1=eps1, eps2=eps2, seed=int(rng.integers(2**31)))
        found += result.objective_verdict == "unfair"
    return found / n_logs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    n = args.logs
    lines = [
        "# Calibration of the audit",
        "",
        f"`python benchmarks/audit_calibration.py --logs {n} --out "
        f"benchmarks/results/audit_calibration.md`, {datetime.date.today()}",
        "",
        f"## Coverage of 95 % intervals, theta from the prior ({n} logs of 300 rounds per cell)",
        "",
        "| rule | k | fairness regret | smallest eps2 (eps1 = 1) |",
        "|---|---|---|---|",
    ]

    def emit() -> None:
        text = "\n".join(lines) + "\n"
        if args.out:
            args.out.parent.mkdir(exist_ok=True)
            args.out.write_text(text, encoding="utf-8")
        print(lines[-1], flush=True)

    for rule in RULES:
        for k in (2, 5, 20):
            c = coverage(rule, k, n, 300, None, seed=1)
            eps2 = "0 in every log" if rule == "uniform" else f"{c['eps2']:.3f}"
            lines.append(f"| {rule} | {k} | {c['regret']:.3f} | {eps2} |")
            emit()
    lines += [
        "",
        "## The same with theta fixed (no pass mark)",
        "",
        "Near equal arms both quantities fold at 0: the truth sits at the edge of what the "
        "interval can hold, so coverage is not that of an average over the prior. At exactly equal "
        "arms every posterior draw separates them, so each draw needs less eps2 than the truth.",
        "",
        "| rule | theta | fairness regret | smallest eps2 |",
        "|---|---|---|---|",
    ]
    for rule in ("sd_ts", "thompson"):
        for theta in ((0.5, 0.5), (0.5, 0.52), (0.5,) * 5):
            c = coverage(rule, len(theta), n, 300, theta, seed=2)
            shown = f"{theta[0]} x {len(theta)}" if len(set(theta)) == 1 else str(theta)
            lines.append(f"| {rule} | {shown} | {c['regret']:.3f} | {c['eps2']:.3f} |")
            emit()
    lines += [
        "",
        "## Runs that are unfair, and that are found unfair (theta from the prior, delta 0.05)",
        "",
        "| rule | (eps1, eps2) | k | unfair at its theta | found unfair | found wrongly |",
        "|---|---|---|---|---|---|",
    ]
    fair = FairSDTS(eps2=0.1, delta=0.1)
    for name, rule, criterion in (
        ("fair_sd_ts(eps2=0.1, delta=0.1), at its guarantee", fair, (2, 0.2)),
        ("sd_ts", SDTS(), (2, 0.2)),
        ("sd_ts", SDTS(), (1, 0.3)),
    ):
        for k in (2, 5):
            shares = verdicts(rule, *criterion, k, n, 3000, seed=3)
            cells = " | ".join(f"{share:.3f}" for share in shares)
            lines.append(f"| {name} | {criterion} | {k} | {cells} |")
            emit()
    lines += [
        "",
        "## Power: share of logs found unfair (2000 rounds, constant rule, eps2 = delta = 0.05)",
        "",
        "| k | eps1 | excess 0.05 | excess 0.1 | excess 0.2 |",
        "|---|---|---|---|---|",
    ]
    for k in (2, 5, 20):
        for eps1 in (0.5, 1, 2):
            cells = [f"{power(x, k, eps1, n, 2000, seed=5):.3f}" for x in (0.05, 0.1, 0.2)]
            lines.append(f"| {k} | {eps1} | {' | '.join(cells)} |")
            emit()
    lines += [
        "",
        "What a verdict can carry: with theta from the prior the intervals hold their level; "
        '"unfair" is rare for rules within their guarantee; an excess of 0.1 is found in 2000 '
        "rounds with two arms. What it cannot: at a fixed theta, near equal arms, the intervals "
        "are not 95 % in the frequentist sense; with many arms and few plays per arm a small "
        "excess stays undetermined.",
    ]
    emit()


if __name__ == "__main__":
    sys.exit(main())
