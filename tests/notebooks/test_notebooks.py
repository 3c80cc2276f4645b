"""Notebooks run from top to bottom in their short form, and keep the house rules."""

import ast
from pathlib import Path

import nbformat
import pytest
ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_rules(path):
    book = nbformat.read(path, as_version=4)
    assert len(book.cells) <= 25
    assert book.cells[0].source.startswith("# ")
    code = [c for c in book.cells if c.cell_type == "code"]
    assert all(c.outputs or c.execution_count for c in code), "committed with outputs"
    for cell in code:
        tree = ast.parse(cell.source)
        assert not any(isinstance(n, ast.FunctionDef) for n in ast.walk(tree)), "no functions"


@pytest.mark.statistical
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_runs(path, tmp_path, monkeypatch):
    from nbclient import NotebookClient

    monkeypatch.setenv("BAYESFAIR_FAST", "1")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    book = nbformat.read(path, as_version=4)
    NotebookClient(
        book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
