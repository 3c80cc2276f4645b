"""Fairness regret of rules that see a context, against the truth: its growth, and its bound.

    python benchmarks/contextual_rules.py [--runs 40] [--write]

Three arms with P(reward = 1) = Phi(z'beta_i), z = (1, x), x ~ Normal(0, 1): SD_TS and Fair_SD_TS on
probit beliefs, linear Thompson sampling, LinUCB, SD_TS that does not look. Mean over runs of the
sum over rounds of TV(P*(theta(x_t)), pi_t). A regret that grows as sqrt(T) doubles from T to 4 T.
Then SD_TS in three contexts, with `theory.forecast_regret_bound`.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from pathlib import Path

import numpy as np
from scipy import special

import bayesfair as bf
from bayesfair.theory import forecast_regret_bound

LENGTHS = (250, 1000, 4000)
BETA = np.array([[0.3, 0.8], [0.0, -0.5], [-0.4, 0.1]])
RULES = {
    "SD_TS, probit": ("sd_ts", "probit"),
    "Fair_SD_TS (C = 10), probit": (bf.policies.FairSDTS(C=10), "probit"),
    "Thompson, linear": ("thompson", "linear"),
    "LinUCB": ("lin_ucb", "linear"),
    "SD_TS that does not look": ("sd_ts", "none"),
}


def regret(truth: np.ndarray, pi: np.ndarray) -> float:
    """Sum over rounds of the total variation between P* of the truth and the rule."""
    best = bf.rewards.Bernoulli(truth).best_arm_probability()
    return float(np.abs(np.asarray(best) - pi).sum() / 2)


def growth(rule: object, model: str, runs: int) -> list[float]:
    """Mean regret at each length."""
    found = []
    for n in LENGTHS:
        totals = []
        for r in range(runs):
            x = np.random.default_rng([n, r]).normal(size=n)
            truth = special.ndtr(np.column_stack([np.ones(n), x]) @ BETA.T)
            given = {"contexts": {"x": x}, "context_model": model}
            run = bf.simulate(rule, truth, n, seed=r, **given)
            totals.append(regret(truth, run.selection_probability))
        found.append(float(np.mean(totals)))
    return found


def by_cells(runs: int) -> list[tuple[float, float]]:
    """Mean regret of SD_TS in three contexts at each length, and its bound."""
    means = np.array([[0.9, 0.5, 0.1], [0.2, 0.6, 0.7], [0.5, 0.4, 0.6]])
    found = []
    for n in LENGTHS:
        seen = np.arange(n) % 3
        runs_of = bf.simulate(
            "sd_ts", means[seen], n, seed=1, n_runs=runs, contexts=seen.astype(str)
        )
        each = [regret(means[seen], run.selection_probability) for run in runs_of.values()]
        loss = 3 * (0.5 * math.log(n / 3 + 1) + math.log(2))
        found.append((float(np.mean(each)), forecast_regret_bound([loss] * 3, n, least=0.1)))
    return found


def main() -> None:
    """Print the tables, or write them to results/."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", bf.BayesfairWarning)
    lines = [
        "# Fairness regret of rules that see a context",
        "",
        f"`python benchmarks/contextual_rules.py --runs {asked.runs} --write`",
        "",
        f"Mean of {asked.runs} runs, of Thompson sampling a tenth of them.",
        "",
        f"| rule | {' | '.join(f'T = {n}' for n in LENGTHS)} | growth per factor 4 |",
        f"|---|{'---|' * (len(LENGTHS) + 1)}",
    ]
    for name, (rule, model) in RULES.items():
        slow = rule == "thompson"  # a quadrature of Student laws every round
        found = growth(rule, model, max(asked.runs // 10, 1) if slow else asked.runs)
        grows = ", ".join(f"{b / a:.2f}" for a, b in itertools.pairwise(found))
        lines.append(f"| {name} | {' | '.join(f'{x:.1f}' for x in found)} | {grows} |")
    lines += [
        "",
        "SD_TS by cells, three contexts, and the bound of `theory.forecast_regret_bound`:",
        "",
    ]
    lines += [f"| | {' | '.join(f'T = {n}' for n in LENGTHS)} |", f"|---|{'---|' * len(LENGTHS)}"]
    pairs = by_cells(asked.runs)
    lines += [f"| regret | {' | '.join(f'{a:.1f}' for a, _ in pairs)} |"]
    lines += [f"| bound | {' | '.join(f'{b:.0f}' for _, b in pairs)} |"]
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.write:
        (Path(__file__).parent / "results" / "contextual_rules.md").write_text(text)


if __name__ == "__main__":
    main()
