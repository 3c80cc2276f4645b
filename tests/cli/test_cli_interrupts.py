"""Ctrl-C ends a command at any moment, with status 130, one word, and nothing half written."""

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
from bayesfair.__main__ import run
from bayesfair.cli.interrupts import at_interrupt
from bayesfair.cli.program import app
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
    print("kept.", file=sys.stderr)

def work(out: str):
    endless(np.array([2.0, 0.0]))
    with at_interrupt(kept), replacing(out) as draft:
        draft.write_text("half")
        print("busy", flush=True)
        endless(np.zeros(2))

app.command("hang")(work)
sys.argv[1:] = ["hang", sys.argv[1]]
run()
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


def is_handled(process):
    """Wait until the thread that watches for Ctrl-C stands: imports have hardly begun then."""
    while len(os.listdir(f"/proc/{process.pid}/task")) < 2 and process.poll() is None:
        time.sleep(0.001)


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    """Write a log of half a million rounds, which takes seconds to read and to audit."""
    folder = tmp_path_factory.mktemp("interrupted")
    rows = "".join(f"{'abc'[t % 3]},{t * 7 % 5 % 2},.3,.3,.4\n" for t in range(1000))
    (folder / "log.csv").write_text("arm,reward,p_a,p_b,p_c\n" + rows * 500)
    return folder


ARMS = ",".join(f"a{i}=.{i + 10}" for i in range(30))
COMMANDS = {
    "whole": ["audit", "log.csv", "--no-scan", "--save", "a.nc", "--json", "a.json"],
    "parts": ["audit", "log.csv", "--scan", "--save", "a.nc", "--draws", "50000"],
    "simulation": ["simulate", "sd_ts", "--arms", ARMS, "--rounds", "30000000", "--out", "x.csv"],
}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says when Ctrl-C is handled")
@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("whole", 0), ("whole", 0.1), ("whole", 0.3), ("whole", 0.6), ("whole", 1), ("whole", 1.5),
        ("parts", 0.02), ("parts", 0.4), ("parts", 0.9), ("parts", 2),
        ("simulation", 0.2), ("simulation", 1.3),
    ],
)  # fmt: skip
def test_at_any_moment_there_is_one_word_and_one_status(long_log, command, after):
    def ready(process):
        is_handled(process)
        time.sleep(after)
        assert process.poll() is None

    argv = ["-m", "bayesfair", *COMMANDS[command]]
    status, _, errors = interrupted(argv, ready, long_log)
    left = {path.name for path in long_log.iterdir()} - {"log.csv"}
    for name in left:
        (long_log / name).unlink()
    assert status == 130, errors
    said = errors.splitlines()
    assert said.pop() == "interrupted."
    if said:  # too early, and in other commands, there is nothing to say
        (line,) = said
        kept = "kept in a.nc.partial" in line
        assert kept or "nothing of this audit is kept; with --scan --save FILE" in line
        assert left == ({"a.nc.partial"} if kept else set())
    else:
        assert not left


ENDING = """
import atexit, sys, time

@atexit.register
def slowly():
    print("ending", file=sys.stderr, flush=True)
    time.sleep(1)

from bayesfair.__main__ import run
sys.argv[1:] = ["audit", "--example", "ecmo", "--no-objective"]
run()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_when_all_is_done_and_said_it_changes_nothing(tmp_path):
    def ready(process):
        assert process.stderr.readline() == "ending\n"

    assert interrupted(["-c", ENDING], ready, tmp_path)[::2] == (0, "")
