"""The audit with all defaults as users call it, ``bf.audit(log, seed=1)``, against NumPy.

    python benchmarks/objective_audit.py                          # k = 3, 10, 80
    python benchmarks/objective_audit.py --arms 3 --length 40000  # one of them

Both sides draw the same 4000 truths and must agree on every number to 1e-9; only where ours bins
the logged probabilities (beyond 100 000 rounds) the regret may differ by the bound that is printed
with it. The rival (rivals.py) uses the chunk size that a search finds best. One thread each by
processor time; then two cores against one by wall time. Medians over turns.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np
from rivals import Numbers, objective
from subjective_audit import (
    ARMS,
    ASKED,
    GRID,
    LENGTHS,
    assert_equal,
    best_chunk,
    default_eps2,
    make_log,
)
from subjective_audit import rival as subjective_rival
from timing import in_turns, median, on_cores, ratio

import bayesfair as bf

DRAWS = 4000


def rival(log: bf.History, chunk: int, wide: int) -> tuple[Numbers, Numbers]:
    """Audit with NumPy: under the beliefs, and under draws of the truth."""
    assert log.selection_probability is not None
    return subjective_rival(log, chunk), objective(
        log.arm, log.reward, log.selection_probability, grid=GRID, asked=ASKED,
        eps2=default_eps2(log.n_arms), draws=DRAWS, seed=1, chunk=wide,
    )  # fmt: skip


def assert_same(audit: Any, both: tuple[Numbers, Numbers]) -> None:
    """Raise unless the audit says what the rival found."""
    assert_equal(audit, both[0])
    found, other = audit.to_dict(), both[1]

    def spread(one: dict[str, float], draws: Any, within: float = 1e-9) -> None:
        expected = [draws.mean(), *np.quantile(draws, [0.025, 0.975])]
        said = [one["mean"], one["lower"], one["upper"]]
        np.testing.assert_allclose(said, expected, rtol=1e-9, atol=within)

    part = found["objective"]
    assert abs(part["probability_fair"] - other["probability_fair"]) < 1e-12
    spread(part["smallest_eps2"], other["smallest_eps2"])
    for e, entry in enumerate(found["frontier"]):
        spread(entry["objective"], other["frontier_objective"][:, e])
    spread(part["n_violating_rounds"], other["n_violating"])
    violates = other["first_violating"] >= 0
    assert part["n_violating_rounds"]["draws"] == len(violates)
    for name in ("first_violating", "last_violating"):
        said = part[f"{name}_round"]
        assert (said is None) == (not violates.any())
        if said is not None:
            spread(said, other[name][violates])
    best = [entry["p_best_objective"] for entry in found["arms"]]
    np.testing.assert_allclose(best, other["p_best_objective"], rtol=1e-9, atol=1e-12)
    regret = found["calibration"]["objective"]
    said = {"mean": regret["regret_per_round"]} | {n: regret[n] for n in ("lower", "upper")}
    bound = next((n["value"] for n in found["findings"] if n["kind"] == "binning"), 0.0)
    spread(said, other["regret_objective"], bound + 1e-9)


def compare(k: int, n_rounds: int, kind: str, turns: int) -> None:
    log = make_log(k, n_rounds, kind, seed=k)
    chunk = best_chunk(subjective_rival, log)
    wide = max(32, 200_000 // (k * k))  # pairs of a chunk stay in the cache

    def audit(cores: int = 1) -> Any:
        with on_cores(cores):
            return bf.audit(log, seed=1)

    other = rival(log, chunk, wide)
    assert_same(audit(), other)
    assert_same(audit(2), other)
    works = {
        "numpy": lambda: rival(log, chunk, wide), "audit": audit, "two": lambda: audit(2)
    }  # fmt: skip
    times = in_turns(works, turns=turns, seldom={"numpy": max(1, turns // 8)})
    slow, one = (median(times[name], "processor") / n_rounds * 1e9 for name in ("numpy", "audit"))
    print(
        f"{k:>3} {n_rounds:>9} {kind:>5} {slow:>9.0f} {one:>9.1f} "
        f"{ratio(times['numpy'], times['audit'], 'processor'):>11.1f} x "
        f"{ratio(times['audit'], times['two'], 'wall'):>11.2f} x",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", type=int, action="append", help="numbers of arms")
    parser.add_argument("--length", type=int, action="append", help="numbers of rounds")
    parser.add_argument("--turns", type=int, default=8)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"load of the machine {load:.1f}; ns of processor time per round, one thread")
    print("  k    rounds   log     numpy     audit   numpy/audit     two cores")
    for k in options.arms or ARMS:
        for n_rounds in options.length or LENGTHS:
            for kind in ("fair", "noisy"):
                compare(k, n_rounds, kind, options.turns)


if __name__ == "__main__":
    main()
