"""Worths from comparisons: a certified posterior against the point estimates of other tools.

All tools get the same Python lists of strings; every conversion is timed on every side. Run

    python benchmarks/plackett_luce.py [--json FILE] [--quick]

Each line is the best of several runs in this one process; ratios are what matters.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import bayesfair as bf


def duels(n_items: int, n_duels: int, seed: int) -> tuple[list[str], list[str], list[str]]:
    """Simulate duels of named items; outcomes follow Bradley-Terry with log-worths N(0, 1)."""
    rng = np.random.default_rng(seed)
    names = [f"organisation/model-{i:04d}" for i in range(n_items)]
    log_worth = rng.normal(size=n_items)
    a = rng.integers(n_items, size=n_duels)
    b = (a + rng.integers(1, n_items, size=n_duels)) % n_items
    won = rng.random(n_duels) < 1 / (1 + np.exp(log_worth[b] - log_worth[a]))
    words = np.where(won, "left", "right").tolist()
    return [names[i] for i in a], [names[i] for i in b], words


def best_of(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return the last result and the shortest time, in seconds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return result, min(times)


def against_peers(n_duels: int, repeats: int) -> dict[str, float]:
    import choix
    import evalica

    left, right, winner = duels(130, n_duels, seed=1)

    def ours() -> Any:
        comparisons = bf.Comparisons.from_duels(left, right, winner)
        return bf.fit(comparisons, seed=1)

    def evalica_point() -> Any:
        words = {"left": evalica.Winner.X, "right": evalica.Winner.Y}
        return evalica.bradley_terry(left, right, [words[w] for w in winner])

    def choix_point() -> Any:
        index = {name: i for i, name in enumerate(sorted(set(left) | set(right)))}
        pairs = [
            (index[a], index[b]) if w == "left" else (index[b], index[a])
            for a, b, w in zip(left, right, winner, strict=True)
        ]
        return choix.ilsr_pairwise(len(index), pairs)

    counted, counting = best_of(
        lambda: bf.Comparisons.from_duels(left, right, winner), max(3, repeats)
    )
    ours()  # compiles and imports once
    tree, posterior = best_of(ours, max(3, repeats))
    scores, evalica_time = best_of(evalica_point, repeats)
    params, choix_time = best_of(choix_point, 1)
    mode = tree["mode"]["worth"].to_series()
    theirs = scores.scores / scores.scores.sum()
    # a million duels leave the prior no say: the estimates must agree
    assert np.abs(np.log(mode / theirs.reindex(mode.index))).max() < 0.1
    assert np.corrcoef(params, np.log(mode))[0, 1] > 0.999
    assert tree.attrs["method"] == "laplace" and counted.n_comparisons == n_duels
    return {
        "collapse, s": counting,
        "posterior of 4000 draws, from strings, s": posterior,
        "evalica bradley_terry, s": evalica_time,
        "choix ilsr_pairwise, s": choix_time,
        "ratio to evalica (> 1 wanted)": evalica_time / posterior,
        "ratio to choix (> 10 wanted)": choix_time / posterior,
        "k-hat": float(tree.attrs["khat"]),
        "efficiency of the certificate": float(tree.attrs["efficiency"]),
        "ess": float(tree.attrs["ess"]),
    }


def rankings(repeats: int) -> dict[str, float]:
    rng = np.random.default_rng(2)
    utility = rng.gumbel(size=(5000, 10)) + np.linspace(1, -1, 10)
    names = np.array([f"item {i}" for i in range(10)])
    orders = names[np.argsort(-utility, axis=1)].tolist()

    def work() -> Any:
        return bf.fit(bf.Comparisons.from_rankings(orders), seed=1)

    work()
    tree, seconds = best_of(work, repeats)
    return {"5000 rankings of 10, s (< 1 wanted)": seconds, "k-hat": float(tree.attrs["khat"])}


def many_items(repeats: int) -> dict[str, float]:
    from bayesfair.inference.comparison_problem import problem_of
    from bayesfair.inference.laplace import find_mode

    comparisons = bf.Comparisons.from_duels(*duels(2000, 20_000, seed=3))

    def mode() -> Any:
        problem = problem_of(comparisons, "bradley_terry", prior_sd=1.0)
        return find_mode(problem.likelihood, problem.precision)

    _, seconds = best_of(mode, repeats)
    tracemalloc.start()
    mode()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    bf.fit(comparisons, draws=4, seed=1)  # compiles once
    tree, sampled = best_of(lambda: bf.fit(comparisons, seed=1), 1)
    return {
        "2000 items, 20 000 duels: mode, s": seconds,
        "peak memory of the mode, MB": peak / 1e6,
        "a dense Hessian alone would be, MB": 2000**2 * 8 / 1e6,
        "posterior by NUTS, s": sampled,
        "R-hat (<= 1.01)": float(tree.attrs["rhat_max"]),
        "smallest ess (>= 400)": float(tree.attrs["ess_min"]),
    }


def few_rankings_of_many() -> dict[str, float]:
    """100 rankings of 10 to 30 out of 2000 items: a third of the items have no data."""
    rng = np.random.default_rng(4)
    names = [f"i{j:04d}" for j in range(2000)]
    ballots = [
        [names[j] for j in rng.choice(2000, size=rng.integers(10, 31), replace=False)]
        for _ in range(100)
    ]
    data = bf.Comparisons.from_rankings(ballots, items=names, partial="subset")
    bf.fit(data, draws=4, seed=1)
    begin = time.process_time()
    tree, seconds = best_of(lambda: bf.fit(data, seed=1), 1)
    return {
        "100 rankings out of 2000 items, s (< 15 wanted)": seconds,
        "processor time, s": time.process_time() - begin,
        "R-hat (<= 1.01)": float(tree.attrs["rhat_max"]),
        "smallest ess (>= 400)": float(tree.attrs["ess_min"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="100 000 duels instead of a million")
    options = parser.parse_args()
    n_duels = 100_000 if options.quick else 1_000_000
    found = {
        f"{n_duels} duels of 130 items": against_peers(n_duels, repeats=3),
        "rankings": rankings(3),
        "many items": many_items(2),
        "few rankings of many items": few_rankings_of_many(),
    }
    for title, numbers in found.items():
        print(title)
        for name, value in numbers.items():
            print(f"  {name:<45} {value:10.3f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
