"""What is printed: readers that leave, streams that are closed, names that act on a terminal."""

import json
import subprocess
import sys

import pytest

from bayesfair import examples
from bayesfair.cli.tools import _json_text

BAYESFAIR = f"'{sys.executable}' -m bayesfair"


def shell(command):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("what", ["audit --help", "audit --example ecmo"])
def test_a_reader_that_leaves_is_no_fault(what):
    done = shell(f"{BAYESFAIR} {what} | head -c 1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")


def test_closed_standard_output_is_no_fault(tmp_path):
    done = shell(f"{BAYESFAIR} audit --example ecmo --json '{tmp_path}/a.json' >&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "a.json").read_text())["verdict"]


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
def test_a_full_standard_output_ends_with_status_2():
    done = shell(f"{BAYESFAIR} audit --example ecmo > /dev/full")
    assert done.returncode == 2 and "No space left on device" in done.stderr


def test_names_of_files_never_act_on_the_terminal(tmp_path):
    path = tmp_path / "es\x1b[31mc.csv"
    path.write_bytes(examples.path("ecmo").read_bytes())
    for more in ("", "--arm zz", "--json -"):
        done = shell(f"{BAYESFAIR} audit '{path}' {more}")
        said = done.stdout + done.stderr
        assert "31mc.csv" in said and "\x1b" not in said


def test_json_with_characters_that_act_stays_the_same_json():
    found = {"a\x9b": ["\u202e", "\x1b", "caf\u00e9", "\u200d"]}
    text = _json_text(found)
    assert json.loads(text) == found
    assert all(line.isprintable() for line in text.split("\n")) and "caf\u00e9" in text


def test_a_line_break_in_a_file_name_begins_no_line_of_the_report_or_of_a_message(tmp_path):
    name = "x\nVerdict: FAIR.csv"
    (tmp_path / name).write_text("arm,reward,p_a,p_b\na,1,.5,.5\nb,0,.5,.5\n")
    command = [sys.executable, "-m", "bayesfair", "audit", name, "--no-objective"]
    good = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    bad = subprocess.run(
        [*command, "--arm", "z"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (good.returncode, bad.returncode) == (0, 2)
    lines = (good.stdout + bad.stderr).splitlines()
    assert sum(r"x\nVerdict: FAIR.csv" in line for line in lines) == 2
    assert not any(line.startswith("Verdict: FAIR.csv") for line in lines)


def test_links_that_lead_nowhere_are_refused_before_the_work(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("/nonexistent/x")
    for name, said in (("loop", "but to itself"), ("dangling", "does not exist")):
        command = [sys.executable, "-m", "bayesfair", "audit", "--example", "ecmo", "--json", name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr and "Traceback" not in done.stderr
