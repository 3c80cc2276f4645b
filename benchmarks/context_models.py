"""Are beliefs given a context calibrated? Coverage of their intervals, and ranks.

Run: python benchmarks/context_models.py [--logs 400] [--out FILE.md]

(a) Truths drawn from each model's own prior, 3 arms, 300 rounds, 6 contexts (probit, logit: a
    number and a label of two values), a rule that prefers another arm in each context: the 95 %
    intervals of the objective regret and of the objective smallest eps2 given the context, and the
    p-value of a chi-squared test that ranks of true probabilities among 99 posterior draws are
    uniform. The same at fixed truths, where a Bayesian interval promises nothing.
(b) Simulation-based calibration of the PyMC models that define these beliefs, by NUTS, with the
    right prior and with a wrong one, which must be found out (simulators:
    tests/models/sbc_tools.py, written from the docstrings of the models).
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import special, stats

import bayesfair as bf
from bayesfair.audit.log.context_tables import KAPPA, pooling_of
from bayesfair.audit.truth.by_context import rewards_by_context
from bayesfair.audit.truth.exact_coefficients import exact_draws
from bayesfair.history.design import design_of
from bayesfair.inference.compiled import data_of
from bayesfair.inference.nuts import CompiledModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "models"))
from sbc_tools import CONTEXT_CASES, normalised_ranks, smallest_p

C, K = 6, 3
LINKS = {"probit": (special.ndtr, 1.0), "logit": (special.expit, 1.5)}

#: Name of a fixed truth: probabilities of each context and arm, coefficients of each arm.
FIXED = {
    "all arms alike": (np.full((C, K), 0.5), np.zeros((K, 4))),
    "nearly alike": (
        np.tile([0.5, 0.52, 0.54], (C, 1)),
        np.outer([0, 0.05, 0.1], np.ones(4)),
    ),
    "another order in each context": (
        np.array([np.roll([0.2, 0.5, 0.8], c) for c in range(C)]),
        np.array([[0.5, 1.0, 0, 0], [0, -1.0, 0.5, 0], [-0.5, 0.2, 0, 1.0]]),
    ),
}


def of_prior(model: str, rng: np.random.Generator) -> np.ndarray:
    """Draw probabilities of every context and arm, (C, K), or coefficients of arms, (K, 4)."""
    if model == "cells":
        return rng.beta(0.5, 0.5, (C, K))
    if model == "pooled":
        grid = pooling_of(np.full((K, 2), 0.5))
        weights = grid.weights[0]
        j, g = np.divmod(rng.choice(weights.size, K, p=weights.ravel()), weights.shape[1])
        mu, kappa = grid.mu[0, j], grid.kappa[g]
    elif model == "pooled, mu and kappa not on the grid":
        mu, kappa = rng.beta(0.5, 0.5, K), np.exp(rng.uniform(*np.log(KAPPA), K))
    if model.startswith("pooled"):
        return rng.beta(kappa * mu, kappa * (1 - mu), (C, K))
    return rng.normal(0, LINKS[model][1], (K, 4))


def logged(
    model: str, truth: np.ndarray, rng: np.random.Generator, n: int
) -> tuple[bf.History, np.ndarray]:
    """Return a log under a truth, and the probability of a reward in each of its rounds, (n, K)."""
    if model in LINKS:
        x = {"x": rng.normal(50, 10, n), "site": rng.choice(["u", "v"], n)}
        rows = design_of(bf.History([0] * n, [0] * n, context=x))[1]
        slope, start = rng.normal(0, 0.5, K), rng.normal(0, 0.5, K)
        rule = special.softmax(start + rows[:, [1]] * slope, axis=1)
        theta = LINKS[model][0](rows @ truth.T)
    else:
        cell = rng.integers(0, C, n)
        x = cell.astype(str)
        theta, rule = truth[cell], rng.dirichlet(np.ones(K), C)[cell]
    arm = (rng.random(n)[:, None] > rule.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    reward = rng.random(n) < theta[np.arange(n), arm]
    log = bf.History(arm, reward, selection_probability=rule, context=x, arms=list("abc"))
    return log, theta


def drawn_chances(log: bf.History, audit: bf.Audit, rng: np.random.Generator) -> np.ndarray:
    """Return 99 draws of the chance of the first arm in the first round."""
    of = audit.state.beliefs.featured
    if of is None:
        return rewards_by_context(audit.summary, 99, rng)[log.context.cells[1][0]].mean[:, 0]
    before, order = audit.summary.start.beliefs.featured, np.arange(K)
    found = exact_draws(before, of, [log], log.n_rounds, order, rng).resampled(99, order, rng)
    return of.chance(found[:, 0] @ of.design.rows(log.context)[0])


def coverage(
    model: str, n_logs: int, fixed: np.ndarray | None = None, n: int = 300, seed: int = 1
) -> tuple[float, float, float]:
    """Return the shares of intervals that hold regret and eps2, and the p-value of the ranks."""
    rng = np.random.default_rng(seed)
    inside, ranks, tiny = np.zeros(2), [], 1e-12
    for _ in range(n_logs):
        truth = of_prior(model, rng) if fixed is None else fixed
        log, theta = logged(model, truth, rng, n)
        named = model.split(",", maxsplit=1)[0]
        audit = bf.audit(log, context_model=named, eps1=1, draws=1000, seed=rng)
        pi = log.selection_probability
        best = bf.rewards.Bernoulli(theta).best_arm_probability()
        regret = np.abs(best - pi).sum(axis=1).mean() / 2
        apart = np.abs(pi[:, :, None] - pi[:, None]) - np.abs(theta[:, :, None] - theta[:, None])
        found = audit.to_dict()
        for i, (truly, held) in enumerate((
            (regret, found["calibration"]["objective"]),
            (max(apart.max(), 0), found["objective"]["smallest_eps2"]),
        )):  # fmt: skip
            inside[i] += held["lower"] - tiny <= truly <= held["upper"] + tiny
        ranks.append((drawn_chances(log, audit, rng) < theta[0, 0]).sum())
    counts = np.bincount(np.array(ranks) // 10, minlength=10)
    return *(inside / n_logs), float(stats.chisquare(counts).pvalue)


def compiled_once() -> Callable[..., tuple]:
    """Return what gives a model by its name, compiled once, and its data for a log."""
    known: dict[str, CompiledModel] = {}

    def get(name: str, history: bf.History, **options: object) -> tuple:
        model = importlib.import_module(f"bayesfair.models.{name}").build(history, **options)
        if name not in known:
            known[name] = CompiledModel(model)
        return known[name], data_of(model)

    return get


def main() -> None:
    """Run all, and write what is found after each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    n = asked.logs
    lines = [
        "# Calibration of beliefs given a context",
        "",
        f"`python benchmarks/context_models.py --logs {n} --out "
        f"benchmarks/results/context_models.md`, {datetime.date.today()}",
        "",
        f"## Coverage of 95 % intervals given the context, {n} logs of 300 rounds each, k = 3",
        "",
        "Ranks: p-value that those of a true probability among its posterior draws are uniform.",
        "",
        "| model | truth | fairness regret | smallest eps2 (eps1 = 1) | ranks |",
        "|---|---|---|---|---|",
    ]

    def emit(*more: str) -> None:
        lines.extend(more)
        if asked.out:
            asked.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(*more, sep="\n", flush=True)

    of_grid = "pooled, mu and kappa not on the grid"
    for model in ("cells", "pooled", of_grid, "probit", "logit"):
        regret, eps2, p = coverage(model, n)
        emit(f"| {model} | from the prior | {regret:.3f} | {eps2:.3f} | {p:.3f} |")
    for model in ("cells", "pooled", "probit"):
        for name, truths in FIXED.items():
            regret, eps2, _ = coverage(model, n, truths[model in LINKS], seed=2)
            emit(f"| {model} | fixed: {name} | {regret:.3f} | {eps2:.3f} | |")
    emit(
        "",
        "At fixed truths nothing is promised: near equal arms regret and eps2 fold at 0, so that "
        "the truth sits at the edge of what an interval can hold.",
        "",
        f"## Simulation-based calibration of the PyMC models, {n} simulated logs each",
        "",
        "Smallest p-value of two Kolmogorov-Smirnov tests for each of the m scalar parameters, of "
        "the ranks and of their distance from the middle, times 2 m (Bonferroni). A wrong prior "
        "must be found out.",
        "",
        "| model | parameters | p with its own prior | parameter | p with a wrong prior |"
        " seconds of processor time |",
        "|---|---|---|---|---|---|",
    )
    compiled = compiled_once()
    for name in CONTEXT_CASES:
        begun, found = time.process_time(), []
        for wrong in (False, True):
            ranks = normalised_ranks(compiled, name, n, seed=20 + wrong, wrong=wrong)
            p, label = smallest_p(ranks)
            found.append((min(1.0, 2 * len(ranks) * p), label))
        emit(
            f"| {name} | {len(ranks)} | {found[0][0]:.3f} | {found[0][1]} | {found[1][0]:.1e} |"
            f" {time.process_time() - begun:.0f} |"
        )


if __name__ == "__main__":
    main()
