"""The command line as a user runs it: output, files, exit status."""

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from command_line import run

import bayesfair as bf
from bayesfair import examples
from bayesfair.audit.log import limits


def test_example_prints_the_report(capsys):
    status, out, err = run(capsys, "audit", "--example", "ecmo", "--eps1", "1")
    assert status == 0
    assert not err
    assert "Verdict:" in out
    assert "0.4498 in total" in out
    assert "'ECMO' was favoured over 'conventional'" in out


def test_json_to_stdout_is_only_json_and_equals_the_library(capsys):
    status, out, _ = run(capsys, "audit", "--example", "ecmo", "--json", "-", "--seed", "3")
    assert status == 0
    assert json.loads(out) == bf.audit(bf.read_history(examples.path("ecmo")), seed=3).to_dict()


def test_prior_sensitivity_is_one_more_key(capsys, tmp_path):
    args = ("audit", "--example", "ecmo", "--eps1", 1, "--eps2", 0, "--seed", 3)
    _, out, _ = run(capsys, *args, "--prior-sensitivity", "--json", tmp_path / "a.json",
                    "--save", tmp_path / "a.nc")  # fmt: skip
    assert "The objective verdict does not hang on the prior within powers" in out
    numbers = json.loads((tmp_path / "a.json").read_text())
    audit = bf.audit(bf.read_history(examples.path("ecmo")), eps1=1, eps2=0, seed=3)
    assert numbers.pop("prior_sensitivity") == audit.prior_sensitivity().to_dict()
    assert numbers == audit.to_dict()
    assert "Sensitivity to the prior" in str(bf.load_audit(tmp_path / "a.nc"))
    for option, message in (("--scan", "--no-scan"), ("--no-objective", "leave out")):
        status, out, err = run(capsys, *args, "--prior-sensitivity", option)
        assert (status, out) == (2, "")
        assert message in err


def test_a_rating_scale_is_given_as_numbers(capsys, tmp_path):
    (tmp_path / "log.csv").write_text(
        "arm,reward,p_a,p_b\n" + "a,3,0.5,0.5\nb,4,0.5,0.5\n" * 5, encoding="utf-8"
    )
    args = ("audit", tmp_path / "log.csv", "--json", "-", "--support")
    status, out, _ = run(capsys, *args, "1,2,3,4,5")
    assert status == 0
    log = bf.read_history(tmp_path / "log.csv")
    assert json.loads(out) == bf.audit(log, support=[1, 2, 3, 4, 5], seed=0).to_dict()
    for wrong, message in (
        ("1,2", "List all values"),
        ("1,x", "numbers separated"),
        ("1,1", "dist"),
    ):
        status, out, err = run(capsys, *args, wrong)
        assert (status, out) == (2, "")
        assert message in err


def test_json_and_rounds_and_netcdf_to_files(capsys, tmp_path):
    status, out, _ = run(
        capsys, "audit", "--example", "ecmo", "--json", tmp_path / "a.json", "--rounds",
        tmp_path / "r.parquet", "--save", tmp_path / "a.nc", "--eps1", 1, "--eps2", 0,
    )  # fmt: skip
    assert status == 0
    assert "Verdict: UNFAIR" in out
    numbers = json.loads((tmp_path / "a.json").read_text())
    assert numbers["subjective"]["n_violating_rounds"] == 10
    rounds = pq.read_table(tmp_path / "r.parquet").to_pydict()
    assert rounds["round"] == list(range(12))
    assert rounds["row"] == list(range(2, 14))
    assert max(rounds["smallest_eps2"]) == pytest.approx(0.1416084, abs=5e-8)
    assert rounds["p_best_ECMO"][0] == 0.5
    assert bf.load_audit(tmp_path / "a.nc").to_dict() == numbers


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--eps1", "1", "--eps2", "0"], 0),
        (["--eps1", "1", "--eps2", "0", "--fail-on", "unfair"], 1),
        (["--fail-on", "unfair"], 0),  # undetermined
        (["--fail-on", "undetermined"], 1),
        (["--max-regret-per-round", "0.03"], 1),
        (["--max-regret-per-round", "0.04"], 0),
        (["--fail-on", "fair"], 2),
        (["--eps1", "-1"], 2),
        (["--divergence", "tv"], 2),
        (["--prior", "a,b"], 2),
        (["--nonsense"], 2),
    ],
)
def test_exit_status(capsys, options, status):
    found, _, err = run(capsys, "audit", "--example", "ecmo", *options)
    assert found == status
    assert bool(err) == (status != 0)
    assert "Traceback" not in err


def test_nothing_given_says_what_to_give(capsys):
    status, _, err = run(capsys, "audit")
    assert status == 2
    assert "--example ecmo" in err


def test_help_shows_an_example_that_works(capsys):
    status, out, _ = run(capsys, "audit", "--help")
    assert status == 0
    assert "bayesfair audit --example ecmo" in out
    assert run(capsys, "audit", "--example", "ecmo")[0] == 0


def test_groups(capsys, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "slot,arm,reward,propensity\n"
        + "".join(f"{i % 2},{'ab'[i % 3 == 0]},{i % 2},0.5\n" for i in range(60))
    )
    status, out, _ = run(capsys, "audit", path, "--by", "slot", "--json", "-")
    assert status == 0
    numbers = json.loads(out)
    assert list(numbers["groups"]) == ["0", "1"]
    status, out, _ = run(capsys, "audit", path, "--by", "slot")
    assert "Fairness audit of 2 logs" in out
    assert run(capsys, "audit", path, "--by", "slot", "--rounds", tmp_path / "x.parquet")[0] == 2


def test_in_parts_and_whole_are_the_same(capsys, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(3000).round(4)
    arm = np.where(rng.random(3000) < p, "a", "b")
    rows = [f"{a},{r},{q:.4f},{1 - q:.4f}" for a, r, q in zip(arm, rng.integers(0, 2, 3000), p)]  # noqa: B905
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,p_a,p_b\n" + "\n".join(rows) + "\n")
    whole = json.loads(run(capsys, "audit", path, "--json", "-", "--no-scan")[1])
    parts = json.loads(run(capsys, "audit", path, "--json", "-", "--scan")[1])
    assert parts["subjective"] == whole["subjective"]
    assert parts["objective"] == whole["objective"]


def test_installed_command_ends_with_status_2_and_no_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "bayesfair", "audit", str(tmp_path / "absent.csv")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "absent.csv" in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    "options",
    [
        ["--json", "nodir/x.json"], ["--json", "."], ["--json", ""],
        ["--rounds", "nodir/x.parquet"], ["--save", "nodir/x.nc"], ["--draws", "0"],
        ["--arms", "a,,b"],
        ["--max-regret-per-round", "nan"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_cannot_work_is_refused_at_once(capsys, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, "audit", "--example", "ecmo", *options)
    assert status == 2
    assert not out
    assert err
    assert "Traceback" not in err


def test_labels_with_commas(capsys, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('arm,reward\n"a, b",1\nc,0\n')
    status, out, _ = run(capsys, "audit", path, "--arms", 'c,"a, b"', "--json", "-")
    assert status == 0
    assert json.loads(out)["log"]["arms"] == ["c", "a, b"]


def test_rounding_dust_is_no_finding(capsys, tmp_path):
    path = tmp_path / "run.parquet"
    run(capsys, "simulate", "sd_ts", "--arms", "a=.6,b=.5", "--rounds", 500, "--out", path)
    _, out, _ = run(capsys, "audit", path, "--eps1", 1, "--eps2", 0)
    assert "needs eps2 = 0.0000 at eps1 = 1" in out
    assert "worst round" not in out


LOSSES = "arm,reward,slot,p_a,p_b\na,won,10,.5,.5\nb,lost,2,.5,.5\na,lost,2,.5,.5\n"


def test_groups_in_parts_are_the_groups_of_the_whole(capsys, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOSSES)
    args = ("audit", path, "--by", "slot", "--rewards", "won=1,lost=0", "--json", "-")
    status, whole, _ = run(capsys, *args)
    assert status == 0 and list(json.loads(whole)["groups"]) == ["2", "10"]
    assert run(capsys, *args, "--scan") == (0, whole, "")
    status, _, err = run(capsys, "audit", path, "--rewards", "won=1,lost")
    assert status == 2 and "'lost' does not" in err


def test_flags_are_the_options_of_the_reader(capsys, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "arm,reward,until,offer,p_a,p_b\na,1,0,a/b,0.5,0.504\nb,0,0,a/b,.5,.5\na,1,2,a/b,.5,.5\n"
    )
    options = {"known_until": "until", "offered_delimiter": "/", "probability_tolerance": 0.01}
    status, out, _ = run(
        capsys, "audit", path, "--known-until", "until", "--offered-delimiter", "/", "--offered",
        "offer", "--probability-tolerance", "0.01", "--json", "-",
    )  # fmt: skip
    assert status == 0
    log = bf.read_history(path, offered="offer", **options)
    assert json.loads(out) == bf.audit(log, seed=0).to_dict()
    status, _, err = run(capsys, "audit", path, "--probability-tolerance", "0.001")
    assert status == 2 and "row 2" in err and "1.004" in err


@pytest.mark.parametrize("more", [(), ("--json", "-"), ("--fail-on", "unfair")], ids=str)
def test_a_reader_that_leaves_early_changes_nothing(more):
    """`bayesfair audit ... | head`: no message, and the status is that of the audit."""
    command = [sys.executable, "-m", "bayesfair", "audit", "--example", "ecmo", "--eps1", "0"]
    started = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started.stdout.close()
    err = started.stderr.read().decode()
    started.stderr.close()
    assert started.wait(60) == (1 if more[:1] == ("--fail-on",) else 0)
    said = (
        "verdict unfair, fairness regret 0.0375 per round; under the beliefs of each round unfair, "
    )
    said += "under the true rewards unfair (--fail-on unfair)\n"
    assert err == (said if more[:1] == ("--fail-on",) else "")


def test_files_that_cannot_be_written_are_refused_before_the_log_is_read(capsys, tmp_path):
    for option, target, said in (
        ("--rounds", tmp_path / "rounds.csv", "must end in .parquet"),
        ("--rounds", tmp_path / "no" / "rounds.parquet", "Make it first"),
        ("--json", tmp_path, "must be the name of a file"),
    ):
        status, out, err = run(capsys, "audit", tmp_path / "missing.csv", option, target)
        assert (status, out) == (2, "") and said in err and str(target) in err


def test_what_is_read_is_never_written(capsys, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    text = "arm,reward\na,1\nb,0\n"
    log = folder / "log.csv"
    log.write_text(text, encoding="utf-8")
    link = tmp_path / "link.csv"
    link.symlink_to(log)
    for source, target in (
        (log, log),
        (link, log),
        (log, link),
        (folder, folder / "new.json"),
        (folder / "*.csv", log),
    ):
        for option in ("--json", "--report", "--save"):
            status, out, err = run(capsys, "audit", source, option, target)
            assert (status, out) == (2, "") and "what is read" in err and str(target) in err
    assert log.read_text(encoding="utf-8") == text
    duels = tmp_path / "duels.csv"
    duels.write_text("left,right,winner\na,b,left\nb,a,left\n", encoding="utf-8")
    for command in ("fit", "audit-comparisons"):
        status, _, err = run(capsys, command, duels, "--json", duels)
        assert status == 2 and "what is read" in err


def test_two_results_do_not_share_a_file(capsys, tmp_path):
    target = tmp_path / "result"
    status, _, err = run(
        capsys,
        "audit",
        "--example",
        "ecmo",
        "--json",
        target,
        "--report",
        tmp_path / "." / "result",
    )
    assert status == 2 and "--report and --json would write the same file" in err
    nowhere = ("--json", "/dev/null", "--report", "/dev/null")
    assert run(capsys, "audit", "--example", "ecmo", *nowhere)[0] == 0


@pytest.fixture
def split(tmp_path):
    """10000 rounds at even chances, 5300 of them a; a constant rule that is fair."""
    rng = np.random.default_rng(0)
    arm = rng.permutation(["a"] * 5300 + ["b"] * 4700)
    rows = [f"{a},{r},0.5,0.5" for a, r in zip(arm, rng.integers(0, 2, 10_000), strict=True)]
    path = tmp_path / "split.csv"
    path.write_text("arm,reward,p_a,p_b\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("level", "status"), [("unfair", 0), ("inconsistent", 1), ("undetermined", 1)]
)
def test_a_log_that_refutes_its_probabilities_does_not_pass_the_gate(capsys, split, level, status):
    found, out, err = run(capsys, "audit", split, "--fail-on", level)
    assert found == status and "Verdict: FAIR" in out
    assert "The log contradicts itself (choices)" in out
    assert "Checks of the log: 1 of " in out
    said = f"the log contradicts itself (--fail-on {level})\n"
    assert err == (said if status else "")


def test_groups_that_contradict_themselves_are_named(capsys, split):
    lines = split.read_text().splitlines()
    both = [lines[0] + ",run", *(line + ",odd" for line in lines[1:])]
    both += [f"{'ab'[(t * 7 // 3) % 2]},{t % 2},0.5,0.5,even" for t in range(40)]
    split.write_text("\n".join(both) + "\n")
    args = ("audit", split, "--by", "run", "--fail-on", "inconsistent")
    status, out, err = run(capsys, *args, "--json", split.with_name("a.json"))
    assert status == 1 and "the log contradicts itself" in err
    assert "1 of 2 logs contradicts itself ('odd')" in out
    numbers = json.loads(split.with_name("a.json").read_text())
    assert numbers["consistent"] is False
    assert [g["consistent"] for g in numbers["groups"].values()] == [True, False]


def test_unique_keys_are_asked_for_and_kept_by_resume(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    days = {"one.csv": range(20), "two.csv": [*range(20, 30), 3]}
    for name, keys in days.items():
        rows = [f"{k},{'ab'[k % 3 // 2]},{k % 2},0.5,0.5" for k in keys]
        (tmp_path / name).write_text("id,arm,reward,p_a,p_b\n" + "\n".join(rows) + "\n")
    assert run(capsys, "audit", "one.csv", "--unique", "id", "--save", "a.nc")[0] == 0
    for more in ((), ("--unique", "id"), ("--scan",)):
        _, out, _ = run(capsys, "audit", "two.csv", "--resume", "a.nc", "--json", "-", *more)
        keys = json.loads(out)["checks"]["repeated_keys"]
        assert (keys["passed"], keys["n"], keys["round"]) == (False, 1, 30)
    status, _, err = run(capsys, "audit", "two.csv", "--resume", "a.nc", "--unique", "arm")
    assert status == 2 and "--unique arm cannot go on from a.nc, which was made with id" in err


@pytest.mark.usefixtures("undrawn")
def test_of_many_groups_fifty_are_shown_and_each_kind_of_notice_once(capsys, tmp_path):
    rng = np.random.default_rng(3)
    lines = ["group,arm,reward,p_a,p_b"]
    for g in range(60):
        for p in rng.integers(2, 9, 5) / 10 + 0.001:
            arm = "a" if rng.random() < p else "b"
            lines.append(f"g{g:03},{arm},{int(rng.random() < 0.5)},{p:.3f},{1 - p:.3f}")
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    target = tmp_path / "audit.json"
    arguments = ["audit", str(path), "--by", "group", "--draws", "200"]
    status, shown, _ = run(capsys, *arguments)
    again, also, _ = run(capsys, *arguments, "--json", str(target))
    numbers = json.loads(target.read_text(encoding="utf-8"))
    assert status == again == 0 and shown == also  # a pass, and every group by itself
    assert "... 10 more, none of them worse; --json has all" in shown
    unfair = sum(g["verdict"] == "unfair" for g in numbers["groups"].values())
    assert len(numbers["groups"]) == 60 and numbers["runs"]["n_violating"] == unfair
    assert f"{unfair} of 60 logs that can be audited are unfair" in shown
    words = " ".join(shown.split())
    assert "60 of 60 groups hold fewer than 30 rounds" in words
    assert "Put groups together (--by a coarser column" in words
    for entry in numbers["notices_by_kind"]:
        with_it = [
            label for label, g in numbers["groups"].items()
            if entry["kind"] in {finding["kind"] for finding in g["findings"]}
        ]  # fmt: skip
        assert entry["n"] == len(with_it) and entry["groups"] == with_it[:5]
        assert words.count(" ".join(in_words(entry["text"]).split())) == 1
    page = tmp_path / "page.html"
    run(capsys, *arguments, "--report", str(page))
    assert "60 of 60 groups hold fewer than 30 rounds" in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_more_than_a_thousand_groups_go_to_json_and_page_as_short_records(capsys, tmp_path):
    rng = np.random.default_rng(4)
    lines = ["group,arm,reward,p_a,p_b"]
    for g in range(1001):
        p = (rng.integers(2, 9) / 10, 0.9)[g == 500]  # one of them is worst
        lines += [f"g{g:04},{'ab'[i]},{i},{p:.3f},{1 - p:.3f}" for i in (0, 1)]
    path, target, page = (tmp_path / name for name in ("log.csv", "audit.json", "page.html"))
    path.write_text("\n".join(lines), encoding="utf-8")
    arguments = ["audit", str(path), "--by", "group", "--draws", "50", "--json", str(target)]
    status, _, err = run(
        capsys, *arguments, "--report", str(page), "--max-regret-per-round", "0.001"
    )
    numbers = json.loads(target.read_text(encoding="utf-8"))
    assert numbers["detail"] == "brief" and len(numbers["groups"]) == 1001
    above = sum(g["calibration"]["subjective"]["lower"] > 0.001 for g in numbers["groups"].values())
    assert status == 1 and above > 50
    assert err.count("above 0.001 (--max-regret-per-round)") == 50
    assert f"... and of {above - 50} more groups" in err
    # rule (.9, .1) against P* (1/2, 1/2) before the first round
    assert numbers["groups"]["g0500"]["subjective"]["smallest_eps2"] >= 0.8 - 1e-9
    text = page.read_text(encoding="utf-8")
    inside = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text)[1])
    assert inside == numbers and "g0500" in text.partition('id="detail"')[2]
    assert "1000 of 1001 groups are drawn" in text
    assert "1000 of 1001 groups are shown, the worst first" in " ".join(text.split())


def in_words(text):
    """Return the begin of a notice, which names no option."""
    return text.partition("(")[0].rstrip()


def test_long_work_is_said_before_it_and_what_is_not_estimated(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "_SAID", 0.0)
    rounds = tmp_path / "rounds.parquet"
    _, _, plain = run(capsys, "audit", "--example", "ecmo", "--no-objective")
    _, _, more = run(
        capsys, "audit", "--example", "ecmo", "--no-objective", "--rounds", str(rounds)
    )
    assert re.search(r"ecmo.csv: about \S+ s of work \(2 arms\)\. Ctrl-C ends it\.", plain)
    assert "(2 arms), and --rounds beside, not estimated. Ctrl-C ends it." in more
