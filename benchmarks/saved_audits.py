"""How long saving and loading audits of many logs takes, and that what is loaded is what was saved.

    python benchmarks/saved_audits.py [GROUPS ...]

Groups of four rounds of three arms, 4000 draws each. Besides seconds, the processor time is shown:
on a busy machine it is the one to look at. The targets are for an idle machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import bayesfair as bf

TARGETS = {100: 2.0, 1000: 15.0}


def logs_of(n: int) -> dict[str, bf.History]:
    rng = np.random.default_rng(1)
    return {
        f"group {i}": bf.History(
            rng.integers(0, 3, 4).astype(np.int32),
            rng.integers(0, 2, 4).astype(float),
            arms=["a", "b", "c"],
            selection_probability=[[1 / 3] * 3] * 4,
        )
        for i in range(n)
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    return found, time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", type=int, nargs="*", default=[100, 1000])
    sizes = parser.parse_args().groups
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "many.nc")
        bf.audit(logs_of(2), seed=1).save(path)  # imports, compiled code
        bf.load_audit(path)
        print(f"{'groups':>7} {'':>6} {'seconds':>8} {'of processor':>13} {'target':>7}")
        for n in sizes:
            audit, *audited = timed(lambda n=n: bf.audit(logs_of(n), seed=1))
            _, *saved = timed(lambda audit=audit: audit.save(path))
            loaded, *read = timed(lambda: bf.load_audit(path))
            assert loaded.to_dict() == audit.to_dict()
            for name, (wall, processor) in {"audit": audited, "save": saved, "load": read}.items():
                target = "" if name == "audit" or n not in TARGETS else f"{TARGETS[n]:.0f}"
                print(f"{n:>7} {name:>6} {wall:>8.2f} {processor:>13.2f} {target:>7}", flush=True)
            print(f"{'':>7} {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
