"""A refusal ends the program as a refusal, also where a large file is refused at its first row.

Each run is a process of its own: threads that were left behind show only when an interpreter ends.
`BAYESFAIR_RUNS=50` repeats every one of them so often.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import pytest

RUNS = int(os.environ.get("BAYESFAIR_RUNS", "1"))
CATCHES = """
import sys, bayesfair as bf
try:
    bf.{read}
except bf.DataError as error:
    print(error)
"""
LEAVES = """
import sys, bayesfair as bf
parts = iter(bf.scan_history(sys.argv[1], chunk_rounds=1000).chunks())
next(parts)
"""


def _run(*command: str) -> tuple[int, str]:
    """Exit status and what was said; every thread count that the machine offers is allowed."""
    clean = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=clean, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of 30 MB whose first row lacks a field, one that lacks none, one endless field."""
    folder = tmp_path_factory.mktemp("large")
    rows = "a,1,0.5\nb,0,0.5\n" * 1_900_000
    (folder / "log.csv").write_text("arm,reward,propensity\na,1\n" + rows)
    (folder / "good.csv").write_text("arm,reward,propensity\n" + rows)
    (folder / "duels.csv").write_text("left,right,winner\na,b\n" + "a,b,left\n" * 3_300_000)
    with gzip.open(folder / "field.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"arm,reward\na,")
        for _ in range(60):
            file.write(b"1" * (1 << 20))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["audit", "log.csv"],
        ["audit", "log.csv", "--scan"],
        ["audit", "field.csv.gz"],
        ["fit", "duels.csv"],
    ],
    ids=" ".join,
)
def test_the_command_ends_with_status_2(folder, command):
    program = [sys.executable, "-c", "from bayesfair.__main__ import run; run()"]
    for _ in range(RUNS):
        status, said = _run(*program, command[0], str(folder / command[1]), *command[2:])
        assert status == 2, said
        assert "DataError" in said and (f"of {command[1]}" in said or "longer than" in said)
        assert "Fatal" not in said


@pytest.mark.parametrize(
    "script",
    [
        CATCHES.format(read="read_history(sys.argv[1] + '/log.csv')"),
        CATCHES.format(read="read_comparisons(sys.argv[1] + '/duels.csv')"),
        LEAVES.replace("sys.argv[1]", "sys.argv[1] + '/good.csv'"),
    ],
    ids=["history", "comparisons", "a scan that nobody ends"],
)
def test_a_script_that_goes_on_ends_well(folder, script):
    for _ in range(RUNS):
        status, said = _run(sys.executable, "-c", script, str(folder))
        assert status == 0 and "Fatal" not in said, said
        assert "row 2" in said or "good.csv" in script
