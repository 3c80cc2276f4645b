"""A hardened installation: nothing of ours, and no home, can be written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

KERNEL = """
import numpy as np
from bayesfair.kernels.log import rows
found = rows.look_at_rows(np.array([[0.5, 0.25]]), np.array([0], dtype=np.int32), 2)
assert found == (0.25, False)
stats = rows._look_at_rows.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run(script, *, frozen, **environment):
    """Run a script where the folders ``frozen`` are mounted to be read only."""
    places = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "PYTHONDONTWRITEBYTECODE": "1"}
    environment = os.environ | places | environment
    environment = {k: v for k, v in environment.items() if v is not None}
    mounts = "".join(
        f"mount --bind '{folder}' '{folder}' && mount -o remount,ro,bind '{folder}' && "
        for folder in frozen
    )
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounts + 'exec "$@"', "sh"]
        + [str(word) for word in script],
        env=environment, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False,
    )  # fmt: skip


def needs_mount(tmp_path):
    try:
        done = run(["true"], frozen=[tmp_path])
    except FileNotFoundError:
        pytest.skip("no unshare: folders cannot be mounted read-only")
    if done.returncode:
        pytest.skip("no right to mount folders read-only")


def test_without_any_place_to_write_it_works_and_says_once_that_code_is_not_kept(tmp_path):
    needs_mount(tmp_path)
    done = run([sys.executable, "-c", KERNEL], frozen=[ROOT], NUMBA_CACHE_DIR=None)
    beside = ROOT / "bayesfair" / "kernels" / "__pycache__"
    in_tree = [*beside.glob("*.nbi"), *beside.glob("kernels.stamp")]
    assert done.returncode == 0, done.stderr
    assert done.stdout in (("1 0\n", "0 1\n") if in_tree else ("0 1\n",))
    assert done.stderr.count("compiled code cannot be kept") == (0 if in_tree else 1)


def test_code_that_was_compiled_beforehand_is_read_where_it_cannot_be_written(tmp_path):
    needs_mount(tmp_path)
    cache = tmp_path / "cache"
    cache.mkdir()
    script = [sys.executable, "-W", "error", "-c", KERNEL]
    first = run(script, frozen=[ROOT], NUMBA_CACHE_DIR=str(cache))
    before = sorted(path.name for path in cache.rglob("*"))
    later = run(script, frozen=[ROOT, cache], NUMBA_CACHE_DIR=str(cache))
    assert (first.stdout, later.stdout) == ("0 1\n", "1 0\n"), first.stderr + later.stderr
    assert sorted(path.name for path in cache.rglob("*")) == before


def test_code_compiled_from_other_sources_is_not_read(tmp_path):
    needs_mount(tmp_path)
    cache = tmp_path / "cache"
    cache.mkdir()
    script = [sys.executable, "-c", KERNEL]
    run(script, frozen=[ROOT], NUMBA_CACHE_DIR=str(cache))
    (stamp,) = cache.rglob("kernels.stamp")
    stamp.write_text("0" * 64)
    later = run(script, frozen=[ROOT, cache], NUMBA_CACHE_DIR=str(cache))
    in_tree = list((ROOT / "bayesfair" / "kernels" / "__pycache__").glob("*.nbi"))
    assert later.returncode == 0, later.stderr
    # no hit, whether another place without machine code was found or none
    assert in_tree or later.stdout.startswith("0 ")
