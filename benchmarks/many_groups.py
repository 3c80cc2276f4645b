"""What `bayesfair audit LOG --by group` costs for hundreds and many thousands of groups.

``python benchmarks/many_groups.py`` writes logs of 3 arms, 4 rounds a group, with the whole rule,
the chosen arms' probabilities, or none, and of the whole rule of 10 arms; it runs the command once
to compile and once to measure, and prints wall and processor time.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write_log(
    path: Path, n_groups: int, *, logged: str = "rule", n_arms: int = 3, n_rounds: int = 4
) -> None:
    """Write a log with ``n_groups`` groups, one row per round."""
    rng, arms = np.random.default_rng(0), "abcdefghij"[:n_arms]
    n = n_groups * n_rounds
    p = np.round(rng.dirichlet([4.0] * n_arms, size=n), 6)
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    arm = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    won = rng.random(n) < 0.5
    chosen = p[np.arange(n), arm][:, None]
    columns = {"rule": p, "chosen": chosen, "nothing": p[:, :0]}[logged]
    names = {"rule": [f"p_{a}" for a in arms], "chosen": ["propensity"], "nothing": []}[logged]
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(["group,arm,reward", *names]) + "\n")
        for t, row in enumerate(columns.tolist()):
            rest = "".join(f",{x:.6f}" for x in row)
            file.write(f"g{t // n_rounds},{arms[arm[t]]},{int(won[t])}{rest}\n")


def timed(*argv: str) -> tuple[float, float]:
    """Return wall and processor seconds of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "bayesfair", *argv], check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used


def main() -> None:
    """Print one line per log; the first is one without groups."""
    many = 100_000
    logs = [(1, "rule", 3), *((n, what, 3) for what in ("rule", "chosen", "nothing")
                              for n in (862, many)), (many // 10, "rule", 10)]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        for n_groups, logged, n_arms in logs:
            write_log(log, n_groups, logged=logged, n_arms=n_arms)
            by = ["--by", "group"] if n_groups > 1 else []
            if n_groups < many:
                timed("audit", str(log), *by)
            wall, used = timed("audit", str(log), *by)
            print(
                f"{n_groups:>7} groups, {n_arms:>2} arms, {logged:>7} logged: {wall:6.2f} s wall, "
                f"{used:6.2f} s of processor time"
            )


if __name__ == "__main__":
    main()
