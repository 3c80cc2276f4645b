"""Ctrl-C ends long work within a second, with status 130 and nothing half written."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bayesfair.kernels.team import usable_cores

HANG = """
import sys, time
import numpy as np
import bayesfair.cli.program as program
from bayesfair.cli.interrupts import at_interrupt
import numba
from bayesfair.base.writing import replacing
import typer

@numba.njit(nogil=True)
def endless(x):
    while x[0] < 1.0:
        x[1] += 1e-9
    return x[1]

def kept():
    open(sys.argv[1] + ".kept", "w").write("so far")
    return "kept."

def work(out: str):
    endless(np.array([2.0, 0.0]))
    with at_interrupt(kept), replacing(out) as draft:
        draft.write_text("half")
        print("busy", flush=True)
        endless(np.zeros(2))

program.app.command("hang")(work)
sys.argv[1:] = ["hang", sys.argv[1]]
program.main()
"""


def interrupted(command, ready, cwd):
    """Start a command, send Ctrl-C once it says it is busy; return status, seconds and errors."""
    with subprocess.Popen(
        [sys.executable, *command], cwd=cwd, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            ready(process)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            return process.returncode, time.monotonic() - start, errors
        finally:
            process.kill()


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_in_the_middle_of_a_kernel_and_of_a_file(tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("old")

    def ready(process):
        assert process.stdout.readline() == "busy\n"
        time.sleep(2)  # into the kernel: a moment earlier Python would end it by itself

    code = HANG.replace("sys.argv[1] +", "sys.argv[2] +")
    status, seconds, errors = interrupted(["-c", code, str(target)], ready, tmp_path)
    assert status == 130, errors
    # the kernel never ends by itself: without the watcher this test would run into its time limit
    assert seconds < 30 * (1 + os.getloadavg()[0] / usable_cores())
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.txt", "out.txt.kept"]
    assert "kept." in errors and "interrupted." in errors


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_a_long_simulation(tmp_path):
    def ready(process):
        time.sleep(6)
        assert process.poll() is None

    arms = ",".join(f"a{i}=.{i + 10}" for i in range(30))
    command = ["-m", "bayesfair", "simulate", "sd_ts", "--arms", arms]
    status, _, errors = interrupted(
        [*command, "--rounds", "30000000", "--out", "x.parquet"], ready, tmp_path
    )
    assert (status, list(tmp_path.iterdir())) == (130, []), errors
    assert "Traceback" not in errors
