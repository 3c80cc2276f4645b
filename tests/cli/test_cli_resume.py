"""`bayesfair audit LOG --save FILE`, and tomorrow `bayesfair audit NEXT --resume FILE`."""

import json

import pyarrow.parquet as pq
import pytest
from command_line import run

import bayesfair as bf
from bayesfair import examples


@pytest.fixture
def days(tmp_path, monkeypatch):
    """The ECMO trial in two files, and whole."""
    monkeypatch.chdir(tmp_path)
    header, *rows = examples.path("ecmo").read_text().splitlines()
    for name, part in (("day1", rows[:5]), ("day2", rows[5:]), ("both", rows)):
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *part]) + "\n")
    return tmp_path


def test_two_days_give_the_numbers_of_the_whole(capsys, days):
    asked = ["--eps1", 1, "--eps2", 0, "--seed", 5, "--draws", 1001]
    assert run(capsys, "audit", "day1.csv", *asked, "--save", "a.nc")[0] == 0
    status, out, _ = run(
        capsys, "audit", "day2.csv", "--resume", "a.nc", "--save", "a.nc", "--json", "two.json",
        "--rounds", "day2.parquet", "--fail-on", "unfair",
    )  # fmt: skip
    assert status == 1
    assert "Fairness audit of day1.csv ... day2.csv" in out
    assert "worst round 11 (row 8 of day2.csv)" in out
    run(capsys, "audit", "both.csv", *asked, "--json", "one.json")
    two, one = (json.loads((days / f"{n}.json").read_text()) for n in ("two", "one"))
    assert two["calibration"]["subjective"]["regret_total"] == pytest.approx(0.4498356, abs=5e-8)
    for key in ("verdict", "criterion", "objective", "arms", "frontier", "notices"):
        assert two[key] == one[key]
    assert two["log"] == one["log"] | {"source": "day1.csv ... day2.csv"}
    assert two["subjective"]["n_violating_rounds"] == 10
    assert pq.read_table("day2.parquet")["round"].to_pylist() == list(range(5, 12))
    loaded = bf.load_audit("a.nc")
    assert loaded.to_dict() == two
    assert [f.name for f in days.iterdir() if "part" in f.name] == []


def test_several_logs_go_on_too(capsys, days):
    for name, offset in (("day1", 0), ("day2", 4)):
        text = "arm,reward,p_a,p_b,city\n" + "".join(
            f"{'ab'[t % 2]},{t % 3 % 2},0.5,0.5,{'north' if t % 4 < 2 else 'south'}\n"
            for t in range(offset, offset + 4)
        )
        (days / f"{name}.csv").write_text(text)
    assert run(capsys, "audit", "day1.csv", "--by", "city", "--save", "g.nc")[0] == 0
    status, out, _ = run(
        capsys, "audit", "day2.csv", "--by", "city", "--resume", "g.nc", "--json", "-"
    )
    assert status == 0
    groups = json.loads(out)["groups"]
    assert {n: g["log"]["n_rounds"] for n, g in groups.items()} == {"north": 4, "south": 4}
    status, _, err = run(capsys, "audit", "day2.csv", "--resume", "g.nc")
    assert status == 2
    assert "several logs; give --by" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--resume", "none.nc"], ["no file 'none.nc'", "--save"]),
        (["--resume", "day1.csv"], ["day1.csv is not a NetCDF-4 file"]),
        (["--resume", "a.nc", "--eps1", "2"], ["--eps1 2", "made with 1.0", "leave the option"]),
        (["--resume", "a.nc", "--divergence", "kl"], ["--divergence kl", "total_variation"]),
        (["--resume", "a.nc", "--tolerance", "0.1"], ["--tolerance 0.1", "with the default"]),
        (["--resume", "a.nc", "--family", "normal"], ["--family normal", "bernoulli"]),
        (["--resume", "a.nc", "--prior", "1,1"], ["--prior", "beliefs in the file"]),
        (["--resume", "a.nc", "--model", "bernoulli_hierarchical"], ["--model"]),
        (["--resume", "a.nc", "--by", "patient"], ["one log", "--by"]),
        (["--resume", "a.nc", "--arms", "ECMO,x"], ["conventional", "arm"]),
        (
            ["--resume", "a.nc", "--arms", "conventional,ECMO"],
            ["made with --arms ECMO,conventional; leave the option out"],
        ),
    ],
)
def test_what_cannot_go_on_ends_with_status_2(capsys, days, options, said):
    run(capsys, "audit", "day1.csv", "--eps1", 1, "--save", "a.nc")
    status, out, err = run(capsys, "audit", "day2.csv", *options)
    assert status == 2
    assert not out
    assert "Traceback" not in err
    for words in said:
        assert words in err


def test_only_save_may_take_the_place_of_the_saved_audit(capsys, days):
    run(capsys, "audit", "day1.csv", "--save", "a.pq")
    before = (days / "a.pq").read_bytes()
    (days / "hard.pq").hardlink_to(days / "a.pq")
    for option in ("--json", "--report", "--rounds"):
        for name in ("a.pq", "hard.pq"):
            status, _, err = run(capsys, "audit", "day2.csv", "--resume", "a.pq", option, name)
            assert status == 2 and "what is read" in err
    assert (days / "a.pq").read_bytes() == before
    assert run(capsys, "audit", "day2.csv", "--resume", "a.pq", "--save", "a.pq")[0] == 0


def test_the_arms_of_the_file_hold_for_the_next_log(capsys, days):
    """A next log without logged rules that shows one arm only still has both."""
    (days / "one.csv").write_text("arm,reward\na,1\nb,0\n")
    (days / "two.csv").write_text("arm,reward\nb,1\n")
    run(capsys, "audit", "one.csv", "--save", "n.nc")
    status, out, _ = run(capsys, "audit", "two.csv", "--resume", "n.nc", "--json", "-")
    assert status == 0
    assert [(a["arm"], a["n"]) for a in json.loads(out)["arms"]] == [("a", 1), ("b", 2)]
