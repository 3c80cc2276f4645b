"""What the pages of the documentation run is run: commands and Python, page by page."""

import ast
import re
import shlex
import sys
from pathlib import Path

import pytest
from command_line import run

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```\{(shell|python)\}\n(.*?)^```", flags=re.S | re.M)
PAGES = {p.name: BLOCK.findall(p.read_text(encoding="utf-8")) for p in sorted(DOCS.glob("*.md"))}
SHOWN = {"gallery.md", "audit.md", "logs.md", "pairings.md", "cases.md", "scale.md"}


@pytest.mark.parametrize("page", [p for p, blocks in PAGES.items() if blocks])
def test_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for kind, text in PAGES[page]:
        lines = [line for line in text.splitlines() if not re.match(r":[a-z]+:", line)]
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
        if kind == "python":
            exec(compile("\n".join(lines), page, "exec"), names)
        for line in lines if kind == "shell" else ():
            program, *arguments = shlex.split(line, comments=True)
            assert program == "bayesfair"
            done = run(capsys, *arguments)
            assert done.status == 0, (line, done.err)
            assert done.out
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_pages_with_examples_are_seen():
    assert set(PAGES) >= SHOWN
    assert all(PAGES[page] for page in SHOWN)


def test_the_gallery_has_every_plot():
    from bayesfair import plots

    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    drawn = {n.removesuffix("(") for n in re.findall(r"plots\.(plot_\w+)", text)}
    assert drawn >= {n for n in plots.__all__ if n.startswith("plot_")}


def test_the_mathematics_has_every_statement_once():
    from bayesfair import theory

    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    shown = " ".join(re.findall(r"^```\{theory\}(.*)$", text, flags=re.M)).split()
    assert sorted(shown) == sorted(theory.__all__)


def test_the_reference_lists_every_public_module():
    settings = ast.parse((DOCS / "conf.py").read_text(encoding="utf-8"))
    (modules,) = (ast.literal_eval(n.value) for n in settings.body
                  if isinstance(n, ast.Assign) and n.targets[0].id == "MODULES")  # fmt: skip
    pages = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert all(f"api/{name}\n" in pages for name in modules)


def test_pages_stand_in_the_contents():
    text = "".join(p.read_text(encoding="utf-8") for p in DOCS.glob("*.md"))
    listed = "\n".join(re.findall(r"^```\{toctree\}\n(.*?)^```", text, flags=re.S | re.M))
    assert {p.removesuffix(".md") for p in PAGES} - {"index"} <= set(listed.split())
