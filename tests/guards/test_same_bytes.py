"""The same input and seed give the same bytes, on one core and on two, and in every process."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, json, os, sys
from pathlib import Path
os.sched_setaffinity(0, {int(core) for core in sys.argv[1].split(",")})
import numpy as np
import bayesfair as bf

rng = np.random.default_rng(7)
n, k = 250_000, 4                                     # blocks enough for two threads
pi = rng.dirichlet(np.full(k, 5.0), size=n)
arm = (pi.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1).astype(np.int32)
reward = (rng.random(n) < np.linspace(0.4, 0.6, k)[arm]).astype(float)
audit = bf.audit(bf.History(arm, reward, selection_probability=pi), draws=200, seed=1)
audit.save("audit.nc")
Path("audit.json").write_text(json.dumps(audit.to_dict()))
from bayesfair.audit.log.per_round import write_rounds
write_rounds(audit, "rounds.parquet")

items = np.array(["a", "b", "c", "d", "e"])
pairs = np.array([rng.permutation(5)[:2] for _ in range(3000)])
left, right = items[pairs].T
winner = np.where(rng.random(3000) < 0.6, left, right)
tree = bf.fit(bf.Comparisons.from_duels(left, right, winner), seed=1)
Path("fit.txt").write_text(str(bf.rank_table(tree)))
Path("posterior.bin").write_bytes(tree["posterior/log_worth"].values.tobytes())
for name in ("audit.nc", "audit.json", "rounds.parquet", "fit.txt", "posterior.bin"):
    print(name, hashlib.sha256(Path(name).read_bytes()).hexdigest())
"""


def digests(cores, folder):
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, cores], cwd=folder, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_audits_and_fits_are_the_same_on_one_core_and_on_two(tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    one, two = (str(core) for core in sorted(os.sched_getaffinity(0))[:2])
    alone = digests(one, tmp_path / "one")
    assert len(alone) == 5
    assert digests(f"{one},{two}", tmp_path / "two") == alone
