"""Messages in the words of the shell: ``partial="subset"`` becomes ``--partial subset``.

Everything below the command line speaks of options as Python writes them. Here, and nowhere else,
they get the names that the command at hand declares. What is no option of the command stays as it
is, and so does whatever stands in quotes: names of files, columns and labels.
"""

from __future__ import annotations

import ast
import csv
import io
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Flag", "csv_line", "flags_of", "in_shell_words"]

# functions that an option of a command stands for
_FUNCTIONS = {"audit": {"read_history": "--no-scan"}}
# what the functions call an option that a command calls otherwise
_OTHER_NAMES = {
    "audit": {"client": "scheduler"},
    "audit-comparisons": {"selection_probability": "probabilities"},
}

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_VALUE = (
    rf"(?:{_QUOTED}|\{{[^{{}}]*\}}|\[[^\[\]]*\]|\([^()]*\)|\.\.\.|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
    r"|[A-Za-z_]\w*)"
)
_SHELL = re.compile(rf"(--[a-z][a-z0-9-]*)=({_VALUE})?")
_GROUP_OF = re.compile(r"(?:\w\.\w+|data frame), $")  # "log.csv, user=3" names a group
_PLAIN = re.compile(r"[\w.,:=/+@%-]+")


class Flag(NamedTuple):
    """How the shell writes an option: its name, and of a switch that of its opposite.

    Of a switch that is on by itself, only the opposite is ever worth writing.
    """

    name: str
    off: str | None = None
    is_switch: bool = False
    is_on: bool = False


def flags_of(command: Any) -> dict[str, Flag]:
    """Return the flags of a command by the Python names of its options.

    Parameters
    ----------
    command : click.Command
        As typer makes it from the declarations in `bayesfair.cli.options`.
    """
    found = {}
    for parameter in command.params:
        if parameter.opts[0].startswith("--"):
            off = parameter.secondary_opts[0] if parameter.secondary_opts else None
            found[parameter.name] = Flag(
                parameter.opts[0], off, bool(parameter.is_flag), parameter.default is True
            )
    for function, flag in _FUNCTIONS.get(str(command.name), {}).items():
        found[function] = Flag(flag)
    for other, name in _OTHER_NAMES.get(str(command.name), {}).items():
        if name in found:
            found[other] = found[name]
    return found


def in_shell_words(text: str, flags: Mapping[str, Flag]) -> str:
    """Return a message with its options as the shell writes them.

    Examples
    --------
    >>> flags = {"partial": Flag("--partial"), "arms": Flag("--arms"),
    ...          "objective": Flag("--objective", "--no-objective", True)}
    >>> in_shell_words('Say partial="subset", pass arms=..., or objective=False.', flags)
    'Say --partial subset, pass --arms, or --no-objective.'
    >>> in_shell_words("log.csv, arms=3 has one row.", flags)  # a group of a column of this name
    'log.csv, arms=3 has one row.'
    >>> on = {"ranked": Flag("--ranked", "--no-ranked", True, True)}
    >>> in_shell_words("Leave ranked= out.", on)
    'Leave --no-ranked out.'
    """
    if flags:
        names = "|".join(sorted(map(re.escape, flags), key=len, reverse=True))
        given = re.compile(rf"(?<![\w'\"./,=-])({names})(?:\[\d+\])?=({_VALUE})?")

        def in_shell(match: re.Match[str]) -> str:
            if _GROUP_OF.search(match.string[max(0, match.start() - 40) : match.start()]):
                return match.group()
            return _written(flags[match.group(1)], match.group(2))

        text = given.sub(in_shell, text)
        called = "|".join(name for of in _FUNCTIONS.values() for name in of if name in flags)
        if called:
            text = re.sub(
                rf"\b(?:bayesfair\.)?({called})\b", lambda m: flags[m.group(1)].name, text
            )
        named = re.compile(rf"`({names})`|\(option ({names})(?:\[\d+\])?\)")
        text = named.sub(lambda m: _named(m, flags), text)
    return _SHELL.sub(lambda m: _written(Flag(m.group(1)), m.group(2)), text)


def _named(match: re.Match[str], flags: Mapping[str, Flag]) -> str:
    if match.group(1):
        return flags[match.group(1)].name
    return f"(option {flags[match.group(2)].name})"


def _written(flag: Flag, value: str | None) -> str:
    """Return one option and its value."""
    if flag.is_switch:
        meant_off = value == "False" or (value is None and flag.is_on)
        return flag.off or flag.name if meant_off else flag.name
    shown = "" if value is None else _shown(value)
    return f"{flag.name} {shown}" if shown else flag.name


def _shown(value: str) -> str:
    """Return a Python value as a shell takes it; nothing for a placeholder."""
    if value[0] in "'\"":
        return _plain(value[1:-1])
    if value in ("False", "None"):
        return "''"
    if value[0] in "{[(":
        return _listed(value)
    return "" if value == "..." else value


def _listed(value: str) -> str:
    """Return a sequence, or words with their meaning, as one line of CSV; placeholders go."""
    try:
        parts = [str(part) for part in ast.literal_eval(value)]
    except (ValueError, SyntaxError, TypeError):
        parts = []
    if value[0] == "{" or not parts:
        inside = value[1:-1].replace(": ", "=").replace("'", "").replace('"', "")
        parts = [part.strip() for part in inside.split(",")]
    line = csv_line(part for part in parts if part.strip("."))
    return _plain(line) if line else ""


def csv_line(labels: Iterable[str]) -> str:
    """Return labels as `--arms` takes them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(labels)
    return line.getvalue()


def _plain(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)
