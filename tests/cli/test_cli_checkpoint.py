"""Ctrl-C in `audit --save FILE` leaves FILE.partial, and `--resume FILE.partial` ends the work."""

import json
import os
import signal
import subprocess
import sys

import pytest
from command_line import run

import bayesfair as bf
from bayesfair.base.progress import Steps
from bayesfair.readers.log import scan

SLOW = """
import sys, time
from bayesfair.__main__ import run
from bayesfair.base.progress import Steps
from bayesfair.readers.log import scan

def add(self, n=1):
    self.done += n
    print("busy", self.done, flush=True)
    time.sleep(0.5 if self.done < 300 else 60)

scan.ROWS, Steps.add = 100, add
sys.argv[0] = "bayesfair"
run()
"""
ASKED = ["--scan", "--eps1", "1", "--seed", "5", "--draws", "500"]


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scan, "ROWS", 100)
    rows = (f"{'abb'[t % 3]},{t % 5 % 2},0.{3 + t % 3},0.{7 - t % 3}\n" for t in range(1000))
    (tmp_path / "log.csv").write_text("arm,reward,p_a,p_b\n" + "".join(rows))
    return tmp_path / "log.csv"


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_ctrl_c_keeps_what_was_done_and_resume_ends_it(capsys, log):
    command = [sys.executable, "-c", SLOW, "audit", "log.csv", *ASKED, "--save", "a.nc"]
    with subprocess.Popen(
        command, cwd=log.parent, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            while process.stdout.readline() not in {"busy 300\n", ""}:
                pass
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "300 rounds have been audited and are kept in a.nc.partial" in errors
    assert "--resume a.nc.partial" in errors
    assert sorted(path.name for path in log.parent.iterdir()) == ["a.nc.partial", "log.csv"]
    assert bf.load_audit("a.nc.partial").summary.n_rounds == 300
    status, out, err = run(
        capsys, "audit", "log.csv", "--scan", "--resume", "a.nc.partial", "--save", "a.nc",
        "--json", "two.json", "--rounds", "rounds.parquet",
    )  # fmt: skip
    assert status == 0, err
    assert "Interrupted" not in out
    assert run(capsys, "audit", "log.csv", *ASKED, "--json", "one.json")[0] == 0
    one, two = (json.loads((log.parent / f"{n}.json").read_text()) for n in ("one", "two"))
    assert two == one
    assert bf.load_audit("a.nc").to_dict() == one
    import pyarrow.parquet as pq

    assert pq.read_table("rounds.parquet").num_rows == 1000
    assert not (log.parent / "a.nc.partial").exists()


def interrupt_after(rounds, monkeypatch):
    def add(self, n=1):
        self.done += n
        if self.done >= rounds:
            raise KeyboardInterrupt

    monkeypatch.setattr(Steps, "add", add)


def test_other_logs_and_options_are_refused_and_no_draws_go_on(capsys, log, monkeypatch):
    with monkeypatch.context() as patched:
        interrupt_after(500, patched)
        status, _, err = run(
            capsys, "audit", "log.csv", "--scan", "--no-objective", "--save", "b.nc"
        )
    assert status == 130
    assert "500 rounds have been audited and are kept in b.nc.partial" in err
    assert not (log.parent / "b.nc").exists()
    (log.parent / "other.csv").write_text(log.read_text().replace("a,0,0.3", "b,0,0.3"))
    for options, said in (
        (["other.csv", "--scan"], "cannot go on with 'other.csv': its first 500 rounds"),
        (["log.csv", "--no-scan"], "none of which ends after 500"),
        (["log.csv", "--scan", "--eps1", "0.5"], "--eps1 0.5 cannot go on from b.nc.partial"),
        (["log.csv", "--scan", "--by", "arm"], "holds the audit of one log"),
    ):
        status, out, err = run(capsys, "audit", *options, "--resume", "b.nc.partial")
        assert (status, out) == (2, "")
        assert said in err
    status, _, err = run(
        capsys, "audit", "log.csv", "--scan", "--resume", "b.nc.partial", "--save", "b.nc"
    )
    assert status == 0, err
    assert bf.load_audit("b.nc").objective is None
    assert not (log.parent / "b.nc.partial").exists()


def test_the_next_log_interrupted_goes_on_too(capsys, log, monkeypatch):
    (log.parent / "next.csv").write_text(log.read_text())
    assert run(capsys, "audit", "log.csv", *ASKED, "--save", "a.nc")[0] == 0
    before = (log.parent / "a.nc").read_bytes()
    command = ["audit", "next.csv", "--scan", "--resume"]
    assert run(capsys, *command, "a.nc", "--json", "one.json")[0] == 0
    with monkeypatch.context() as patched:
        interrupt_after(500, patched)
        status, _, err = run(capsys, *command, "a.nc", "--save", "a.nc")
    assert status == 130
    assert "1500 rounds have been audited and are kept in a.nc.partial" in err
    assert (log.parent / "a.nc").read_bytes() == before
    status, _, err = run(capsys, *command, "a.nc.partial", "--rounds", "r.parquet")
    assert status == 2
    assert "began with 1000 rounds of logs before this one" in err
    status, _, err = run(capsys, *command, "a.nc.partial", "--save", "a.nc", "--json", "two.json")
    assert status == 0, err
    one, two = (json.loads((log.parent / f"{n}.json").read_text()) for n in ("one", "two"))
    assert two["log"] == one["log"]
    assert two["verdict"] == one["verdict"]
    for key in ("regret_total", "lower", "upper"):
        seen, expected = (x["calibration"]["objective"][key] for x in (two, one))
        assert seen == pytest.approx(expected, rel=1e-12)
    assert not (log.parent / "a.nc.partial").exists()


def test_a_run_that_is_not_interrupted_leaves_no_checkpoint(capsys, log):
    assert run(capsys, "audit", "log.csv", *ASKED, "--save", "a.nc")[0] == 0
    (log.parent / "next.csv").write_text(log.read_text())
    command = ["audit", "next.csv", "--scan", "--resume", "a.nc", "--save", "a.nc"]
    assert run(capsys, *command)[0] == 0
    assert sorted(path.name for path in log.parent.iterdir()) == ["a.nc", "log.csv", "next.csv"]
