"""`--judge`, `--from-round` and the default `--eps2` on the command line, and the gate on them."""

import json

import numpy as np
import pytest
from command_line import run

import bayesfair as bf


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Arms that pay alike: .9 to .1 in the first 20 rounds, even from then on."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    lines = ["arm,reward,p_a,p_b"]
    for t in range(200):
        p = 0.9 if t < 20 else 0.5
        arm = "a" if rng.random() < p else "b"
        lines.append(f"{arm},{t % 2},{p},{1 - p:g}")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "day1.csv").write_text("\n".join(lines[:101]) + "\n")
    (tmp_path / "day2.csv").write_text("\n".join([lines[0], *lines[101:]]) + "\n")
    return tmp_path / "log.csv"


GATE = ["audit", "log.csv", "--eps1", 0, "--fail-on", "unfair"]


def test_the_gate_follows_the_judge_and_the_first_judged_round(capsys, log):
    status, out, err = run(capsys, *GATE)
    assert status == 1
    assert "unfair in 20 of the first 20 rounds, not once since" in out
    assert err.startswith("verdict unfair, fairness regret 0.")
    assert "under the beliefs of each round unfair, under the true rewards unfair" in err
    status, out, err = run(capsys, *GATE, "--from-round", 20)
    assert (status, err) == (0, "")
    assert "200 rounds (180 of them judged)" in out
    assert "Judged from round 20 on, with beliefs from all." in out
    # a known difference of the arms excuses the first rounds, not the beliefs of the first round
    loose = ["audit", "log.csv", "--eps1", 1, "--eps2", 0.79, "--fail-on", "unfair"]
    assert run(capsys, *loose)[0] == 1
    assert run(capsys, *loose, "--judge", "subjective")[0] == 1
    assert run(capsys, *loose, "--judge", "objective")[0] == 0
    for wrong in (["--judge", "me"], ["--from-round", -1], ["--judge", "objective",
                                                            "--no-objective"]):  # fmt: skip
        assert run(capsys, *GATE, *wrong)[0] == 2


def test_options_reach_the_json_and_go_on(capsys, log):
    asked = ["--from-round", 30, "--judge", "subjective", "--seed", 2]
    run(capsys, "audit", "log.csv", *asked, "--json", "one.json", "--scan")
    run(capsys, "audit", "day1.csv", *asked, "--save", "a.nc")
    run(capsys, "audit", "day2.csv", "--resume", "a.nc", "--json", "two.json")
    one, two = (json.loads(log.with_name(f"{n}.json").read_text()) for n in ("one", "two"))
    assert one["criterion"]["from_round"] == 30 and one["criterion"]["judge"] == "subjective"
    assert one["criterion"]["eps2"] == 0.05 and one["criterion"]["eps2_reason"] != "asked for"
    assert two["subjective"]["worst"].pop("source") == "day1.csv"  # rows are those of two files
    for key in ("verdict", "criterion", "subjective", "objective", "arms"):
        assert two[key] == one[key]
    library = bf.audit(
        bf.read_history(log), from_round=30, judge="subjective", seed=2
    ).to_dict()  # fmt: skip
    assert library["subjective"] == one["subjective"]
    for other in (["--from-round", 31], ["--judge", "both"], ["--eps2", 0.2]):
        status, _, err = run(capsys, "audit", "day2.csv", "--resume", "a.nc", *other)
        assert status == 2 and other[0] in err
