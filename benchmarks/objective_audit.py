"""The objective audit against sorting: 4000 draws, 1 million rounds, k = 10.

Run: python benchmarks/objective_audit.py [--rounds 1000000] [--arms 10]

The objective part (pair maxima, histograms, then 4000 draws of the truth: best-arm probabilities,
smallest eps2 on the whole grid of eps1, fairness regret) is timed beside ``np.sort`` of the same
k columns, each column contiguous, and of the same array along its rounds. Ratios below 1 mean
that the whole objective part takes less than the sort. The median of several interleaved runs
is printed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.cells import FullCell
from bayesfair.audit.log.running import n_threads
from bayesfair.audit.truth.objective import Part, evaluate
from bayesfair.rewards import Bernoulli


def objective(pi: np.ndarray, table: np.ndarray, draws: int, threads: int) -> float:
    rng = np.random.default_rng(1)
    cell = FullCell.of(pi, "total_variation", threads)
    theta = rng.beta(table[:, 0], table[:, 1], size=(draws, pi.shape[1]))
    found = evaluate([Part(cell, len(pi), Bernoulli(theta))], Criterion())
    assert found.regret is not None
    return float(found.regret.mean())


def timed(function, *args) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    k = args.arms
    pi = rng.dirichlet(np.ones(k), args.rounds)
    columns = np.ascontiguousarray(pi.T)
    n = np.full(k, args.rounds / k)
    table = np.stack([0.5 + n * np.linspace(0.2, 0.8, k), 0.5 + n * np.linspace(0.8, 0.2, k)], 1)

    # a histogram replaces the values above 100 000 rounds; its error is bounded and checked here
    few = pi[:50_000]
    exact = np.maximum(0.1 - few, 0).sum()
    cell = FullCell.of(few, "total_variation", 1)
    assert abs(cell.shortfall(np.full((1, k), 0.1))[0][0] - exact) < 1e-6 * exact

    threads = n_threads()
    objective(pi, table, args.draws, threads)  # compile
    times: dict[str, list[float]] = {"one": [], "all": [], "columns": [], "rounds": []}
    for _ in range(args.repeats):
        times["one"].append(timed(objective, pi, table, args.draws, 1))
        times["columns"].append(timed(lambda: np.sort(columns, axis=1)))
        times["all"].append(timed(objective, pi, table, args.draws, threads))
        times["rounds"].append(timed(lambda: np.sort(pi, axis=0)))
    median = {name: float(np.median(values)) for name, values in times.items()}
    print(f"{args.rounds} rounds, k = {k}, {args.draws} draws, medians of {args.repeats} runs")
    print(f"objective part, 1 thread    {median['one']:.3f} s")
    print(f"objective part, {threads} threads   {median['all']:.3f} s")
    print(f"np.sort of the k columns    {median['columns']:.3f} s (contiguous columns)")
    print(f"np.sort along the rounds    {median['rounds']:.3f} s (as logged)")
    print(f"ratio to contiguous sort    {median['one'] / median['columns']:.2f} (1 thread)")
    print(
        f"ratio to contiguous sort    {median['all'] / median['columns']:.2f} ({threads} threads)"
    )


if __name__ == "__main__":
    main()
