"""Sphinx settings. The pages of the API are written from the public names at each build."""

import base64
import html
import importlib
import inspect
import json
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("MPLBACKEND", "Agg")

import bayesfair

project = "bayesfair"
author = "The bayesfair developers"
copyright = author
release = version = bayesfair.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "run",
]
exclude_patterns = ["_build", "templates", "static"]
templates_path = ["templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath", "substitution"]
myst_heading_anchors = 3
myst_substitutions = {"version": release}
suppress_warnings = ["myst.header"]
# single quotes also name parameters, and here and there an inner function that has no page
nitpick_ignore_regex = [
    ("py:obj", r"(?!bayesfair\.).*"),
    ("py:obj", r"bayesfair\.(kernels|inference|audit)\..*"),
    ("py:obj", r"bayesfair\.families\.(priors|learned)\b.*"),
]
default_role = "autolink"  # single quotes of numpydoc: a link where the name is public
autodoc_typehints = "none"
autodoc_default_options = {"members": False}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_theme = "pydata_sphinx_theme"
html_title = "bayesfair"
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": [],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": [], "gallery": [], "**": ["sidebar-nav-bs"]}
html_copy_source = False

MODULES = (
    "plots", "ranking", "value", "simulation", "theory",
    "families", "models", "policies", "rewards", "examples", "errors",
)  # fmt: skip


def _public(module):
    """Return the public names of a module, sorted as they are listed."""
    named = list(getattr(module, "__all__", ()))
    parts = sorted(p.stem for p in Path(getattr(module, "__path__", [""])[0]).glob("[a-z]*.py"))
    if module.__name__ == "bayesfair.models":
        return named + parts
    if named:
        return named
    found = [(p, importlib.import_module(f"{module.__name__}.{p}")) for p in parts]
    return [f"{p}.{n}" for p, part in found for n in getattr(part, "__all__", ())]


def _write_reference():
    """Write one page that lists the top-level names, and one for each public module."""
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    own = [n for n in bayesfair.__all__ if n not in MODULES]
    pages = {"bayesfair": ("bayesfair", "bayesfair", own)}
    for name in MODULES:
        module = importlib.import_module(f"bayesfair.{name}")
        pages[name] = (f"bayesfair.{name}", f"bayesfair.{name}", _public(module))
    for name, (title, place, names) in pages.items():
        lines = [title, "=" * len(title), "", f".. automodule:: {place}", ""]
        lines += [f".. currentmodule:: {place}", "", ".. autosummary::", "   :toctree: each", ""]
        lines += [f"   {n}" for n in names]
        written = "\n".join(lines) + "\n"
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != written:
            path.write_text(written, encoding="utf-8")


_write_reference()


def _output(found, picture):
    """Return one output of a cell as MyST; a picture is written to its place."""
    data = found.get("data", {})
    if "image/png" in data:
        picture.write_bytes(base64.b64decode("".join(data["image/png"])))
        return f"![What the cell above draws]({picture.name})"
    if "text/html" in data:
        table = "".join(data["text/html"]).replace("<th></th>", "<td></td>")  # a corner, no heading
        return f"````{{raw}} html\n<div class='output' tabindex='0'>{table}</div>\n````"
    text = "".join(found.get("text", data.get("text/plain", ""))).rstrip()
    return f"````text\n{text}\n````" if text else ""


def _write_notebooks():
    """Write each notebook as a page, with the outputs that it was committed with."""
    folder = HERE / "notebooks"
    folder.mkdir(exist_ok=True)
    for path in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
        parts = []
        for i, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            text = "".join(cell["source"])
            language = "text" if re.search(r"^!", text, flags=re.M) else "python"  # a shell's line
            prose = cell["cell_type"] == "markdown"
            parts.append(text if prose else f"````{language}\n{text}\n````")
            for j, found in enumerate(cell.get("outputs", ())):
                parts.append(_output(found, folder / f"{path.stem}-{i}-{j}.png"))
        (folder / f"{path.stem}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


_write_notebooks()


LINKS = {
    "SECURITY.md": "security.md",
    "docs/promises.md": "promises.md",
    "CHANGELOG.md": "changes.md",
}
FENCE = re.compile(r"```\{(section|file|theory|answer)\} ?(.*)\n```")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./)?[\w/.-]+\.\w+|[\w/]+/Containerfile)\)")


def _statements(names):
    """Return what `bayesfair.theory` says of these names, or of all of it where none is given."""
    theory = importlib.import_module("bayesfair.theory")
    lines = ["```{eval-rst}"]
    if not names:
        lines += [inspect.getdoc(theory).split("\n", 1)[1].strip(), ""]
    for name in names:
        text = inspect.getdoc(getattr(theory, name)) or ""
        parts = re.split(r"\n(\w[\w ]*)\n-{3,}\n", "\n" + text)
        notes = dict(zip(parts[1::2], parts[2::2], strict=True)).get("Notes", "")
        said = f"{parts[0].strip()}\n\n{notes.strip()}"
        lines += [f":py:obj:`~bayesfair.theory.{name}`", ""]
        lines += [f"   {line}".rstrip() for line in said.strip().splitlines()] + [""]
    return "\n".join([*lines, "```"])


def _text_of(found):
    """Return the text that a fence names: a file, a section of README, theory, or an answer."""
    kind, name = found.groups()
    if kind == "theory":
        return _statements(name.split())
    text = (HERE.parent / (name if kind != "section" else "README.md")).read_text(encoding="utf-8")
    if kind == "file":
        return text
    if kind == "answer":  # of a notebook: its last cell
        return "".join(json.loads(text)["cells"][-1]["source"]).split("## Answer\n", 1)[1]
    start = text.index(f"\n## {name}\n") + len(f"\n## {name}\n")
    end = text.find("\n## ", start)
    return text[start : end if end > 0 else None]


def _linked(found):
    """Return a link of the repository as one between pages; other files are named, not linked."""
    name, place = found.groups()
    place = re.sub(r"^(notebooks/\w+)\.ipynb$", r"\1.md", place)
    page = LINKS.get(place.removeprefix("../"), place if (HERE / place).exists() else None)
    return f"[{name}]({page})" if page else name


def _complete(app, docname, source):
    """Put the texts of the repository into their pages, each said in one place only."""
    source[0] = LINK.sub(_linked, FENCE.sub(_text_of, source[0]))


def _mathml(writer, node):
    """Write a formula as MathML, which browsers draw without a script or the network."""
    from docutils import nodes
    from docutils.utils.math import MathError, latex2mathml
    from sphinx.util import logging

    block = isinstance(node, nodes.math_block)
    written = re.sub(r"\\[bB]igg?[lr]?(?![a-z])", "", node.astext())
    try:
        formula = latex2mathml.tex2mathml(written, as_block=block)
    except MathError as error:
        logging.getLogger(__name__).warning("%s: %s", error, written, location=node)
        formula = f"<code>{html.escape(written)}</code>"
    writer.body.append(f'<p class="formula" tabindex="0">{formula}</p>' if block else formula)
    raise nodes.SkipNode


SEARCH = re.compile(r'(<button[^>]*search-button-field[^>]*? aria-label="Search)"')
SECTION = re.compile(r"(<a [^>]*>)([^<]*)(</a>\s*<details[^>]*>\s*)<summary>")


def _name_controls(app, failed):
    """Name the theme's controls: the arrows of the list of pages, and search as it is written.

    References get the role that ARIA has for entries of lists; docutils writes one that it gave up.
    """
    for path in [] if failed else Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        text = SEARCH.sub(r'\1 Ctrl+K"', text)
        text = SECTION.sub(r'\1\2\3<summary aria-label="Pages under \2">', text)
        text = text.replace('role="doc-biblioentry"', 'role="listitem"')
        path.write_text(text, encoding="utf-8")


def setup(app):
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (_mathml, None), (_mathml, None))
    app.connect("source-read", _complete)
    app.connect("build-finished", _name_controls)
