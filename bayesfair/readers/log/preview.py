"""What would be read as what, with the first rows, before a log is read or audited."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

from bayesfair.base.arguments import takes
from bayesfair.base.html import Shown
from bayesfair.base.labels import text_of
from bayesfair.base.shown import shortened, table, wrapped
from bayesfair.errors import BayesfairError
from bayesfair.readers.files.standard_input import kept
from bayesfair.readers.files.tables import Source
from bayesfair.readers.log.columns import Layout
from bayesfair.readers.log.history import read_history
from bayesfair.readers.log.options import DEFAULTS, KINDS, LogOptions, with_log_options
from bayesfair.readers.log.reading import guess_columns, open_log, reading_of

__all__ = ["ColumnUse", "Preview", "preview"]

_ROWS = 3
_SINGLE = (
    "arm", "reward", "propensity", "order", "by", "known_at", "known_until", "unique", "user",
    "keep_prob",
)  # fmt: skip


class ColumnUse(NamedTuple):
    """A column of a source: its name, what it is read as ("" = not read), its first values."""

    name: str
    part: str
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class Preview(Shown):
    """What the readers of logs make of a source.

    Attributes
    ----------
    source : str
        What messages call it.
    columns : tuple of ColumnUse
        Every column, in the order of the source.
    options : dict of str to str
        The options that name each part: the same log is read with them, and nothing is guessed.
    notices : tuple of str
        What was guessed or left aside.
    problem : BayesfairError or None
        Why the log would be refused; `columns` tells then what was named, or has a well-known name.
    """

    source: str
    columns: tuple[ColumnUse, ...]
    options: dict[str, str]
    notices: tuple[str, ...]
    problem: BayesfairError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the same, JSON-ready."""
        return {
            "source": self.source,
            "columns": [
                {"name": c.name, "part": c.part or None, "first": list(c.values)}
                for c in self.columns
            ],
            "options": self.options,
            "notices": list(self.notices),
            "problem": None if self.problem is None else str(self.problem),
        }

    def __str__(self) -> str:
        n = max((len(c.values) for c in self.columns), default=0)
        names = shortened([c.name for c in self.columns])
        rows = [
            [name, c.part or "-", *("" if v is None else v for v in shortened_values(c.values))]
            for name, c in zip(names, self.columns, strict=True)
        ]
        header = ["column", "read as", *(f"row {i}" for i in range(1, n + 1))]
        lines = [f"{self.source}: {len(self.columns)} columns", ""]
        lines += table(header, rows, n=len(rows), most=len(rows))
        if self.options:
            said = [f"{name}={value!r}" for name, value in self.options.items()]
            lines += ["", "The same with nothing left to be found:", *wrapped(" ".join(said), "  ")]
        if self.notices:
            lines += ["", *(line for note in self.notices for line in wrapped(note))]
        return "\n".join(lines)


def shortened_values(values: Sequence[str | None]) -> list[str]:
    """Return values cut for a table."""
    return [text if len(text) <= 24 else f"{text[:21]}..." for text in (v or "" for v in values)]


@takes(**KINDS)
@with_log_options
def preview(source: Any, **options: Unpack[LogOptions]) -> Preview:
    """Return which column would be read as what, with the first rows; nothing else is read.

    Parameters
    ----------
    source : path, data frame or records
        See `read_history`.
    **options
        Those of `read_history`.

    Returns
    -------
    Preview
        Also where the log would be refused: `problem` says why.

    Raises
    ------
    DataError, OptionError
        If the source cannot be opened at all.

    Examples
    --------
    >>> from bayesfair import examples
    >>> found = preview(examples.path("ecmo"))
    >>> [(c.name, c.part) for c in found.columns][1:4]
    [('arm', 'arm'), ('reward', 'reward'), ('p_ECMO', 'probability of ECMO')]
    >>> found.options
    {'arm': 'arm', 'reward': 'reward', 'probabilities': 'p_{arm}'}
    """
    if hasattr(source, "read") and not isinstance(source, (str, os.PathLike)):
        source = kept(type(source).__name__, source)  # looked at twice
    asked = DEFAULTS | dict(options)
    opened = open_log(source, asked)
    try:
        reading = reading_of(read_history, source, options)
    except BayesfairError as problem:
        notices = (*opened.notices, *guess_columns(opened, asked))
        there = {asked[role]: role for role in _SINGLE if asked[role] in opened.header}
        return Preview(opened.name, _uses(opened, there), {}, notices, problem)
    layout = reading.layout
    named = _named(layout)
    if isinstance(asked["offered"], str) and layout.offered:
        named["offered"] = asked["offered"]
    long = bool(asked["round"])
    if long:  # the columns of the file are one row per round and arm
        named |= {key: str(asked[key]) for key in ("round", "chosen") if asked[key]}
    return Preview(
        opened.name,
        _uses(reading.source if long else opened, _parts(layout)),
        named,
        (*reading.source.notices, *layout.notices),
    )


def _named(layout: Layout) -> dict[str, str]:
    """Return the options that say what the layout says."""
    found = {role: column for role in _SINGLE if (column := getattr(layout, role)) is not None}
    if layout.assembled:
        found |= {"propensity": layout.assembled, "constant_within": ",".join(layout.within)}
    elif layout.probabilities:
        found["probabilities"] = layout.pattern
    if layout.offered_list or layout.nested_labels:
        found["offered"] = str(layout.offered_list or layout.nested_labels)
    if layout.context:
        found["context"] = ",".join(layout.context)
    return found


def _parts(layout: Layout) -> dict[str, str]:
    """Return what each column is read as."""
    found: dict[str, list[str]] = {}
    for role in _SINGLE:
        if (column := getattr(layout, role)) is not None:
            found.setdefault(column, []).append(role)
    several = {"by": layout.by_parts, "context": layout.context, "constant_within": layout.within,
               "propensity": [layout.assembled] if layout.assembled else []}  # fmt: skip
    for role, columns in several.items():
        for column in columns:
            found.setdefault(column, []).append(role)
    if layout.nested:
        found.setdefault(layout.nested, []).append("probabilities")
    else:
        for arm, column in layout.probabilities.items():
            found.setdefault(column, []).append(f"probability of {arm}")
    for arm, column in layout.offered.items():
        found.setdefault(column, []).append(f"is {arm} offered?")
    if layout.offered_list:
        found.setdefault(layout.offered_list, []).append("arms on offer")
    if layout.nested_labels:
        found.setdefault(layout.nested_labels, []).append("whose the probabilities are")
    if layout.spare:
        found.setdefault(layout.spare, []).append("compared only")
    for column in layout.watched:
        found.setdefault(column, []).append("does time run forward?")
    return {column: ", ".join(parts) for column, parts in found.items()}


def _uses(source: Source, parts: dict[str, str]) -> tuple[ColumnUse, ...]:
    head = source.sample(list(source.header), _ROWS)
    values = {} if head is None else head.to_pydict()
    return tuple(
        ColumnUse(name, parts.get(name, ""), tuple(map(_shown, values.get(name, ()))))
        for name in source.header
    )


def _shown(value: Any) -> str | None:
    return str(value) if isinstance(value, (list, dict, tuple)) else text_of(value)
