"""Beliefs given a context: whether their intervals are calibrated, and what a round costs.

Run: python benchmarks/context_models.py [--logs 400] [--rounds 200000]

Coverage: truths drawn from each model's own prior, 3 arms, 300 rounds, 6 contexts (probit: a number
and a label of two values), a rule that prefers another arm in each context; the 95 % interval of
the objective regret given the context, and the p-value of a chi-squared test that the ranks of the
true probabilities among their posterior draws are uniform. Speed: 10 arms, 32 contexts, one core,
processor time; beside it partial pooling as a script would have it, vectorised over nodes by NumPy;
of features 10 arms, 4 numbers and the intercept.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import special, stats
from timing import in_turns, median, on_cores

import bayesfair as bf
from bayesfair.audit.truth.by_context import rewards_by_context
from bayesfair.audit.truth.exact_coefficients import exact_draws
from bayesfair.history.design import design_of
from bayesfair.kernels.log.coefficients import Coefficients, run_coefficients

C, K = 6, 3


def truth(model: str, rng: np.random.Generator) -> np.ndarray:
    """Draw probabilities of every context and arm from the prior of a model, (C, K)."""
    if model == "cells":
        return rng.beta(0.5, 0.5, (C, K))
    mu, kappa = rng.beta(0.5, 0.5, K), np.exp(rng.uniform(np.log(0.5), np.log(200), K))
    return rng.beta(kappa * mu, kappa * (1 - mu), (C, K))


def log_and_truth(
    model: str, rng: np.random.Generator, n: int
) -> tuple[bf.History, np.ndarray, np.ndarray]:
    """Draw a truth from the prior of a model and a log under it; chances and rule are (n, K)."""
    if model == "probit":
        x = {"x": rng.normal(50, 10, n), "site": rng.choice(["u", "v"], n)}
        rows = design_of(bf.History([0] * n, [0] * n, context=x))[1]
        slope, start = rng.normal(0, 0.5, K), rng.normal(0, 0.5, K)
        rule = special.softmax(start + rows[:, [1]] * slope, axis=1)
        theta = special.ndtr(rows @ rng.normal(size=(K, rows.shape[1])).T)
    else:
        cell = rng.integers(0, C, n)
        x = cell.astype(str)
        theta, rule = truth(model, rng)[cell], rng.dirichlet(np.ones(K), C)[cell]
    arm = (rng.random(n)[:, None] > rule.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    reward = rng.random(n) < theta[np.arange(n), arm]
    log = bf.History(arm, reward, selection_probability=rule, context=x, arms=list("abc"))
    return log, theta, rule


def drawn_chances(log: bf.History, audit: bf.Audit, rng: np.random.Generator) -> np.ndarray:
    """Return 99 draws of the chance of the first arm in the first round."""
    of = audit.state.beliefs.featured
    if of is None:
        return rewards_by_context(audit.summary, 99, rng)[log.context.cells[1][0]].mean[:, 0]
    before, order = audit.summary.start.beliefs.featured, np.arange(K)
    found = exact_draws(before, of, [log], log.n_rounds, order, rng).resampled(99, order, rng)
    return of.chance(found[:, 0] @ of.design.rows(log.context)[0])


def coverage(model: str, n_logs: int, n: int = 300, seed: int = 1) -> tuple[float, float]:
    """Return the share of intervals that hold the true regret, and the p-value of the ranks."""
    rng = np.random.default_rng(seed)
    inside, ranks = 0, []
    for _ in range(n_logs):
        log, theta, rule = log_and_truth(model, rng, n)
        audit = bf.audit(log, context_model=model, draws=1000, seed=rng)
        best = bf.rewards.Bernoulli(theta).best_arm_probability()
        true = float(np.abs(best - rule).sum(axis=1).mean() / 2)
        found = audit.regret_objective
        inside += found.lower <= true <= found.upper
        ranks.append((drawn_chances(log, audit, rng) < theta[0, 0]).sum())
    counts = np.bincount(np.array(ranks) // 10, minlength=10)
    return inside / n_logs, float(stats.chisquare(counts).pvalue)


def by_script(x: np.ndarray, arm: np.ndarray, reward: np.ndarray, n_contexts: int, k: int) -> float:
    """Sequential partial pooling, each step vectorised over the nodes."""
    mu = (1 - np.cos((2 * np.arange(40) + 1) * np.pi / 80)) / 2
    kappa = np.geomspace(0.5, 200, 20)
    a = (mu[:, None] * kappa).ravel()
    kappa = np.tile(kappa, 40)
    weight = np.full((k, 800), 1 / 800)
    won, seen, total = np.zeros((n_contexts, k)), np.zeros((n_contexts, k)), 0.0
    for c, i, r in zip(x.tolist(), arm.tolist(), reward.tolist(), strict=True):
        means = (weight * (won[c][:, None] + a) / (seen[c][:, None] + kappa)).sum(axis=1)
        total += float(means.max())
        p = (won[c, i] + a) / (seen[c, i] + kappa)
        weight[i] *= p if r else 1 - p
        weight[i] /= weight[i].sum()
        won[c, i] += r
        seen[c, i] += 1
    return total


def speed(n: int, k: int = 10, n_contexts: int = 32) -> None:
    """Print rounds per second of processor time."""
    rng = np.random.default_rng(0)
    x, pi = rng.integers(0, n_contexts, n), rng.dirichlet(np.full(k, 4.0), n)
    arm = (rng.random(n)[:, None] > pi.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    reward = (rng.random(n) < 0.1 + 0.8 * rng.random((n_contexts, k))[x, arm]).astype(float)
    log = bf.History(arm, reward, selection_probability=pi, context=x.astype(str))
    few = n // 20

    def of(model: str | None) -> object:
        return bf.audit(log, context_model=model, objective=False)

    of("pooled"), of("cells")
    with on_cores(1):
        took = in_turns(
            {
                "no context": lambda: of(None),
                "cells": lambda: of("cells"),
                "pooled": lambda: of("pooled"),
                "pooled, beliefs alone, NumPy": lambda: by_script(
                    x[:few], arm[:few], reward[:few], n_contexts, k
                ),
            },
            turns=3,
        )
    for name, times in took.items():
        rounds = few if "NumPy" in name else n
        print(f"{name:30} {rounds / median(times, 'processor'):12,.0f} rounds/s")


def feature_speed(n: int, k: int = 10, d: int = 5) -> None:
    """Print rounds per second of beliefs over features alone, and of audits that rest on them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d - 1))
    pi = rng.dirichlet(np.full(k, 4.0), n)
    arm = (rng.random(n)[:, None] > pi.cumsum(axis=1)).sum(axis=1).clip(0, k - 1).astype(np.int32)
    chance = special.ndtr(rng.normal(size=k)[arm] + x[:, 0])
    rewards = {"probit": (rng.random(n) < chance).astype(float)}
    rewards |= {"logit": rewards["probit"], "linear": rng.normal(chance)}
    rows = np.column_stack([np.ones(n), x])
    for model, reward in rewards.items():
        m = n if model == "probit" else n // 10
        log = bf.History(
            arm[:m],
            reward[:m],
            selection_probability=pi[:m],
            context=x[:m],
            arms=list("abcdefghij"),
        )
        flat = np.tile([0.0, 1, 1, 1], (k, 1))
        start = Coefficients.start(flat, d, linear=model == "linear")

        def audited(log: bf.History = log, model: str = model) -> object:
            return bf.audit(log, context_model=model, objective=False)

        def alone(
            start: Coefficients = start, model: str = model, y: np.ndarray = reward
        ) -> object:
            return run_coefficients(model, start, rows, arm, y, None)

        audited(), alone()
        with on_cores(1):
            took = in_turns({f"{model}, whole audit": audited, f"{model}, beliefs alone": alone},
                            turns=3)  # fmt: skip
        for name, times in took.items():
            done = m if "audit" in name else n
            print(f"{name:30} {done / median(times, 'processor'):12,.0f} rounds/s", flush=True)


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=200_000)
    asked = parser.parse_args()
    for model in ("cells", "pooled", "probit"):
        share, p = coverage(model, asked.logs)
        print(f"{model:8} coverage {share:.3f} of {asked.logs} logs, ranks uniform p = {p:.3f}")
    speed(asked.rounds)
    feature_speed(asked.rounds)


if __name__ == "__main__":
    main()
