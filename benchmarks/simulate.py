"""Speed of the simulator, as ratios to peers measured in the same run.

    python benchmarks/simulate.py [--rounds 1000000]

Every run of ours logs the exact probabilities of all arms and ends in a validated History. The
peers are what people write by hand: (a) NumPy, one round at a time, exact probabilities by the
tie integral; (b) the algorithm as printed, with samples and without any probabilities.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import sys
import time

import numpy as np

from bayesfair.kernels.laws.quadrature import n_tie_nodes, unit_nodes
from bayesfair.policies import SDTS, FairSDTS, SDTSMixture, Thompson, Uniform
from bayesfair.simulation.arms import simulate


def by_hand_exact(theta: np.ndarray, n_rounds: int) -> np.ndarray:
    k = theta.size
    rng = np.random.default_rng(1)
    x, w = unit_nodes(n_tie_nodes(k))
    s, f = np.full(k, 0.5), np.full(k, 0.5)
    log = np.empty((n_rounds, k))
    decide, pay = rng.random(n_rounds), rng.random(n_rounds)
    for t in range(n_rounds):
        m = s / (s + f)
        factor = 1 - m[:, None] * (1 - x)
        pi = m * ((w * factor.prod(axis=0)) / factor).sum(axis=1) + (1 - m).prod() / k
        log[t] = pi
        a = min(int(np.searchsorted(np.cumsum(pi), decide[t])), k - 1)
        if pay[t] < theta[a]:
            s[a] += 1
        else:
            f[a] += 1
    return log


def as_printed(theta: np.ndarray, n_rounds: int) -> np.ndarray:
    k = theta.size
    rng = np.random.default_rng(1)
    s, f = np.full(k, 0.5), np.full(k, 0.5)
    arm = np.empty(n_rounds, np.int32)
    for t in range(n_rounds):
        reward = rng.random(k) < rng.beta(s, f)
        a = int(rng.choice(np.flatnonzero(reward == reward.max())))
        arm[t] = a
        if rng.random() < theta[a]:
            s[a] += 1
        else:
            f[a] += 1
    return arm


def rate(call, n_rounds: int, repeats: int = 3) -> float:
    call()  # compile, warm caches
    best = min(_timed(call) for _ in range(repeats))
    return n_rounds / best


def _timed(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    n = parser.parse_args().rounds
    print(
        f"$ python {shlex.join(sys.argv)}    ({datetime.date.today().isoformat()}, "
        f"{os.cpu_count()} cores)\n"
    )
    print(f"{'rule':22s}{'k':>4s}{'rounds/s':>13s}{'x exact NumPy':>15s}{'x as printed':>14s}")
    for k in (2, 5, 10, 80):
        theta = np.linspace(0.1, 0.9, k)
        few = max(n // 100, 1)
        exact = rate(lambda theta=theta, few=few: by_hand_exact(theta, few), few, 1)
        printed = rate(lambda theta=theta, few=few: as_printed(theta, few), few, 1)
        for label, rule, rounds in (
            ("SD_TS", SDTS(), n if k <= 10 else n // 10),
            ("mixture", SDTSMixture(weight=0.5), n if k <= 10 else n // 10),
            ("Fair_SD_TS", FairSDTS(C=100), n if k <= 10 else n // 10),
            ("uniform", Uniform(), n if k <= 10 else n // 10),
            ("Thompson (exact)", Thompson(), n // 10),
        ):
            ours = rate(
                lambda rule=rule, theta=theta, rounds=rounds: simulate(rule, theta, rounds, seed=1),
                rounds,
            )
            print(
                f"{label:22s}{k:4d}{ours:13,.0f}{ours / exact:15.0f}{ours / printed:14.0f}",
                flush=True,
            )
    theta = np.linspace(0.1, 0.9, 5)
    reached = rate(lambda: simulate(SDTS(), theta, n, seed=1), n)
    print(
        f"\nSD_TS, k = 5: {reached:,.0f} rounds/s; to reach: 1,000,000 "
        f"({'reached' if reached >= 1e6 else 'NOT reached'})"
    )


if __name__ == "__main__":
    main()
