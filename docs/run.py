"""Two directives that run what they show, ``{shell}`` and ``{python}``, with the output below it.

The same blocks are run by ``tests/docs``. A shell block holds commands of bayesfair alone; they
run in this process. The blocks of one page share a folder that is empty at first, and names.
"""

import contextlib
import io
import os
import shlex
import sys
import tempfile
import warnings
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive, directives

_FOLDERS = {}
_NAMES = {}


@contextlib.contextmanager
def _in_folder(page):
    """Work in the folder of a page and gather what is printed."""
    folder = _FOLDERS.setdefault(page, tempfile.TemporaryDirectory())
    out, before, argv = io.StringIO(), Path.cwd(), sys.argv
    os.chdir(folder.name)
    os.environ["COLUMNS"] = "100"
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            yield out
    finally:
        os.chdir(before)
        sys.argv = argv


def command(line):
    """Run one command of bayesfair; raise unless it ends with status 0."""
    from bayesfair.cli.program import main

    sys.argv = shlex.split(line, comments=True)
    if sys.argv[0] != "bayesfair":
        raise ValueError(f"no command of bayesfair: {line}")
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise ValueError(f"{line} ended with status {stop.code}") from stop


class Shell(Directive):
    """Commands, one a line, and what they print."""

    has_content = True
    option_spec = {  # noqa: RUF012
        "quiet": directives.flag,
        "lines": directives.nonnegative_int,
        "from": directives.unchanged,
    }

    def run(self):
        """Run the commands."""
        shown = []
        with _in_folder(self.state.document.current_source) as out:
            for line in self.content:
                if line.strip():
                    out.seek(0)
                    out.truncate()
                    command(line)
                    shown.append((line, out.getvalue().strip("\n")))
        found = []
        for line, text in shown:
            found.append(_block(line, "sh"))
            if text and "quiet" not in self.options:
                start = text.index(self.options.get("from", ""))
                rows = text[start:].splitlines()
                kept = rows[: self.options.get("lines") or len(rows)]
                found.append(_block("\n".join(kept + ["..."] * (len(kept) < len(rows))), "text"))
        return found


class Python(Directive):
    """Lines of Python, what they print, and with ``:figure:`` what they draw."""

    has_content = True
    option_spec = {"figure": directives.unchanged, "hide": directives.flag}  # noqa: RUF012

    def run(self):
        """Run the lines."""
        environment = self.state.document.settings.env
        code = "\n".join(self.content)
        shown = [] if "hide" in self.options else [_block(code, "python")]
        page = self.state.document.current_source
        with _in_folder(page) as out, warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(code, page, "exec"), _NAMES.setdefault(page, {"__name__": "page"}))
        if text := out.getvalue().strip("\n"):
            shown.append(_block(text, "text"))
        if "figure" in self.options:
            shown.append(self._figure(environment))
        return shown

    def _figure(self, environment):
        from matplotlib import pyplot

        name = directives.uri(f"{environment.docname}-{environment.new_serialno('figure')}.png")
        folder = Path(environment.app.outdir) / "_images"
        folder.mkdir(parents=True, exist_ok=True)
        pyplot.gcf().savefig(folder / name, dpi=130)
        pyplot.close("all")
        depth = environment.docname.count("/")
        return nodes.raw(
            "",
            f'<img src="{"../" * depth}_images/{name}" alt="{self.options["figure"]}" '
            'style="max-width: 100%; background: white">',
            format="html",
        )


def _block(text, language):
    block = nodes.literal_block(text, text)
    block["language"] = language
    return block


def setup(app):
    """Sphinx calls this."""
    app.add_directive("shell", Shell)
    app.add_directive("python", Python)
    return {"parallel_read_safe": False}
