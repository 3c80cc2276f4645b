"""The paper's claims and the project's own results at length: T = 1e6, 8 runs per cell.

    python benchmarks/claims_long.py [--runs 8] [--rounds 1000000] [--part regret|fair|duels|all]

Prints what is stated, what came out, and how many standard errors lie between. The short form,
run by CI, is tests/test_claims.py.
"""

from __future__ import annotations

import argparse
import datetime
import math
import shlex
import sys
import time
import warnings

import numpy as np

from bayesfair import theory
from bayesfair.duelling import simulate_duels
from bayesfair.errors import BayesfairWarning
from bayesfair.kernels.best_arm import bernoulli_best_arm
from bayesfair.performance import fairness_regret_per_round, utility
from bayesfair.policies import SDTS, FairSDDTS, FairSDTS, Thompson, Uniform
from bayesfair.rewards import Bernoulli
from bayesfair.simulate import simulate

# theory.md, sections 6 and 11: T = 1e6, theta = linspace(.1, .9, k); None = not stated
STATED = {
    "sd_ts": {2: 816.0, 5: 1825.0, 10: 2628.0},
    "fair_sd_ts, paper's C": {2: 81_900.0, 5: 43_400.0, 10: 30_500.0},
    "fair_sd_ts, C = sqrt(T/k)": {2: 1373.0, 5: 2346.0, 10: 3208.0},
    "uniform": {2: 400_000.0, 5: 280_000.0, 10: 239_000.0},
    "thompson": {2: 100_000.0, 5: 598_000.0, 10: 808_000.0},
}
STATED_STANDARD = {2: 5.0, 5: 35.0, 10: 83.0}


def rules(k: int, n_rounds: int):
    eps2 = theory.paper_eps2(k, n_rounds)
    return {
        "sd_ts": SDTS(),
        "fair_sd_ts, paper's C": FairSDTS(eps2=eps2, delta=n_rounds**-0.5, C="paper"),
        "fair_sd_ts, C = sqrt(T/k)": FairSDTS(eps2=eps2, delta=n_rounds**-0.5, C="sqrt"),
        "uniform": Uniform(),
        "thompson": Thompson(),
    }


def regret(n_rounds: int, n_runs: int, seed: int) -> None:
    print(f"Fairness regret, T = {n_rounds}, theta = linspace(.1, .9, k), {n_runs} runs per cell")
    print(
        f"{'rule':28s}{'k':>3s}{'stated':>10s}{'mean':>11s}{'s.e.':>8s}{'(m-s)/s.e.':>11s}"
        f"{'slope':>7s}{'std regret':>12s}{'s.e.':>8s}{'bounds':>22s}{'s/run':>7s}"
    )
    at = [max(n_rounds // 100, 1), max(n_rounds // 10, 1), n_rounds]
    for k in (2, 5, 10):
        theta = np.linspace(0.1, 0.9, k)
        for name, rule in rules(k, n_rounds).items():
            total, standard, path = [], [], []
            started = time.perf_counter()
            for r, child in enumerate(np.random.SeedSequence([seed, k]).spawn(n_runs)):
                del r
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", BayesfairWarning)
                    run = simulate(rule, theta, n_rounds, seed=np.random.default_rng(child))
                per_round = fairness_regret_per_round(run, theta)
                path.append(np.cumsum(per_round)[[t - 1 for t in at]])
                total.append(path[-1][-1])
                standard.append(utility(run, theta).standard_regret)
            seconds = (time.perf_counter() - started) / n_runs
            mean, se = np.mean(total), np.std(total, ddof=1) / math.sqrt(n_runs)
            smean, sse = np.mean(standard), np.std(standard, ddof=1) / math.sqrt(n_runs)
            slope = np.polyfit(np.log(at), np.log(np.mean(path, axis=0)), 1)[0]
            bounds = ""
            if name == "sd_ts":
                limit = theory.asymptotic_constant(theta) * math.sqrt(n_rounds)
                top = theory.sd_ts_regret_bound(k, n_rounds, theta)
                bounds = f"limit {limit:.0f} <= {top:.0f}"
            elif name.startswith("fair"):
                full = rule.for_run(k, n_rounds, Bernoulli(theta))
                low, top = theory.fair_sd_ts_regret_bounds(
                    theta, full.exploration_constant(k), n_rounds
                )
                bounds = f"{low:.0f} .. {top:.0f}"
            stated = STATED[name][k] if n_rounds == 1_000_000 else math.nan
            z = (mean - stated) / se if se > 1e-9 * mean else math.nan
            print(
                f"{name:28s}{k:3d}{stated:10.0f}{mean:11.1f}{se:8.1f}{z:11.2f}{slope:7.2f}"
                f"{smean:12.1f}{sse:8.1f}{bounds:>22s}{seconds:7.2f}",
                flush=True,
            )
    print("standard regret of thompson stated:", STATED_STANDARD)


def violations(n_rounds: int, n_runs: int, seed: int) -> None:
    print(
        f"\nShare of runs in which some round exceeds |theta_i - theta_j| + 2 eps2 "
        f"(T = {n_rounds}, eps2 = .1, delta = .1)"
    )
    print(
        f"{'C':18s}{'k':>3s}{'arms':>8s}{'runs':>6s}{'violating':>10s}"
        f"{'estimates off':>15s}   (some |mean - theta| > eps2 / (2 max D + 1))"
    )
    for c in ("paper", "paper-worst-case", "union", "union-with-prior"):
        for k in (2, 10, 40):
            for arms, theta in (("equal", np.full(k, 0.5)), ("grid", np.linspace(0.1, 0.9, k))):
                rule = FairSDTS(eps2=0.1, delta=0.1, C=c)
                widest = float(theta.max() - theta.min())
                bad = off = 0
                length = max(n_rounds, 4 * k * 1400)
                for child in np.random.SeedSequence([seed, k]).spawn(n_runs):
                    run = simulate(rule, theta, length, seed=np.random.default_rng(child))
                    pi = run.selection_probability
                    order = np.argsort(theta, kind="stable")
                    u, v = pi[:, order] - theta[order], pi[:, order] + theta[order]
                    # all pairs at once: theory.md, section 9
                    worst = np.maximum(
                        (u[:, 1:] - np.minimum.accumulate(u, axis=1)[:, :-1]).max(axis=1),
                        (np.maximum.accumulate(v, axis=1)[:, :-1] - v[:, 1:]).max(axis=1),
                    )
                    bad += worst.max() > 2 * rule.eps2 + 1e-9
                    first = int(np.argmax(np.ptp(pi, axis=1) > 1e-12))
                    pulls, total = run.before(first).counts()
                    x = rule.eps2 / (2 * widest + 1) if c.startswith("paper") else rule.eps2
                    off += first > 0 and np.max(np.abs(total / pulls - theta)) > x
                print(
                    f"{c:18s}{k:3d}{arms:>8s}{n_runs:6d}{bad / n_runs:10.3f}{off / n_runs:15.3f}",
                    flush=True,
                )


def duels(n_rounds: int, n_runs: int, seed: int) -> None:
    print(f"\nDuels, worths 3:2:1, T = {n_rounds}, C = 50, {n_runs} runs: total fairness regret")
    for label, extra, stated in (
        ("A: two draws from P^", {"exploitation": "A"}, 168.0),
        ("B: top two, mean of slots", {"exploitation": "B", "slot": "mean"}, 1153.0),
        ("C: P^ against uniform, first slot", {"exploitation": "C"}, 206.0),
        ("C: the same, mean of slots", {"exploitation": "C", "slot": "mean"}, 0.125 * n_rounds),
        ("A with maximum likelihood", {"exploitation": "A", "estimator": "mle"}, math.nan),
    ):
        rule = FairSDDTS(C=50, **extra)
        logs = simulate_duels(rule, [3, 2, 1], n_rounds, seed=seed, n_runs=n_runs)
        total = [log.fairness_regret([3, 2, 1]).sum() for log in logs.values()]
        late = [log.fairness_regret([3, 2, 1])[-n_rounds // 10 :].mean() for log in logs.values()]
        print(
            f"{label:36s} stated {stated:7.0f}  mean {np.mean(total):7.0f}  s.e. "
            f"{np.std(total, ddof=1) / math.sqrt(n_runs):5.0f}  per round at the end "
            f"{np.mean(late):.4f}"
        )


def exact() -> None:
    print("\nExact: three levels P = (0, 1-d, d), Q = (d, 1-d, 0): |pi_i - pi_j| / d against 2 - d")
    from bayesfair.rewards import Finite

    for d in (0.1, 0.01, 0.001):
        pi = Finite([0, 1, 2], [[0, 1 - d, d], [d, 1 - d, 0]]).best_arm_probability()
        print(f"d = {d}: {abs(pi[0] - pi[1]) / d:.6f} against {2 - d}")
    print(
        "Dependent arms, theta = (1,0,0) or (0,1,1) with equal odds: mean P* = "
        f"{(bernoulli_best_arm([1.0, 0, 0]) + bernoulli_best_arm([0.0, 1, 1])) / 2}, "
        "while all marginals are 1/2"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=2017)
    parser.add_argument("--part", default="all", choices=["all", "regret", "fair", "duels"])
    o = parser.parse_args()
    print(f"$ python {shlex.join(sys.argv)}    ({datetime.date.today().isoformat()})\n")
    if o.part in ("all", "regret"):
        regret(o.rounds, o.runs, o.seed)
    if o.part in ("all", "fair"):
        violations(min(o.rounds, 20_000), 25 * o.runs, o.seed)
    if o.part in ("all", "duels"):
        duels(min(o.rounds, 16_000), o.runs, o.seed)
        exact()


if __name__ == "__main__":
    main()
