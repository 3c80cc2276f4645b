"""What would be read as what, with the first rows, before a log is read or audited."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from bayesfair.base.arguments import takes
from bayesfair.base.html import Shown
from bayesfair.base.labels import text_of
from bayesfair.base.notices import Notice
from bayesfair.base.options import given
from bayesfair.base.shown import shortened, table, wrapped
from bayesfair.errors import BayesfairError
from bayesfair.readers.files.standard_input import kept
from bayesfair.readers.files.tables import Source, no_rows
from bayesfair.readers.log.columns import Layout
from bayesfair.readers.log.first_pass import tables_of
from bayesfair.readers.log.history import read_history
from bayesfair.readers.log.options import DEFAULTS, KINDS, LogOptions, with_log_options
from bayesfair.readers.log.reading import Reading, guess_columns, open_log, reading_of
from bayesfair.readers.log.rounds import Converter
from bayesfair.readers.log.rounds_to_history import history_of

__all__ = ["ColumnUse", "Preview", "preview"]

_ROWS = 3
_TRIED = 2000
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
    options : dict of str to value
        The options that name each part, and all that were given: the same log is read with them,
        and no column is guessed. Empty where there is a `problem`.
    notices : tuple of str
        What was guessed or left aside.
    problem : BayesfairError or None
        Why the log would be refused, as far as its header and its first 2000 rows show. Where no
        part was found, `columns` tells what was named, or has a well-known name.
    """

    source: str
    columns: tuple[ColumnUse, ...]
    options: dict[str, Any]
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
            "options": _plain(self.options),
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


def _plain(value: Any) -> Any:
    """Return the value of an option as JSON has it."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def shortened_values(values: Sequence[str | None]) -> list[str]:
    """Return values cut for a table."""
    return [text if len(text) <= 24 else f"{text[:21]}..." for text in (v or "" for v in values)]


@takes(**KINDS)
@with_log_options
def preview(source: Any, **options: Unpack[LogOptions]) -> Preview:
    """Return which column would be read as what, with the first rows.

    Further rows are read only where options need them all (`round`, `constant_within`).

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
    own: dict[str, Any] = dict(options)
    asked = DEFAULTS | own
    opened = open_log(source, asked)
    try:
        reading = reading_of(read_history, source, options)
    except BayesfairError as problem:
        notices = (*opened.notices, *guess_columns(opened, asked))
        there = {asked[role]: role for role in _SINGLE if asked[role] in opened.header}
        return Preview(opened.name, _uses(opened, there), {}, notices, problem)
    long = bool(asked["round"])  # the columns of the file are one row per round and arm
    shown = reading.source if long else opened
    notices = (*reading.source.notices, *reading.layout.notices)
    uses = _uses(shown, _parts(reading.layout))
    try:
        with reading.source.locating():
            if _try_first_rounds(reading):
                read_history(source, **own)
    except BayesfairError as problem:
        return Preview(opened.name, uses, {}, notices, problem)
    named = _named(reading.layout, notices, long=long) | given(read_history, options)
    return Preview(opened.name, uses, named, notices)


def _try_first_rounds(reading: Reading) -> bool:
    """Raise what the first rows are refused for, whatever follows; return whether nothing does."""
    layout, row = reading.layout, reading.source.first_row
    tables = tables_of(reading, layout.columns, _TRIED)
    table = next(tables, None)
    if table is None:
        raise no_rows(reading.source)
    if len(table) < _TRIED and next(tables, None) is None:
        return True
    converter = Converter(reading, reading.arms)
    rounds = converter.convert(table, row)
    # order, delays, prior and keys are held against the whole log
    rounds = replace(rounds, order=None, known_at=None, known_until=None, unique=None, user=None)
    late = reading.waiting is not None
    alone = replace(
        reading, prior=None, waiting=None, missing="unobserved" if late else reading.missing
    )
    groups = np.zeros(len(rounds), np.int32) if rounds.group is None else rounds.group
    for group in np.unique(groups):
        part = rounds.take(groups == group)
        if reading.missing != "drop" or not (np.isnan(part.reward) | (part.arm < 0)).all():
            history_of(alone, part, converter.book.labels, contexts=converter.context_labels)
    return False


def _named(layout: Layout, notices: Sequence[str], *, long: bool) -> dict[str, Any]:
    """Return the options that say what was found."""
    found: dict[str, Any] = {
        role: column for role in _SINGLE if (column := getattr(layout, role)) is not None
    }
    if long:  # columns of arms are made of the rows; the one of their probabilities was told of
        said = (note for note in map(Notice.of, notices) if note.kind == "probabilities_found")
        share = next(said, None)
        return found if share is None else found | {"propensity": share.column}
    if layout.assembled:
        found |= {"propensity": layout.assembled}
    elif layout.probabilities:
        found["probabilities"] = layout.pattern
    if layout.nested_labels:
        found["offered"] = layout.nested_labels
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
