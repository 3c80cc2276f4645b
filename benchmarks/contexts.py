"""What audits given a context cost, in processor time on one core.

    python benchmarks/contexts.py [--rounds 1000000]

``context_model="cells"`` against audits of the same log without a context, in turns, k = 3 and 10,
4 and 50 contexts. Then rounds per second of 10 arms: 32 contexts, beside pooling as a script
would have it, vectorised over nodes by NumPy; and of features, 4 numbers and the intercept.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import special
from subjective_audit import make_log
from timing import in_turns, median, on_cores, ratio

import bayesfair as bf
from bayesfair.kernels.log.coefficients import Coefficients, run_coefficients


def compare(k: int, n_contexts: int, n_rounds: int, turns: int) -> None:
    log = make_log(k, n_rounds, "noisy", seed=k)
    context = np.random.default_rng(k).integers(0, n_contexts, n_rounds).astype(str)
    given = bf.History(
        log.arm, log.reward, selection_probability=log.selection_probability, context=context
    )
    works = {
        "without": lambda: bf.audit(log, objective=False),
        "cells": lambda: bf.audit(given, objective=False, context_model="cells"),
    }
    with on_cores(1):
        assert works["cells"]().to_dict()["context"]["n_cells"] == n_contexts
        times = in_turns(works, turns=turns)
    without, cells = (median(times[name], "processor") / n_rounds * 1e9 for name in works)
    print(
        f"{k:>3} {n_contexts:>9} {n_rounds:>9} {without:>9.1f} {cells:>7.1f} "
        f"{ratio(times['cells'], times['without'], 'processor'):>7.2f} x",
        flush=True,
    )


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
                "no context": lambda: of("none"),
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=8)
    options = parser.parse_args()
    print("  k  contexts    rounds   without   cells     ratio   (ns of processor time per round)")
    for k in (3, 10):
        for n_contexts in (4, 50):
            compare(k, n_contexts, options.rounds, options.turns)
    speed(options.rounds // 5)
    feature_speed(options.rounds // 5)


if __name__ == "__main__":
    main()
