"""Subjective audit with frontier, full probabilities: bayesfair against vectorised NumPy.

    python benchmarks/subjective_audit.py                          # in memory, k = 3, 10, 80
    python benchmarks/subjective_audit.py --parquet                # 20 million rounds from a file
    python benchmarks/subjective_audit.py --parquet --rounds 2000000

Both sides see the same arrays and must agree on every number. The rival (rivals.py) uses the chunk
size that a search finds best. Rounds are timed in turns, the fastest pass of each side counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rivals import Audited, audit_numpy

import bayesfair as bf
from bayesfair.kernels.log.stream import StreamResult, start_state, stream_bernoulli

GRID = np.arange(0.0, 2.01, 0.25)
ASKED, EPS2 = 8, 0.05
ROUNDS = {3: 600_000, 10: 300_000, 80: 65_536}


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


def ours(log: bf.History, threads: int) -> StreamResult:
    assert log.selection_probability is not None
    k = log.n_arms
    return stream_bernoulli(
        log.arm,
        log.reward,
        log.selection_probability,
        state=start_state(np.full(k, 0.5), np.full(k, 0.5)),
        eps1_grid=GRID,
        eps1_index=ASKED,
        eps2=EPS2,
        threads=threads,
    )


def rival(log: bf.History, chunk: int) -> Audited:
    assert log.selection_probability is not None
    return audit_numpy(
        log.arm, log.reward, log.selection_probability, grid=GRID, asked=ASKED, eps2=EPS2,
        chunk=chunk,
    )  # fmt: skip


def assert_equal(one: StreamResult, other: Audited) -> None:
    np.testing.assert_allclose(one.frontier, other.frontier, atol=1e-12)
    np.testing.assert_allclose(one.regret, other.regret, atol=1e-12)
    np.testing.assert_allclose(one.p_best_sum, other.p_best_sum, rtol=1e-11)
    np.testing.assert_allclose(one.pi_sum, other.pi_sum, rtol=1e-11)
    np.testing.assert_array_equal(one.plays, other.plays)
    assert one.n_violating[0] == other.n_violating
    assert abs(one.all_zero_sum - other.all_zero_sum) <= 1e-11 * max(1.0, other.all_zero_sum)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_chunk(log: bf.History) -> int:
    """Return the rival's best chunk size, found on the first rounds of the log."""
    part = log.rounds(0, min(log.n_rounds, 150_000 // log.n_arms))
    sizes = [2**e for e in range(5, 15)]
    times = {c: min(seconds(lambda c=c: rival(part, c)) for _ in range(4)) for c in sizes}
    return min(times, key=times.__getitem__)


def in_memory(repeats: int) -> None:
    print(f"{'k':>3} {'log':>6} {'rounds':>8} {'numpy':>8} {'chunk':>6} {'1 thread':>9} "
          f"{'2 threads':>9}   ns per round; ratios to numpy and of threads")  # fmt: skip
    for k, n_rounds in ROUNDS.items():
        for kind in ("fair", "noisy"):
            log = make_log(k, n_rounds, kind, seed=k)
            chunk = best_chunk(log)
            assert_equal(ours(log, 2), rival(log, chunk))  # and compiles
            best = {"numpy": np.inf, "one": np.inf, "two": np.inf}
            for _ in range(repeats):
                best["numpy"] = min(best["numpy"], seconds(lambda log=log, c=chunk: rival(log, c)))
                for _ in range(4):
                    best["one"] = min(best["one"], seconds(lambda log=log: ours(log, 1)))
                    best["two"] = min(best["two"], seconds(lambda log=log: ours(log, 2)))
            slow, one, two = (t / n_rounds * 1e9 for t in best.values())
            print(f"{k:>3} {kind:>6} {n_rounds:>8} {slow:>8.0f} {chunk:>6} {one:>9.1f} {two:>9.1f}"
                  f"   {slow / one:.1f} x numpy on one thread, {slow / two:.1f} x on two "
                  f"(x {one / two:.2f})", flush=True)  # fmt: skip


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
    parser.add_argument("--repeats", type=int, default=4, help="passes of the rival")
    options = parser.parse_args()
    if options.parquet:
        from_parquet(options.rounds)
    else:
        in_memory(options.repeats)


if __name__ == "__main__":
    main()
