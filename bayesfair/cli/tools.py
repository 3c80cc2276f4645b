"""What the commands share: files to write, values of options, output, progress."""

from __future__ import annotations

import glob
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer

from bayesfair.base.progress import following
from bayesfair.base.shown import visible
from bayesfair.base.writing import write_text
from bayesfair.cli.wording import flags_of, in_shell_words
from bayesfair.errors import OptionError

__all__ = [
    "DEBUG",
    "QUIET",
    "check_suffix",
    "check_targets",
    "complain",
    "forget_reader",
    "note",
    "reading",
    "report_to",
    "say",
    "show_progress",
    "write",
]

QUIET: ContextVar[bool] = ContextVar("print errors alone", default=False)
DEBUG: ContextVar[bool] = ContextVar("print where errors arose", default=False)

_LONG_TABLE = 200
"""Tables of more entries are written a line each."""

_LONG_BYTES = 20_000_000
"""Files above this size take long enough to say that they are being read."""


def check_targets(
    targets: Mapping[str, str | Path | None],
    *,
    read: str | Path | None,
    resumed: Path | None = None,
) -> None:
    """Refuse files that cannot or must not be written, before any long work.

    Parameters
    ----------
    targets : mapping of str to path or None
        Option -> file; None and ``-`` (standard output) need no file.
    read : path or None
        What the command reads (a file, a folder or a glob): it is never written.
    resumed : path or None
        A saved audit that is read: only ``--save`` may take its place.

    Raises
    ------
    OptionError
        If a file is a folder, lies in none, may not be written, is among what is read, or is
        written twice.
    """
    seen: dict[Path, str] = {}
    for option, target in targets.items():
        if target is None or str(target) == "-":
            continue
        path = Path(target)
        _check_writable(path, str(target), option)
        place = Path(os.path.realpath(path))
        if place.is_symlink():  # followed to the end it is none, unless it has no end
            raise OptionError(
                f"{option} {str(target)!r} is a link that leads nowhere but to itself; name "
                "another file.",
                kind="target",
            )
        if not place.is_file() and place.exists():
            continue  # a device or a pipe
        saved = resumed is not None and option != "--save" and _is_same(place, resumed)
        if saved or (read is not None and _is_read(place, str(read))):
            raise OptionError(
                f"{option} {str(target)!r} is, or lies among, what is read; name another file."
            )
        if place in seen:
            raise OptionError(
                f"{option} and {seen[place]} would write the same file, {str(target)!r}."
            )
        seen[place] = option


def _check_writable(path: Path, name: str, option: str) -> None:
    if not name.strip() or path.is_dir():
        raise OptionError(f"{option} {name!r} must be the name of a file.")
    if not path.parent.is_dir():
        raise OptionError(
            f"{option} {name!r}: there is no folder {str(path.parent)!r}. Make it first."
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OptionError(f"{option} {name!r} may not be written; name another place.")
    folder = Path(os.path.realpath(path)).parent  # a link is followed, and its target replaced
    if not folder.is_dir():
        raise OptionError(
            f"{option} {name!r} is a link into {str(folder)!r}, a folder that does not exist. Make "
            "it first."
        )
    if (path.is_file() or not path.exists()) and not os.access(folder, os.W_OK):
        raise OptionError(
            f"{option} {name!r} cannot be replaced: files are written beside their place and then "
            f"put there, and the folder {str(folder)!r} may not be written. Name another place."
        )


def _is_same(place: Path, other: Path) -> bool:
    """Whether two paths name one file: by link, hard link or another way of writing."""
    return place == Path(os.path.realpath(other)) or (
        place.exists() and other.exists() and place.samefile(other)
    )


def _is_read(place: Path, read: str) -> bool:
    source = Path(read)
    if _is_same(place, source) or (
        source.is_dir() and Path(os.path.realpath(source)) in place.parents
    ):
        return True
    return any(_is_same(place, Path(found)) for found in glob.glob(read, recursive=True))


def check_suffix(target: str | Path | None, option: str, suffixes: tuple[str, ...]) -> None:
    """Refuse the name of a file that does not end in one of these."""
    if target is not None and Path(target).suffix.lower() not in suffixes:
        raise OptionError(
            f"{option} {str(target)!r}: its name must end in {' or '.join(suffixes)}."
        )


def say(text: str, *, wanted: bool = False) -> None:
    """Print to standard output; whoever reads it may have left (``| head``), or never been there.

    Nothing that a label or the name of a file holds acts on the terminal. With ``--quiet`` only
    what was `wanted` by name is printed.
    """
    if sys.stdout is None or (QUIET.get() and not wanted):
        return
    try:
        print(visible(text, "\n"))
        sys.stdout.flush()
    except BrokenPipeError:
        forget_reader()


def report_to(result: Any, target: Path | None, log: Any, **more: Any) -> None:
    """Write the page for readers where asked, with the command that made it and what it read."""
    if target is None:
        return
    from bayesfair.report import write_report

    command = shlex.join(["bayesfair", *sys.argv[1:]])
    with following(show_progress()):
        write_report(result, target, command=command, log=None if log == "-" else log, **more)


def complain(text: str) -> None:
    """Print a message to standard error, where there is one."""
    if sys.stderr is not None:
        print(visible(text, "\n"), file=sys.stderr)


def note(text: str) -> None:
    """Print what is worth knowing, and no error, to standard error; not with ``--quiet``."""
    if not QUIET.get():
        complain(text)


def forget_reader() -> None:
    """Let what is still buffered for a reader who left go nowhere: the exit status stays."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _json_text(found: dict[str, Any]) -> str:
    """Return JSON in which characters that act on a terminal stand as escapes of JSON.

    Of long tables (groups, arms) every entry is one line: that takes a tenth of the time and a
    fourth of the room.
    """
    whole = _json_object(found)
    if all(line.isprintable() for line in whole.split("\n")):
        return whole
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in whole)


def _json_object(found: dict[str, Any]) -> str:
    """Return JSON with an entry of a long table on a line, the rest with an indent of 2."""
    lines = []
    for name, value in found.items():
        if isinstance(value, dict) and len(value) > _LONG_TABLE:
            entries = [
                f"    {_json_line(key)}: {_json_line(entry)}" for key, entry in value.items()
            ]
            text = "{\n" + ",\n".join(entries) + "\n  }"
        elif isinstance(value, list) and len(value) > _LONG_TABLE:
            text = "[\n" + ",\n".join(f"    {_json_line(entry)}" for entry in value) + "\n  ]"
        else:
            text = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n  ")
        lines.append(f"  {_json_line(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}"


def _json_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def write(found: dict[str, Any], text: str, json_file: str | None, shell: typer.Context) -> None:
    """Print the report, and write JSON where asked; ``-`` replaces the report on stdout.

    The report speaks of options as the command does; JSON says what Python's ``to_dict`` says.
    """
    if json_file == "-":
        say(_json_text(found), wanted=True)
        return
    if json_file is not None:
        write_text(json_file, _json_text(found) + "\n")
    say(in_shell_words(text, flags_of(shell.command)))


@contextmanager
def reading(source: Any) -> Iterator[None]:
    """Say on a terminal that a large file is being read."""
    path = Path(str(source))
    size = path.stat().st_size if path.is_file() else 0
    if size < _LONG_BYTES or not show_progress():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"reading {path.name} ({size / 1e6:.0f} MB)"):
        yield


def show_progress() -> bool:
    """Return whether somebody looks: a line that changes is for terminals only."""
    return sys.stderr is not None and sys.stderr.isatty() and not QUIET.get()
