"""Notebooks run from top to bottom in their short form, and keep the house rules."""

import ast
import sys
import warnings
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: A model of one's own is a function, as its prior is.
FUNCTIONS = {"build", "log_prior"}


def test_there_are_seven_and_readme_names_them():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) >= 7
    assert all(f"notebooks/{path.name}" in readme for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_rules(path):
    book = nbformat.read(path, as_version=4)
    first, last = book.cells[0].source, book.cells[-1].source
    assert len(book.cells) <= 25
    assert first.startswith("# ") and first.split("\n")[0].endswith("?"), "one question"
    assert "pip install 'bayesfair[notebooks]'" in first, "how to run it"
    assert "## Answer\n" in last, "answered in the last cell"
    code = [c for c in book.cells if c.cell_type == "code"]
    assert all(c.outputs or c.execution_count for c in code), "committed with outputs"
    assert not any(o.output_type == "error" for c in code for o in c.outputs)
    assert str(Path.home()) not in path.read_text(encoding="utf-8"), "a place on a machine"
    for cell in code:
        lines = [line for line in cell.source.splitlines() if not line.startswith("!")]
        tree = ast.parse("\n".join(lines))
        named = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        assert named <= FUNCTIONS, "no functions"


@pytest.mark.statistical
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_runs(path, tmp_path, monkeypatch):
    """In this process, as Jupyter would: what PyMC and numba compiled serves all of them."""
    from IPython.core.interactiveshell import InteractiveShell
    from matplotlib import pyplot as plt
    from traitlets.config import Config

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAYESFAIR_FAST", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("OPEN_BANDIT", raising=False)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    with warnings.catch_warnings(), plt.rc_context():
        warnings.simplefilter("ignore")
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                shell.run_cell(cell.source).raise_error()
    plt.close("all")
