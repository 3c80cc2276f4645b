"""What an audit is said to cost, and what it costs: ``python benchmarks/audit_estimate.py``.

One thread (OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1); each audit runs once before it is measured, and
the least processor time of three runs counts: others may use the machine meanwhile.
"""

import time

import numpy as np
import pandas as pd

import bayesfair as bf
from bayesfair.audit.log.limits import work_of, work_of_many

# arms, rounds, whole rule, draws
BERNOULLI = [
    (3, 90_000, True, 0), (10, 200_000, True, 0), (18, 60_000, True, 0), (40, 40_000, True, 0),
    (300, 3000, True, 0), (1000, 2000, True, 0), (2000, 50_000, False, 0),
    (3, 2000, True, 4000), (10, 2000, True, 4000),
    (40, 1000, True, 2000), (300, 300, False, 2000), (3, 100, False, 40_000),
]  # fmt: skip
OTHERS = [(5, 5000, True, 0), (5, 5000, False, 0), (20, 1000, True, 0), (5, 50, True, 5000)]
GROUPS = [(862, 4), (20_000, 4), (300, 100)]


# arms, arms that were chosen, rounds, draws
IDLE = [(20_000, 300, 20_000, 0), (20_000, 300, 20_000, 1000), (100_000, 1000, 100_000, 1000)]


def log_of(rng, k, n, full, family, chosen=None):
    """Return a made-up log."""
    reward = {
        "bernoulli": lambda: rng.integers(0, 2, n), "finite": lambda: rng.integers(1, 6, n),
        "poisson": lambda: rng.poisson(3.0, n), "normal": lambda: rng.normal(size=n),
    }[family]()  # fmt: skip
    return bf.History(
        rng.integers(0, chosen or k, n).astype(np.int32), reward.astype(float),
        selection_probability=rng.dirichlet(np.full(k, 5.0), size=n) if full else None,
        arms=[f"a{i}" for i in range(k)],
    )  # fmt: skip


def groups_of(rng, n, size):
    """Return a made-up log with a column of groups."""
    rule = rng.dirichlet([4.0] * 3, size=n * size).round(6)
    arm = (rule.cumsum(axis=1) < rng.random(n * size)[:, None]).sum(axis=1).clip(0, 2)
    columns = {f"p_{a}": rule[:, i] for i, a in enumerate("abc")}
    table = pd.DataFrame(
        {"group": np.repeat(np.arange(n), size), "arm": np.array(list("abc"))[arm]}
    )
    return table.assign(reward=rng.integers(0, 2, n * size), **columns)


def seconds(work):
    """Return the least processor time of three runs after the first."""
    work()
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main():
    """Print estimate, measurement and their ratio."""
    rng = np.random.default_rng(0)
    for family in ("bernoulli", "finite", "poisson", "normal"):
        for k, n, full, draws in BERNOULLI if family == "bernoulli" else OTHERS:
            log = log_of(rng, k, n, full, family)
            asked = {"seed": 1, "draws": draws} if draws else {"objective": False}
            prior = {"prior": (0, 1, 1, 1)} if family == "normal" else {}
            took = seconds(lambda: bf.audit(log, family=family, **asked, **prior))  # noqa: B023
            told = work_of(log, family, draws=draws).seconds
            what = f"{family} k={k} n={n} rule={full} draws={draws}"
            print(f"{what:<48} {told:8.3f} s {took:8.3f} s {told / took:6.2f}", flush=True)
    for k, chosen, n, draws in IDLE:
        log = log_of(rng, k, n, False, "bernoulli", chosen)
        asked = {"seed": 1, "draws": draws} if draws else {"objective": False}
        took = seconds(lambda: bf.audit(log, **asked))  # noqa: B023
        told = work_of(log, "bernoulli", draws=draws).seconds
        what = f"bernoulli k={k} ({chosen} chosen) n={n} draws={draws}"
        print(f"{what:<48} {told:8.3f} s {took:8.3f} s {told / took:6.2f}", flush=True)
    for n, size in GROUPS:
        logs = bf.read_history(groups_of(rng, n, size), by="group")
        took = seconds(lambda: str(bf.audit(logs, seed=1)))  # noqa: B023
        told = work_of_many(logs, "auto", draws=4000).seconds
        what = f"{n} groups of {size} rounds, table"
        print(f"{what:<48} {told:8.3f} s {took:8.3f} s {told / took:6.2f}", flush=True)


if __name__ == "__main__":
    main()
