"""Large logs are read in parts unasked: the numbers are those of the whole, or it is read whole."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from command_line import run

from bayesfair.base.options import refuse_beside
from bayesfair.cli import large_files
from bayesfair.cli.program import app
from bayesfair.cli.wording import flags_of, in_shell_words
from bayesfair.errors import OptionError
from bayesfair.readers.log import scan


@pytest.fixture
def small_is_large(monkeypatch, tmp_path):
    """Let every file count as large, and parts have 100 rows."""
    monkeypatch.setattr(large_files, "_TEXT_BYTES", 10)
    monkeypatch.setattr(large_files, "_PARQUET_VALUES", 10)
    monkeypatch.setattr(scan, "ROWS", 100)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_log(path, *, rewards=(0, 1), stamps=None, n=350):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 2, 2], size=n).round(3)
    p[:, 2] = 1 - p[:, :2].sum(axis=1)
    lines = ["arm,reward,p_a,p_b,p_c" + (",timestamp" if stamps is not None else "")]
    for t in range(n):
        arm = "abc"[rng.choice(3, p=p[t] / p[t].sum())]
        end = "" if stamps is None else f",{stamps[t]}"
        row = ",".join(f"{x:.3f}" for x in p[t])
        lines.append(f"{arm},{rng.choice(rewards)},{row}{end}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def close(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one.keys() - {"notices", "findings"}:
            close(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for x, y in zip(one, other, strict=True):
            close(x, y)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12)
    else:
        assert one == other


def numbers_of(capsys, *more, log="log.csv"):
    status, out, err = run(capsys, "audit", log, "--json", "-", *more)
    assert status == 0
    return json.loads(out), err


def test_numbers_of_parts_are_those_of_the_whole(small_is_large, capsys, monkeypatch):
    write_log(small_is_large / "log.csv")
    seen = []
    chunks = scan.HistoryScan.chunks
    monkeypatch.setattr(scan.HistoryScan, "chunks", lambda self: seen.append(1) or chunks(self))
    parts, err = numbers_of(capsys)
    assert seen and not err
    seen.clear()
    whole, _ = numbers_of(capsys, "--no-scan")
    assert not seen
    close(parts, whole)


@pytest.mark.parametrize("log", ["logs", "logs/*.csv"])
def test_files_of_a_folder_are_large_together(small_is_large, capsys, monkeypatch, log):
    write_log(small_is_large / "log.csv")
    head, *rows = (small_is_large / "log.csv").read_text(encoding="utf-8").splitlines(True)
    (small_is_large / "logs").mkdir()
    for i in range(5):
        part = head + "".join(rows[70 * i : 70 * i + 70])
        (small_is_large / f"logs/part-{i}.csv").write_text(part, encoding="utf-8")
    seen = []
    chunks = scan.HistoryScan.chunks
    monkeypatch.setattr(scan.HistoryScan, "chunks", lambda self: seen.append(1) or chunks(self))
    for size, large in ((len(part), True), (6 * len(part), False)):
        monkeypatch.setattr(large_files, "_TEXT_BYTES", size)
        found, _ = numbers_of(capsys, log=log)
        assert bool(seen) == large
        seen.clear()
        close(
            {k: v for k, v in found.items() if k != "log"},
            {k: v for k, v in numbers_of(capsys, "--no-scan")[0].items() if k != "log"},
        )


def test_what_only_the_whole_tells_is_read_whole_and_said(small_is_large, capsys):
    cases = {
        "is large, and read whole after all: row": {"stamps": [*range(200), 150, *range(201, 350)]},
        "family and levels follow from all rewards": {"rewards": (1, 2, 3)},
    }
    for message, log in cases.items():
        write_log(small_is_large / "log.csv", **log)
        found, err = numbers_of(capsys)
        assert message in err
        close(found, numbers_of(capsys, "--no-scan")[0])
    # ratings that only a later part shows
    write_log(small_is_large / "log.csv")
    text = (small_is_large / "log.csv").read_text(encoding="utf-8").splitlines()
    text[300:] = [line.replace(",1,0.", ",2,0.", 1) for line in text[300:]]
    (small_is_large / "log.csv").write_text("\n".join(text) + "\n", encoding="utf-8")
    found, err = numbers_of(capsys)
    assert "read whole after all" in err and found["criterion"]["family"] == "finite"


def test_options_that_need_the_whole_are_named(small_is_large, capsys):
    write_log(small_is_large / "log.csv")
    found, err = numbers_of(capsys, "--prior-sensitivity")
    assert "--prior-sensitivity needs all of it" in err and "prior_sensitivity" in found
    with_levels = numbers_of(capsys, "--family", "finite", "--support", "0,1")
    assert not with_levels[1]


def test_a_broken_row_is_one_message(small_is_large, capsys):
    write_log(small_is_large / "log.csv")
    with (small_is_large / "log.csv").open("a", encoding="utf-8") as file:
        file.write("a,x,0.2,0.3,0.5\n")
    status, out, err = run(capsys, "audit", "log.csv")
    assert (status, out) == (2, "")
    assert "row 352" in err and err.count("row 352") == 1 and "whole" not in err


def test_workers_that_are_to_read_one_log_whole_are_refused_by_name(tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,site\na,1,x\nb,0,y\n")
    done = run(capsys, "audit", path, "--scheduler", "local", "--no-scan")
    assert (done.status, done.error.kind, done.error.column) == (2, "unused_option", "scheduler")
    assert "--no-scan" in done.err
    groups = run(capsys, "audit", path, "--scheduler", "nowhere", "--no-scan", "--by", "site")
    assert groups.error.kind == "bad_option"  # they could be shared, if that were an address


def test_a_cluster_stands_in_a_refusal_by_its_option_alone():
    flags = flags_of(typer.main.get_command(app).commands["audit"])
    for value, said in ((object(), "--scheduler exclude"), ("tcp://a:1", "--scheduler tcp://a:1 ")):
        with pytest.raises(OptionError) as refused:
            refuse_beside("rule", "estimated", {"client": value}, "it runs in one process")
        assert (refused.value.kind, refused.value.value) == ("excluded", value)
        assert said in in_shell_words(str(refused.value), flags)
