"""The belief-and-P* kernel as it was before the public call was made fast, for comparison.

Taken from the history of this repository (`git archive`) and run in a process of its own on the
same arrays. The kernel alone: beliefs, P*, regret, pairs and frontier, no checks of the log, no
moments, no series.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from timing import Spent

import bayesfair as bf

__all__ = ["COMMIT", "EarlierKernel"]

COMMIT = "04b0258"

_CHILD = """
import json, os, sys, time
import numpy as np
from bayesfair.kernels.stream import start_state, stream_bernoulli

folder, eps2 = sys.argv[1], float(sys.argv[2])
arm, reward, pi = (np.load(f"{folder}/{name}.npy") for name in ("arm", "reward", "pi"))
cores, k = sorted(os.sched_getaffinity(0)), pi.shape[1]

def run(threads):
    return stream_bernoulli(
        arm, reward, pi, state=start_state(np.full(k, 0.5), np.full(k, 0.5)),
        eps1_grid=0.25 * np.arange(9), eps1_index=8, eps2=eps2, threads=threads,
    )

print(json.dumps(float(run(1).regret.sum())), flush=True)
for line in sys.stdin:
    threads = int(line)
    os.sched_setaffinity(0, set(cores[-threads:]))
    wall, processor = time.perf_counter(), time.process_time()
    run(threads)
    processor, wall = time.process_time() - processor, time.perf_counter() - wall
    print(json.dumps([processor, wall]), flush=True)
"""


def _sources() -> Path:
    """Return where the package of that commit lies, unpacked once per machine."""
    folder = Path(tempfile.gettempdir()) / f"bayesfair-{COMMIT}"
    if not (folder / "bayesfair").exists():
        root = Path(__file__).resolve().parents[1]
        packed = subprocess.run(
            ["git", "-C", str(root), "archive", COMMIT, "bayesfair", "models"],
            check=True, stdout=subprocess.PIPE,
        ).stdout  # fmt: skip
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
    return folder


class EarlierKernel:
    """The kernel of `COMMIT` with one log, ready to be timed; ``regret`` is its sum."""

    def __init__(self, log: bf.History, eps2: float) -> None:
        self._folder = tempfile.TemporaryDirectory()
        for name, values in (
            ("arm", log.arm), ("reward", log.reward), ("pi", log.selection_probability)
        ):  # fmt: skip
            assert values is not None
            np.save(Path(self._folder.name) / f"{name}.npy", values)
        self._child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, self._folder.name, repr(eps2)],
            cwd=_sources(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.regret = float(self._answer())

    def _answer(self) -> Any:
        assert self._child.stdout is not None
        return json.loads(self._child.stdout.readline())

    def on(self, threads: int) -> Callable[[], Spent]:
        """Return a call that runs the kernel on some threads and says what that took."""

        def work() -> Spent:
            assert self._child.stdin is not None
            self._child.stdin.write(f"{threads}\n")
            self._child.stdin.flush()
            return Spent(*self._answer())

        return work

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()
        self._folder.cleanup()
