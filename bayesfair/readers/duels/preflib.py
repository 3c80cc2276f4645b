"""PrefLib ballots: .soc, .soi, .toc, .toi, in the layout of today and the one before 2022."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesfair.base import numerals
from bayesfair.base.checks import check_choice
from bayesfair.base.labels import clean_label
from bayesfair.base.notices import Notice
from bayesfair.comparisons import Comparisons, Origin
from bayesfair.errors import DataError

__all__ = ["SUFFIXES", "read_preflib", "refuse_other_data"]

SUFFIXES = (".soc", ".soi", ".toc", ".toi")

_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:\s*(.*)", re.IGNORECASE)
_COUNT = re.compile(r"#\s*NUMBER (ALTERNATIVES|VOTERS|UNIQUE ORDERS)\s*:(.*)", re.IGNORECASE)
_MODIFIED = re.compile(r"#\s*MODIFICATION TYPE\s*:\s*(\w+)", re.IGNORECASE)
_PLACE = re.compile(r"\s*(?:\{([^{}]*)\}|([^,{}]*))\s*(,|\Z)")


class _Ballots(NamedTuple):
    names: dict[str, str]
    rows: list[tuple[int, str, str]]  # line, count, order
    announced: dict[str, int]  # how many ALTERNATIVES, VOTERS, UNIQUE ORDERS
    modified: str  # MODIFICATION TYPE in lower case; "" if the file does not say


_OTHER = {".cat": "categories", ".wmd": "weighted links", ".dat": "other data"}


def refuse_other_data(source: Any, format: str = "auto") -> None:
    """Refuse files of PrefLib that hold no rankings, which would be read as something else.

    Raises
    ------
    DataError
        For ``.cat`` and ``.wmd``, and ``.dat`` with a header of PrefLib's.
    """
    if format not in ("auto", "preflib") or not isinstance(source, (str, Path)):
        return
    path = Path(source)
    what = _OTHER.get(path.suffix.lower())
    if what is None or not path.is_file():
        return
    if path.suffix.lower() == ".dat":
        with path.open("rb") as stream:
            if not stream.read(200).lstrip().startswith(b"# FILE NAME"):
                return
    raise DataError(
        f"{path.name} holds {what}, not rankings: of PrefLib's files {', '.join(SUFFIXES)} are "
        "read. Take one of these, which PrefLib has of most data, or give a table with one row "
        "per duel.",
        kind="other_data",
        source=path.name,
    )


def read_preflib(
    path: Any,
    *,
    partial: str | None = None,
    labels: str = "names",
    last_tie: str | None = None,
    source: str | None = None,
) -> Comparisons:
    """Return the rankings of a PrefLib file.

    Parameters
    ----------
    path : path
        Header lines ``# ...`` and ``count: a,b,{c,d}``; or, before 2022, the number of
        alternatives, ``id,name`` lines, a line of totals, and ``count,a,b,{c,d}``.
    partial : {"subset", "top"}
        Required where ballots rank only some alternatives: were the others not on offer, or do
        they rank below?
    labels : {"names", "ids"}
        What items are called. Alternatives that share a name get their id added.
    last_tie : {"tie", "rest"}, optional
        What sharing the last place means, see `Comparisons.from_rankings`. Default: the file says.
        Ballots of a file marked ``MODIFICATION TYPE: imbued`` were filled up with the alternatives
        that they do not rank, all in last place: ``"rest"``. Else ``"tie"``.
    source : str, optional
        What messages call the file.

    Raises
    ------
    DataError
        Naming the line: a ballot that cannot be read, an alternative that the header does not name.
    OptionError
        If `partial` is needed.
    """
    check_choice(labels, "labels", ("names", "ids"))
    path = Path(path)
    name = source or path.name
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{str(path)!r} cannot be read: {error.strerror or error}. Give a PrefLib file.",
            kind="unreadable",
            source=name,
        ) from None
    encoding = []
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = raw.decode("latin-1")
        line = raw[: error.start].count(b"\n") + 1
        encoding = [Notice(
            f"row {line} of {name} holds byte 0x{raw[error.start]:02x}, which is no UTF-8: the "
            "file was read as latin-1 (ISO 8859-1). Names may be misread; save it as UTF-8.",
            kind="not_utf8", row=line,
        )]  # fmt: skip
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # not splitlines(): a name may hold characters that it takes for line ends (0x85 in latin-1)
    lines = text.split("\n")
    ballots = _new_layout(lines, name) if _is_new(lines) else _old_layout(lines, name)
    if not ballots.rows:
        raise DataError(f"{name} holds no ballots; expected lines such as '12: 1,3,2'.")
    known = {key: clean_label(value) or key for key, value in ballots.names.items()}
    shared = [v for v in known.values() if list(known.values()).count(v) > 1]
    called = {
        key: key if labels == "ids" else f"{value} ({key})" if value in shared else value
        for key, value in known.items()
    }
    orderings, weight, row = [], [], []
    for line, count, text in ballots.rows:
        weight.append(_count(count, line, name))
        orderings.append(_order(text, called, line, name))
        row.append(line)
    imbued = last_tie is None and ballots.modified == "imbued"
    # a file that says how it came about has been asked
    default = "rest" if imbued else "tie" if ballots.modified else None
    made = Comparisons.from_rankings(
        orderings,
        last_tie=last_tie or default,
        items=list(called.values()),
        partial=partial,
        weight=weight,
        source=Origin(name, np.array(row)),
    )
    total = sum(weight)
    notices = [*encoding, *made.notices]
    if imbued:
        notices.append(
            Notice(
                f"{name} is marked imbued: its ballots were filled up with the alternatives that "
                'they do not rank. last_tie="tie" would count these as equal.',
                kind="imbued",
            )
        )
    for what, found, verb in (
        ("VOTERS", total, "the ballots sum to"),
        ("ALTERNATIVES", len(known), "the file names"),
        ("UNIQUE ORDERS", len(ballots.rows), "the file holds"),
    ):
        said = ballots.announced.get(what, found)
        if said != found:
            notices.append(Notice(
                f"the header announces {said} {what.lower()}, {verb} {found:.12g}; what is in the "
                "file is used.",
                kind="header", value=said, n=found,
            ))  # fmt: skip
    if shared and labels == "names":
        text = "alternatives with the same name were told apart by their ids."
        notices.append(Notice(text, kind="shared_names", n=len(shared)))
    return replace(made, notices=tuple(notices))


def _is_new(lines: list[str]) -> bool:
    first = next((line for line in lines if line.strip()), "")
    return first.lstrip().startswith("#") or re.match(r"\s*[\d.]+\s*:", first) is not None


def _new_layout(lines: list[str], name: str) -> _Ballots:
    names: dict[str, str] = {}
    announced: dict[str, int] = {}
    rows, modified = [], ""
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text.startswith("#"):
            if found := _NAME.match(text):
                _name(names, found.group(1), found.group(2), number, name)
            elif found := _COUNT.match(text):
                what = found.group(1).upper()
                announced[what] = _announced(found.group(2), what, number, name)
            elif found := _MODIFIED.match(text):
                modified = found.group(1).lower()
        elif text:
            count, colon, order = text.partition(":")  # the first colon: names may hold others
            if not colon:
                raise DataError(
                    f"row {number} of {name} reads {text[:80]!r}; expected a count, a colon and an "
                    "order, such as '12: 1,3,2'."
                )
            rows.append((number, count, order))
    if not names:  # a bare file: items are called by their ids
        ids = {i for _, _, order in rows for i in re.findall(r"[^\s,{}]+", order)}
        names = {i: i for i in sorted(ids, key=lambda i: (len(i), i))}
    return _Ballots(names, rows, announced, modified)


def _name(names: dict[str, str], key: str, label: str, number: int, name: str) -> None:
    """Add the name of an alternative; one id names one alternative."""
    if key in names:
        raise DataError(
            f"row {number} of {name} names alternative {key} again: {label!r} after "
            f"{names[key]!r}. Correct the id."
        )
    names[key] = label


def _old_layout(lines: list[str], name: str) -> _Ballots:
    numbered = [(n, line.strip()) for n, line in enumerate(lines, start=1) if line.strip()]
    try:
        k = _whole(numbered[0][1]) or 0
        if k < 1:
            raise ValueError
    except (ValueError, IndexError):
        first = numbered[0][1][:80] if numbered else ""
        raise DataError(
            f"row 1 of {name} reads {first!r}; expected a PrefLib file: '# ...' header lines, or "
            "the number of alternatives."
        ) from None
    if len(numbered) < k + 2:
        raise DataError(
            f"{name} announces {k} alternatives but has {len(numbered)} lines; it is truncated."
        )
    names: dict[str, str] = {}
    for number, text in numbered[1 : k + 1]:
        key, comma, label = text.partition(",")  # the first comma: names may hold others
        if not comma:
            raise DataError(f"row {number} of {name} reads {text[:80]!r}; expected 'id,name'.")
        _name(names, key.strip(), label.strip().strip('"'), number, name)
    line, totals = numbered[k + 1]  # voters, their sum, unique orders
    voters, _, rest = totals.partition(",")
    announced = {"VOTERS": _announced(voters, "VOTERS", line, name)}
    if rest:
        unique = rest.rpartition(",")[2]
        announced["UNIQUE ORDERS"] = _announced(unique, "UNIQUE ORDERS", line, name)
    rows = []
    for number, text in numbered[k + 2 :]:
        count, _, order = text.partition(",")
        rows.append((number, count, order))
    return _Ballots(names, rows, announced, "")


def _announced(text: str, what: str, line: int, name: str) -> int:
    """Return how many a header announces."""
    value = _whole(text)
    if value is None:
        written = text.strip()[:40]
        raise DataError(
            f"row {line} of {name} announces {written!r} {what.lower()}, which is no whole number "
            "of at most 15 digits. Correct the header, or leave the line out.",
            kind="bad_number",
            row=line,
            value=written,
            source=name,
        )
    return value


def _whole(text: str) -> int | None:
    """Return a whole number of at most 15 digits, None if it is none."""
    return int(text) if re.fullmatch(r"\s*[0-9]{1,15}\s*", text) else None


def _count(text: str, line: int, name: str) -> float:
    written = text.strip()
    value = numerals.number(written)
    if value is None or not math.isfinite(value):
        raise DataError(
            f"row {line} of {name}: {written[:40]!r} is no number of voters"
            f"{numerals.why_no_number(written)}.",
            kind="bad_number",
            row=line,
            value=written[:40],
            source=name,
        )
    return value


def _order(text: str, called: dict[str, str], line: int, name: str) -> list[list[str]]:
    if re.sub(r"\{[^{}]*\}", "", text).count("{") or text.count("{") != text.count("}"):
        raise DataError(f"row {line} of {name}: the braces of {text.strip()[:80]!r} do not match.")
    places, at = [], 0
    while at >= 0:
        found = _PLACE.match(text, at)
        tied, single, comma = found.groups() if found else (None, None, "")
        written = (tied or "").split(",") if single is None else [single]
        ids = [i.strip() for i in written]
        if not found or not all(ids):
            raise DataError(
                f"row {line} of {name} reads {text.strip()[:80]!r}, which is no order: a place is "
                "one alternative, or several in braces, and commas stand between the places, as in "
                "1,{2,3},4. Correct the ballot.",
                kind="bad_ballot",
                row=line,
                value=text.strip()[:80],
                source=name,
            )
        unnamed = [i for i in ids if i not in called]
        if unnamed:
            raise DataError(
                f"row {line} of {name} ranks alternative {unnamed[0]!r}, which the header does not "
                f"name. Add '# ALTERNATIVE NAME {unnamed[0]}: ...' or correct the ballot.",
                kind="unknown_item",
                row=line,
                value=unnamed[0],
                source=name,
            )
        places.append([called[i] for i in ids])
        at = found.end() if comma else -1
    return places
