"""How long a user waits: import, help, and the audit of the bundled log.

    python benchmarks/startup.py

Each command runs in a fresh process; the first run of each is not counted (the audit's compiles and
caches the kernels). The targets are for an idle machine.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

TARGETS = {"bare python": None, "import bayesfair": 0.2, "--help": 0.5, "audit --example ecmo": 3.0}


def commands() -> dict[str, list[str]]:
    script = str(Path(sys.executable).with_name("bayesfair"))
    return {
        "bare python": [sys.executable, "-c", ""],
        "import bayesfair": [sys.executable, "-c", "import bayesfair"],
        "--help": [script, "--help"],
        "audit --example ecmo": [script, "audit", "--example", "ecmo"],
    }


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    print(f"{'':>22} {'first':>7} {'least':>7} {'median':>7} {'target':>7}   seconds")
    for name, command in commands().items():
        first, *times = (seconds(command) for _ in range(options.runs + 1))
        target = TARGETS[name]
        print(f"{name:>22} {first:>7.2f} {min(times):>7.2f} {statistics.median(times):>7.2f} "
              f"{'' if target is None else f'{target:>7.1f}'}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
