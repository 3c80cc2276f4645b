"""What `bayesfair audit LOG --by group` costs for hundreds and many thousands of groups.

``python benchmarks/many_groups.py`` writes logs of 3 arms, 4 rounds a group, with the whole rule,
runs the command once to compile and once to measure, and prints wall and processor time.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ARMS = "abc"


def write_log(path: Path, n_groups: int, n_rounds: int = 4) -> None:
    """Write a log with ``n_groups`` groups, one row per round."""
    rng = np.random.default_rng(0)
    n = n_groups * n_rounds
    p = np.round(rng.dirichlet([4.0] * 3, size=n), 6)
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    arm = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    won = rng.random(n) < 0.5
    with path.open("w", encoding="utf-8") as file:
        file.write("group,arm,reward,p_a,p_b,p_c\n")
        for t in range(n):
            a, b, c = p[t]
            file.write(f"g{t // n_rounds},{ARMS[arm[t]]},{int(won[t])},{a:.6f},{b:.6f},{c:.6f}\n")


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
    """Print one line per number of groups, and one for a log without groups."""
    with tempfile.TemporaryDirectory() as folder:
        for n_groups in (1, 862, 100_000):
            log = Path(folder) / f"{n_groups}.csv"
            write_log(log, n_groups)
            by = ["--by", "group"] if n_groups > 1 else []
            if n_groups < 100_000:
                timed("audit", str(log), *by)
            wall, used = timed("audit", str(log), *by)
            print(f"{n_groups:>7} groups: {wall:6.2f} s wall, {used:6.2f} s of processor time")


if __name__ == "__main__":
    main()
