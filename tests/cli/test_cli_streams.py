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
