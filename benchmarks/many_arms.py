"""P* of every round of logs with many arms: against the plain sum over all arms in each round.

    python benchmarks/many_arms.py

The rival is the same sum with a factor for every arm, at max(64, 4 sqrt(k)) nodes on [0, 1], in
vectorised NumPy that repairs what one arm changes; its time is that of 30 rounds, taken times the
number of rounds. Of more than 20 000 arms its table is too large. Times are of one thread.
"""

from __future__ import annotations

import math
import time

import numpy as np

from bayesfair.kernels.laws.quadrature import unit_nodes
from bayesfair.kernels.log.conjugate import start_table
from bayesfair.kernels.log.stream import stream_bernoulli

CASES = (
    ("1000 arms, all played", 1000, 1000, 300_000),
    ("100 000 arms, 1000 of them played", 100_000, 1000, 300_000),
    ("20 000 arms, three plays each", 20_000, 20_000, 60_000),
    ("100 000 arms, three plays each", 100_000, 100_000, 300_000),
    ("1 000 000 arms, one play each", 1_000_000, 1_000_000, 1_000_000),
)


def ours(arm: np.ndarray, reward: np.ndarray, k: int) -> tuple[float, float]:
    """Return seconds, and how far P* summed over arms and rounds is from the number of rounds."""
    state = start_table(np.full((k, 2), 0.5))
    begin = time.perf_counter()
    found = stream_bernoulli(
        arm, reward, None, state=state, eps1_grid=[1.0], eps1_index=0, eps2=0.0
    )
    return time.perf_counter() - begin, abs(found.sums.p_best.sum() / len(arm) - 1)


def all_arms(arm: np.ndarray, reward: np.ndarray, k: int, rounds: int) -> float:
    """Return seconds per round with a factor for each arm."""
    nodes, weights = unit_nodes(max(64, math.ceil(4 * math.sqrt(k))))
    won, seen = np.full(k, 0.5), np.ones(k)
    m = won / seen
    factors = 1 - m[:, None] * (1 - nodes)
    log = np.log(factors).sum(axis=0)
    table = 1 / factors
    begin = time.perf_counter()
    for a, x in zip(arm[:rounds], reward[:rounds], strict=True):
        m * (table @ (weights * np.exp(log)))  # P* of this round
        won[a] += x
        seen[a] += 1
        m[a] = won[a] / seen[a]
        factor = 1 - m[a] * (1 - nodes)
        log += np.log(factor * table[a])
        table[a] = 1 / factor
    return (time.perf_counter() - begin) / rounds


def main() -> None:
    rng = np.random.default_rng(0)
    ours(np.zeros(100, np.int32), np.zeros(100), 100)  # compiled
    print("log | rounds | s | an arm at a time, s | ratio | sum of P* misses 1 by")
    for name, k, played, n_rounds in CASES:
        arm = rng.integers(0, played, n_rounds).astype(np.int32)
        if played == n_rounds:
            arm = np.arange(n_rounds, dtype=np.int32)
        reward = (rng.random(n_rounds) < 0.4).astype(float)
        seconds, off = ours(arm, reward, k)
        rival = "too large" if k > 20_000 else all_arms(arm, reward, k, 30) * n_rounds
        ratio = "" if isinstance(rival, str) else f"{rival / seconds:.0f}"
        shown = rival if isinstance(rival, str) else f"{rival:.0f}"
        print(f"{name} | {n_rounds} | {seconds:.2f} | {shown} | {ratio} | {off:.1e}", flush=True)


if __name__ == "__main__":
    main()
