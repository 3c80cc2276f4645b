"""The subjective audit as users call it, ``bf.audit(log, objective=False)``, against NumPy.

    python benchmarks/subjective_audit.py                          # in memory, k = 3, 10, 80
    python benchmarks/subjective_audit.py --arms 3 --length 40000  # one of them
    python benchmarks/subjective_audit.py --parquet                # 20 million rounds from a file
    python benchmarks/subjective_audit.py --parquet --rounds 2000000

Both sides see the same arrays and must agree on every number to 1e-9. The rival (rivals.py) uses
the chunk size that a search finds best. Beside both runs the kernel of beliefs and P* alone, as it
was before the public call was made fast (earlier_kernel.py). One thread each by processor time;
then two cores against one by wall time. Medians over turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from earlier_kernel import EarlierKernel
from rivals import Numbers, subjective
from timing import in_turns, median, on_cores, ratio, spent

import bayesfair as bf

GRID = np.arange(0.0, 2.01, 0.25)
ASKED = 8
ARMS = (3, 10, 80)
LENGTHS = (40_000, 1_000_000)


def default_eps2(k: int) -> float:
    return min(0.05, 1 / (2 * k))


def make_log(k: int, n_rounds: int, kind: str, seed: int) -> bf.History:
    """Return a log of a fair rule (no round is far from the frontier) or of a noisy one."""
    rng = np.random.default_rng(seed)
    theta = rng.uniform(0.05, 0.6, k)
    if kind == "fair":
        return bf.simulate(bf.policies.SDTS(), bf.rewards.Bernoulli(theta), n_rounds, seed=seed)
    weight = rng.gamma(1.0, size=(n_rounds, k)) * theta
    pi = weight / weight.sum(axis=1, keepdims=True)
    arm = (np.cumsum(pi, axis=1) < rng.random((n_rounds, 1))).sum(axis=1).clip(max=k - 1)
    reward = rng.random(n_rounds) < theta[arm]
    return bf.History(arm, reward, selection_probability=pi)


def rival(log: bf.History, chunk: int) -> Numbers:
    assert log.selection_probability is not None
    return subjective(
        log.arm, log.reward, log.selection_probability, grid=GRID, asked=ASKED,
        eps2=default_eps2(log.n_arms), chunk=chunk,
    )  # fmt: skip


def assert_equal(audit: Any, other: Numbers) -> None:
    """Raise unless the audit says what the rival found, to 1e-9."""
    found = audit.to_dict()
    arms, checks = found["arms"], found["checks"]
    index = {entry["arm"]: i for i, entry in enumerate(arms)}

    def same(one: Any, another: Any) -> None:
        np.testing.assert_allclose(one, another, rtol=1e-9, atol=1e-9)

    for name, value in other["subjective"].items():
        one = found["subjective"][name]
        if name == "worst":
            assert one["round"] == value["round"], (one, value)
            assert [index[one[a]] for a in ("arm", "arm_other")] == [
                value["arm"],
                value["arm_other"],
            ]
        else:
            assert (one is None) == (value is None)
            if value is not None:
                same(one, value)
    same(found["calibration"]["subjective"]["regret_total"], other["regret_total"])
    for name in ("effective_sample_size", "max_weight", "mean_weight"):
        same(found["calibration"][name], other[name])
    for name in ("n", "reward_mean", "p_best_subjective", "selection_mean"):
        same([entry[name] for entry in arms], other[name])
    same([entry["subjective"] for entry in found["frontier"]], other["frontier"])
    for name in ("strength", "sticky", "movement", "repeated_rows"):
        same(checks[name]["statistic"], other[name])
    for name in ("choices", "context"):  # of the most surprising arm
        same(checks[name]["statistic"], other[name][index[checks[name]["arm"]]])


def best_chunk(work: Callable[[bf.History, int], object], log: bf.History) -> int:
    """Return the rival's best chunk size, found on the first rounds of the log."""
    part = log.rounds(0, min(log.n_rounds, 150_000 // log.n_arms))
    sizes = [2**e for e in range(5, 13)]
    times = {c: min(spent(lambda c=c: work(part, c)).processor for _ in range(2)) for c in sizes}
    return min(times, key=times.__getitem__)


HEAD = (
    "  k    rounds   log    numpy  kernel   audit   numpy/audit  audit/kernel"
    "   two cores: audit  kernel"
)


def in_memory(arms: list[int], lengths: list[int], turns: int) -> None:
    print(
        f"load of the machine {os.getloadavg()[0]:.1f}; ns of processor time per round, one thread"
    )
    print(HEAD)
    for k in arms:
        for n_rounds in lengths:
            for kind in ("fair", "noisy"):
                _compare(k, n_rounds, kind, turns)


def _compare(k: int, n_rounds: int, kind: str, turns: int) -> None:
    log, eps2 = make_log(k, n_rounds, kind, seed=k), default_eps2(k)
    chunk = best_chunk(rival, log)

    def audit(cores: int = 1) -> Any:
        with on_cores(cores):
            return bf.audit(log, objective=False)

    assert_equal(audit(), rival(log, chunk))
    assert_equal(audit(2), rival(log, chunk))
    with EarlierKernel(log, eps2) as kernel:
        assert (
            abs(kernel.regret - audit().to_dict()["calibration"]["subjective"]["regret_total"])
            < 1e-6
        )
        works = {
            "numpy": lambda: rival(log, chunk), "audit": audit, "kernel": kernel.on(1),
            "two": lambda: audit(2), "kernel two": kernel.on(2),
        }  # fmt: skip
        # one pass of the rival lasts as long as dozens of the others
        times = in_turns(works, turns=turns, seldom={"numpy": max(1, turns // 4)})
    slow, one, bare = (median(times[name], "processor") / n_rounds * 1e9
                       for name in ("numpy", "audit", "kernel"))  # fmt: skip
    print(
        f"{k:>3} {n_rounds:>9} {kind:>5} {slow:>8.0f} {bare:>7.1f} {one:>7.1f} "
        f"{ratio(times['numpy'], times['audit'], 'processor'):>11.1f} x "
        f"{ratio(times['audit'], times['kernel'], 'processor'):>11.2f} x "
        f"{ratio(times['audit'], times['two'], 'wall'):>16.2f} x "
        f"{ratio(times['kernel'], times['kernel two'], 'wall'):>5.2f} x",
        flush=True,
    )


def write_log(path: Path, n_rounds: int, k: int) -> None:
    """Write a log of a noisy rule, a part at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size, rng = 500_000, np.random.default_rng(7)
    names = [f"a{i}" for i in range(k)]
    theta, writer = rng.uniform(0.05, 0.6, k), None
    for start in range(0, n_rounds, size):
        n = min(size, n_rounds - start)
        weight = rng.gamma(1.0, size=(n, k)) * theta
        pi = weight / weight.sum(axis=1, keepdims=True)
        arm = (np.cumsum(pi, axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
        columns = {
            "arm": pa.DictionaryArray.from_arrays(pa.array(arm, pa.int32()), names).cast("string"),
            "reward": pa.array((rng.random(n) < theta[arm]).astype(np.int8)),
        }
        columns |= {f"p_{names[i]}": pa.array(np.ascontiguousarray(pi[:, i])) for i in range(k)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


# Each in a process of its own: peak memory is that of a process. Compilation is paid before.
_AUDIT = """
import json, resource, sys, time
import bayesfair as bf

bf.audit(bf.simulate(bf.policies.SDTS(), bf.rewards.Bernoulli([0.5] * 10), 300_000, seed=1), seed=1)
start = time.perf_counter()
audit = bf.audit(bf.scan_history(sys.argv[1]), seed=1)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
found = audit.to_dict()
assert found["log"]["n_rounds"] == int(sys.argv[2])
print(json.dumps([seconds, peak, found["subjective"]["smallest_eps2"]]))
"""
_READ = """
import json, resource, sys, time
import pyarrow.parquet as pq

start = time.perf_counter()
n = sum(batch.num_rows for batch in pq.ParquetFile(sys.argv[1]).iter_batches(250_000))
seconds = time.perf_counter() - start
assert n == int(sys.argv[2])
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, None]))
"""


def from_parquet(n_rounds: int, passes: int = 3) -> None:
    k = 10
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        write_log(path, n_rounds, k)
        print(f"{n_rounds} rounds, k = {k}, {path.stat().st_size / 1e9:.2f} GB of Parquet")
        best: dict[str, list[float]] = {}
        for _ in range(passes):
            for name, code in (("pyarrow alone", _READ), ("audit", _AUDIT)):
                run = [sys.executable, "-c", code, str(path), str(n_rounds)]
                found = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout)
                best[name] = min(found, best.get(name, found))
        for name, (wall, peak, _) in best.items():
            print(f"{name:>14}: {wall:7.2f} s, {wall / n_rounds * 1e9:6.1f} ns per round, "
                  f"peak memory {peak:.0f} MB")  # fmt: skip
        print(f"ratio of wall times {best['audit'][0] / best['pyarrow alone'][0]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parquet", action="store_true", help="from a file instead of memory")
    parser.add_argument("--rounds", type=int, default=20_000_000, help="rounds of the file")
    parser.add_argument("--arms", type=int, action="append", help="numbers of arms")
    parser.add_argument("--length", type=int, action="append", help="numbers of rounds")
    parser.add_argument("--turns", type=int, default=16)
    options = parser.parse_args()
    if options.parquet:
        from_parquet(options.rounds)
    else:
        in_memory(options.arms or list(ARMS), options.length or list(LENGTHS), options.turns)


if __name__ == "__main__":
    main()
