"""Models of one's own in the shell: a template that passes its check, code only when allowed."""

import command_line
import pytest

from bayesfair.cli.model import load_model


@pytest.mark.statistical
def test_the_template_passes_its_own_check_and_audits(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command_line.run(capsys, "model", "new", "mine")
    assert done.status == 0 and "mine.py" in done.out
    done = command_line.run(capsys, "model", "new", "mine")
    assert done.status == 2 and done.error.kind == "target"
    done = command_line.run(
        capsys, "model", "check", "mine.py:build", "--allow-code", "--simulations", "6"
    )
    assert done.status == 0 and "mine.build: passed" in done.out and "compiled 1 times" in done.out
    audit = "audit", "--example", "ecmo", "--model", "mine.py:build"
    done = command_line.run(capsys, *audit)
    assert done.status == 2 and done.error.kind == "code" and "--allow-code" in done.err
    assert load_model("mine.py:build", True).__name__ == "build"


@pytest.mark.parametrize(
    ("code", "model", "kind"),
    [
        ("x = 1", "m.py:build", "no_function"),
        ("1 / 0", "m.py:build", "code_failed"),
        ("", "gone.py:build", "no_file"),
        ("", "bernoulli_independent", "unused_option"),
    ],
)
def test_what_is_no_model_is_refused(capsys, tmp_path, monkeypatch, code, model, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(code)
    done = command_line.run(capsys, "audit", "--example", "ecmo", "--model", model, "--allow-code")
    assert done.status == 2 and done.error.kind == kind and "Traceback" not in done.err


def test_a_name_that_python_cannot_import_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command_line.run(capsys, "model", "new", "../x")
    assert done.status == 2 and done.error.column == "name" and not list(tmp_path.iterdir())
