"""Every broken log ends with status 2 and the message of Python, in the words of the shell."""

import importlib.util
import sys
from pathlib import Path

import pytest
import typer
from command_line import run

from bayesfair.cli.program import app
from bayesfair.cli.wording import flags_of, in_shell_words

FOLDER = Path(__file__).resolve().parents[1] / "readers"
for name in ("broken_tools", "broken_files"):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
BROKEN = sys.modules["broken_files"].BROKEN
KNOWN_FLAGS = {
    "arm", "reward", "propensity", "probabilities", "order", "by", "arms", "offered", "known_at",
    "missing", "delimiter", "decimal", "family",
}  # fmt: skip
FLAGS = flags_of(typer.main.get_command(app).commands["audit"])
ON_THE_COMMAND_LINE = [b for b in BROKEN if set(b.options) <= KNOWN_FLAGS]


def test_the_table_can_be_used_from_the_command_line():
    assert len(ON_THE_COMMAND_LINE) > 40


@pytest.mark.parametrize("broken", ON_THE_COMMAND_LINE, ids=lambda b: b.name)
def test_status_2_one_message_no_traceback(broken, tmp_path, capsys):
    path = broken.write(tmp_path)
    scan = ["--scan"] if broken.reader == "scan" else []
    out = run(capsys, "audit", path, *broken.flags, *scan)
    assert out.status == 2
    assert not out.out
    assert "Traceback" not in out.err
    expected = [in_shell_words(fragment, FLAGS) for fragment in broken.fragments]
    assert [f for f in expected if f not in out.err] == [], out.err
