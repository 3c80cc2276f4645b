"""Fairness regret of rules that see a context, against the truth: its growth, and its bound.

    python benchmarks/contextual_rules.py [--runs 20] [--write]

Three arms with P(reward = 1) = Phi(z'beta_i), z = (1, x), x ~ Normal(0, 1). Mean over runs of the
sum over rounds of TV(P*(theta(x_t)), pi_t): `simulate` for SD_TS and Fair_SD_TS on probit beliefs,
linear Thompson sampling, LinUCB and SD_TS that does not look; SD_TS once more by a script of NumPy
alone, many runs at once and longer. A regret that grows as sqrt(T) doubles from T to 4 T. Then
SD_TS in three contexts, with `theory.forecast_regret_bound`.
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

LENGTHS = (100, 400, 1600)
LONG = (250, 1000, 4000)
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


def by_script(lengths: tuple[int, ...], runs: int, seed: int = 0) -> list[tuple[float, float]]:
    """Mean regret of SD_TS on probit beliefs, and its standard error: all runs in step."""
    rng, every = np.random.default_rng(seed), np.arange(runs)
    k, d = BETA.shape
    mean, spread = np.zeros((runs, k, d)), np.tile(np.eye(d), (runs, k, 1, 1))
    wins = np.array(list(itertools.product((0, 1), repeat=k)))
    share = np.where(wins.any(axis=1, keepdims=True), wins / np.maximum(wins.sum(1), 1)[:, None],
                     1 / k)  # fmt: skip

    def best(m: np.ndarray) -> np.ndarray:
        return np.where(wins, m[:, None], 1 - m[:, None]).prod(axis=2) @ share

    total, found = np.zeros(runs), []
    for t in range(1, max(lengths) + 1):
        z = np.column_stack([np.ones(runs), rng.normal(size=runs)])
        along = np.einsum("rkde,re->rkd", spread, z)
        sd = np.sqrt(1 + np.einsum("rkd,rd->rk", along, z))
        pi = best(special.ndtr(np.einsum("rkd,rd->rk", mean, z) / sd))
        theta = special.ndtr(z @ BETA.T)
        total += np.abs(best(theta) - pi).sum(axis=1) / 2
        arm = (rng.random(runs)[:, None] > pi.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
        y = np.where(rng.random(runs) < theta[every, arm], 1.0, -1.0)
        u, s = along[every, arm], sd[every, arm]
        at = y * np.einsum("rd,rd->r", mean[every, arm], z) / s
        v = np.exp(-0.5 * at**2 - special.log_ndtr(at)) / math.sqrt(2 * math.pi)
        mean[every, arm] += (y * v / s)[:, None] * u
        spread[every, arm] -= (v * (v + at) / s**2)[:, None, None] * (u[:, :, None] * u[:, None])
        if t in lengths:
            found.append((float(total.mean()), float(total.std() / math.sqrt(runs))))
    return found


def by_cells(runs: int) -> list[tuple[float, float]]:
    """Mean regret of SD_TS in three contexts at each length, and its bound."""
    means = np.array([[0.9, 0.5, 0.1], [0.2, 0.6, 0.7], [0.5, 0.4, 0.6]])
    found = []
    for n in LONG:
        seen = np.arange(n) % 3
        runs_of = bf.simulate(
            "sd_ts", means[seen], n, seed=1, n_runs=runs, contexts=seen.astype(str)
        )
        each = [regret(means[seen], run.selection_probability) for run in runs_of.values()]
        loss = 3 * (0.5 * math.log(n / 3 + 1) + math.log(2))
        found.append((float(np.mean(each)), forecast_regret_bound([loss] * 3, n, least=0.1)))
    return found


def _header(first: str, lengths: tuple[int, ...]) -> list[str]:
    of = " | ".join(f"T = {n}" for n in lengths)
    return [f"| {first} | {of} | growth per factor 4 |", f"|---|{'---|' * (len(lengths) + 1)}"]


def _row(name: str, found: list[float]) -> str:
    grows = ", ".join(f"{b / a:.2f}" for a, b in itertools.pairwise(found))
    return f"| {name} | {' | '.join(f'{x:.1f}' for x in found)} | {grows} |"


def main() -> None:
    """Print the tables, or write them to results/."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
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
        *_header("rule", LENGTHS),
    ]
    for name, (rule, model) in RULES.items():
        slow = rule == "thompson"  # a quadrature of Student laws every round
        found = growth(rule, model, max(asked.runs // 10, 1) if slow else asked.runs)
        lines.append(_row(name, found))
        print(lines[-1], flush=True)
    short, long = by_script(LENGTHS, 400), by_script(LONG, 400, seed=1)
    lines += ["", "SD_TS, probit, 400 runs of the script (standard errors of the means below):", ""]
    lines += [*_header("", LENGTHS), _row("regret", [a for a, _ in short])]
    lines += [f"| standard error | {' | '.join(f'{b:.2f}' for _, b in short)} | |", ""]
    lines += [*_header("", LONG), _row("regret", [a for a, _ in long])]
    lines += [f"| standard error | {' | '.join(f'{b:.2f}' for _, b in long)} | |", ""]
    lines += [
        "SD_TS by cells, three contexts, and the bound of `theory.forecast_regret_bound`:",
        "",
        *_header("", LONG),
    ]
    pairs = by_cells(asked.runs)
    lines += [_row("regret", [a for a, _ in pairs])]
    lines += [f"| bound | {' | '.join(f'{b:.0f}' for _, b in pairs)} | |"]
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.write:
        (Path(__file__).parent / "results" / "contextual_rules.md").write_text(text)


if __name__ == "__main__":
    main()
