"""What the help promises: examples that run, bundled data, `--quiet` and `--debug`."""

import json
import re
import shlex

import command_line
import pytest
import typer

from bayesfair import examples
from bayesfair.cli.program import app

COMMANDS = typer.main.get_command(app).commands
GROUPS = {f"model {name}": command for name, command in COMMANDS["model"].commands.items()}
HELPS = {name: command.help for name, command in (COMMANDS | GROUPS).items()}
#: Commands whose examples compile for a minute: run in tests of their own.
ELSEWHERE = ("warm-up", "model", "model check")
LINES = [
    (name, "".join(found))
    for name, text in HELPS.items() if name not in ELSEWHERE
    for found in re.findall(r"Example: (`[^`]+`)((?:\s+Then: `[^`]+`)*)", text)
]  # fmt: skip


def test_every_command_shows_an_example_that_80_columns_hold():
    assert all("Example: `" in text for text in HELPS.values())
    for text in HELPS.values():
        for line in re.findall(r"^ *(\S.*: `.+`)$", text, flags=re.M):
            # the help stands two columns in; what is broken there cannot be copied
            assert len(line.replace("`", "")) <= 78, line


@pytest.mark.parametrize(("name", "lines"), LINES)
def test_examples_run_as_they_are_printed(capsys, tmp_path, monkeypatch, name, lines):
    monkeypatch.chdir(tmp_path)
    parts = [part for line in re.findall(r"`([^`]+)`", lines) for part in line.split(" && ")]
    assert any(part.startswith(f"bayesfair {name}") for part in parts)
    for part in parts:
        done = command_line.run(capsys, *shlex.split(part)[1:])
        assert done.status == 0, done.err


def test_bundled_data_are_listed_and_copied_without_loss(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert set(examples.ABOUT) == set(examples.names())
    done = command_line.run(capsys, "examples")
    assert all(f"--example {name}" in done.out for name in examples.names())
    for name in examples.names():
        assert command_line.run(capsys, "examples", name).status == 0
        assert (tmp_path / f"{name}.csv").read_bytes() == examples.path(name).read_bytes()
    (tmp_path / "ecmo.csv").write_text("mine")
    done = command_line.run(capsys, "examples", "ecmo")
    assert done.status == 2 and done.error.kind == "target"
    assert (tmp_path / "ecmo.csv").read_text() == "mine"
    assert command_line.run(capsys, "examples", "--out", "x.csv").error.column == "out"
    assert "'ecmo'" in command_line.run(capsys, "examples", "nothing").err


def test_quiet_prints_errors_alone_and_json_that_was_asked_for(capsys):
    ecmo = "audit", "--example", "ecmo"
    done = command_line.run(capsys, "--quiet", *ecmo)
    assert (done.status, done.out, done.err) == (0, "", "")
    done = command_line.run(capsys, "--quiet", *ecmo, "--json", "-")
    assert json.loads(done.out)["verdict"] == "undetermined"
    assert "gone.csv" in command_line.run(capsys, "--quiet", "audit", "gone.csv").err
    # it holds for one run only
    assert "Verdict" in command_line.run(capsys, *ecmo).out


@pytest.mark.parametrize("before", [True, False], ids=["before the command", "after it"])
@pytest.mark.parametrize("line", ["audit --example ecmo", "examples", "model new mine"])
def test_quiet_is_for_every_command(capsys, tmp_path, monkeypatch, line, before):
    monkeypatch.chdir(tmp_path)
    words = line.split()
    done = command_line.run(capsys, *(["--quiet", *words] if before else [*words, "--quiet"]))
    assert (done.status, done.out, done.err) == (0, "", "")
    assert list(tmp_path.iterdir()) == ([tmp_path / "mine.py"] if "model" in line else [])


def test_debug_says_where_an_error_arose(capsys):
    done = command_line.run(capsys, "--debug", "audit", "gone.csv")
    assert done.status == 2 and "Traceback" in done.err and "gone.csv" in done.err
    assert "Traceback" in command_line.run(capsys, "audit", "gone.csv", "--debug").err
    assert "Traceback" not in command_line.run(capsys, "audit", "gone.csv").err
