"""Audits given a context (``context_model="cells"``) against audits of the same log without one.

    python benchmarks/contexts.py [--rounds 1000000]

Processor time per round on one core, both in turns; k = 3 and 10 arms, 4 and 50 contexts.
"""

from __future__ import annotations

import argparse

import numpy as np
from subjective_audit import make_log
from timing import in_turns, median, on_cores, ratio

import bayesfair as bf


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=8)
    options = parser.parse_args()
    print("  k  contexts    rounds   without   cells     ratio   (ns of processor time per round)")
    for k in (3, 10):
        for n_contexts in (4, 50):
            compare(k, n_contexts, options.rounds, options.turns)


if __name__ == "__main__":
    main()
