"""An independent strict reading of every file format: the oracle of the fuzzer.

Nothing here comes from the package. Text is split by Python's `csv`, JSON by Python's `json`,
ballots by the few lines below, following what the documentation promises and nothing else. What is
not exactly as promised is `Refused`; the package must refuse it as well, unless `LENIENT` names the
reason why it need not.
"""

from __future__ import annotations

import bz2
import csv
import io
import json
import lzma
import math
import re
import unicodedata
import zlib
from collections import Counter
from decimal import Decimal
from typing import Any

__all__ = ["Refused", "arena", "ballots", "history", "long_rankings", "same", "table", "wins"]

Row = dict[str, Any]


class Refused(Exception):
    """The file is not exactly what was promised to be readable."""


def _need(holds: bool, why: str) -> None:
    if not holds:
        raise Refused(why)


# -- bytes and text --------------------------------------------------------------------------------


def _members(data: bytes, make: Any, faults: tuple[type[Exception], ...]) -> bytes:
    """Return the content of one or more compressed streams, each whole."""
    out = b""
    while data:
        one = make()
        try:
            out += one.decompress(data)
        except faults as error:
            raise Refused(f"damaged: {error}") from None
        _need(one.eof, "truncated")
        data = one.unused_data
        if make is _gzip or make is lzma.LZMADecompressor:
            data = data.lstrip(b"\0")  # padding, which both formats allow
    return out


def _gzip() -> Any:
    return zlib.decompressobj(wbits=31)


def content(data: bytes) -> bytes:
    """Return what is compressed, whatever the file is called."""
    if data.startswith(b"\x1f\x8b"):
        return _members(data, _gzip, (zlib.error,))
    if data.startswith(b"BZh"):
        return _members(data, bz2.BZ2Decompressor, (OSError,))
    if data.startswith(b"\xfd7zXZ\0"):
        return _members(data, lzma.LZMADecompressor, (lzma.LZMAError,))
    if data.startswith((b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")):
        import pyarrow as pa  # Python 3.12 has neither; what is inside is judged here all the same

        kind = "zstd" if data[0] == 0x28 else "lz4"
        try:
            with pa.CompressedInputStream(pa.BufferReader(data), kind) as stream:
                return bytes(stream.read())
        except (OSError, pa.ArrowInvalid) as error:
            raise Refused(f"damaged: {error}") from None
    return data


def text_of(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"no UTF-8: {error}") from None


def label(text: Any) -> str:
    """Return a label, "" where it is missing: blanks around it and the encoding of letters go."""
    return "" if text is None else unicodedata.normalize("NFC", text).strip()


_ABSENT = {"", "na", "n/a", "nan", "null", "none", "\\n"}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def number(text: Any) -> float:
    """Return a number of the digits 0 to 9, NaN where it is missing."""
    if text is None or text.strip().casefold() in _ABSENT:
        return math.nan
    text = text.strip()
    if re.fullmatch(r"[+-]?inf(inity)?", text, re.IGNORECASE):
        return float(text)
    _need(_NUMBER.fullmatch(text) is not None, f"{text[:40]!r} is no number")
    value = float(text)
    digits = re.split("[eE]", text)[0]
    _need(math.isfinite(value), f"{text[:40]!r} is too large")
    _need(value != 0 or not digits.strip("+-0."), f"{text[:40]!r} is too close to 0")
    return value


# -- delimited text --------------------------------------------------------------------------------


def table(data: bytes, needed: tuple[str, ...], delimiter: str | None = None) -> list[Row]:
    """Return the rows of delimited text by the columns of its header."""
    text = text_of(content(data))
    found = []
    for mark in [delimiter] if delimiter else [",", ";", "\t", "|"]:
        try:
            rows = _split(text, mark)
        except csv.Error as error:
            found.append(Refused(f"quotes: {error}"))
            continue
        if rows and set(needed) <= {name.strip() for name in rows[0]}:
            return _by_name(rows)
        found.append(Refused(f"no columns {needed}"))
    raise found[0]


def _split(text: str, delimiter: str) -> list[list[str]]:
    csv.field_size_limit(1 << 25)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    return [row for row in reader if row]


def _by_name(rows: list[list[str]]) -> list[Row]:
    header = [name.strip() or f"(column {i})" for i, name in enumerate(rows[0], start=1)]
    _need(len(set(header)) == len(header), "a column twice")
    _need(len(rows) > 1, "no rows")
    _need(all(len(row) == len(header) for row in rows), "rows of other lengths")
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


# -- logs ------------------------------------------------------------------------------------------

_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


def history(rows: list[Row], rule: str) -> list[tuple[str, float, Any]]:
    """Return arm, reward and what is known of the rule, round by round.

    `rule`: "full" (columns p_{arm}), "chosen" (propensity) or "none".
    """
    found = []
    columns = {label(c[2:]): c for c in rows[0] if c.startswith("p_") and label(c[2:])}
    if rule == "full":
        names = [label(c[2:]) for c in rows[0] if c.startswith("p_") and label(c[2:])]
        _need(len(set(names)) == len(names) and names != [], "two columns of one arm, or none")
        _need(all(label(r["arm"]) in columns for r in rows), "an arm without its column")
        laws = _laws([[number(r[c]) for c in columns.values()] for r in rows])
    for i, row in enumerate(rows):
        arm, paid = label(row["arm"]), row["reward"]
        _need(arm != "", "no arm")
        word = "" if paid is None else paid.strip().casefold()
        reward = _WORDS[word] if word in _WORDS else number(paid)
        _need(math.isfinite(reward), "no reward")
        known: Any = None
        if rule == "chosen":
            known = number(row["propensity"])
            _need(0 < known <= 1 + 1e-6, "no probability")
            known = min(known, 1.0)
        if rule == "full":
            known = {a: p for a, p in zip(columns, laws[i], strict=True) if not math.isnan(p)}
            _need(known.get(arm, 0.0) > 0, "the chosen arm cannot have been chosen")
        found.append((arm, reward, known))
    return found


def _laws(matrix: list[list[float]]) -> list[list[float]]:
    """Return rows of probabilities that sum to 1, within what their decimals can have lost."""
    written = [Decimal(repr(p)).normalize() for row in matrix for p in row if math.isfinite(p)]
    decimals = max((max(0, -int(d.as_tuple().exponent)) for d in written), default=0)
    digits = max((len(d.as_tuple().digits) for d in written), default=1)
    found = []
    for row in matrix:
        known = [p for p in row if not math.isnan(p)]
        _need(known != [] and all(0 <= p <= 1 + 1e-6 for p in known), "no probabilities")
        slack = len(known) / 2 * 10.0 ** -min(decimals, digits)
        slack = min(slack, 0.02) if min(decimals, digits) <= 1 else slack
        total = math.fsum(known)
        _need(abs(total - 1) <= max(slack, 1e-6) * (1 + 1e-9), f"a sum of {total}")
        found.append([p / total for p in row])
    return found


# -- comparisons -----------------------------------------------------------------------------------

_OUTCOMES = {
    "left": "left", "model_a": "left", "right": "right", "model_b": "right", "tie": "tie",
    "tie (bothbad)": "tie", "both_bad": "tie",
}  # fmt: skip


def duels(rows: list[Row], names: tuple[str, str, str], weight: str | None = None) -> Counter[Any]:
    """Return the weight of every (left, right, outcome); an item against itself says nothing."""
    found: Counter[Any] = Counter()
    for row in rows:
        left, right, word = (label(row.get(name)) for name in names)
        _need(bool(left and right and word), "something is missing")
        _need(word in _OUTCOMES, f"{word!r} is no outcome")
        count = 1.0 if weight is None else number(row.get(weight))
        _need(math.isfinite(count) and count >= 0, "no weight")
        if left != right and count:
            found[left, right, _OUTCOMES[word]] += count
    _need(sum(found.values()) <= 2.0**53, "more than can be counted")
    return found


def wins(rows: list[Row]) -> Counter[Any]:
    """Return the same of a table of wins and losses."""
    found: Counter[Any] = Counter()
    for row in rows:
        left, right = label(row["left"]), label(row["right"])
        _need(bool(left and right), "something is missing")
        for column, outcome in (("wins", "left"), ("losses", "right")):
            count = number(row[column])
            _need(math.isfinite(count) and count >= 0, "no count")
            if left != right and count:
                found[left, right, outcome] += count
    _need(sum(found.values()) <= 2.0**53, "more than can be counted")
    return found


def long_rankings(rows: list[Row]) -> Counter[Any]:
    """Return the number of every ordering: places of tied items, best first."""
    ballots: dict[str, dict[str, float]] = {}
    for row in rows:
        who, item, rank = label_as_written(row["ranking"]), label(row["item"]), number(row["rank"])
        _need(who != "" and item != "" and math.isfinite(rank), "something is missing")
        _need(item not in ballots.setdefault(who, {}), "an item twice")
        ballots[who][item] = rank
    return Counter(_places(ranks) for ranks in ballots.values() if len(ranks) > 1)


def label_as_written(text: Any) -> str:
    """Return the number of a ranking: a key, not an item, and compared as it stands."""
    return "" if text is None else text


def _places(ranks: dict[str, float]) -> tuple[frozenset[str], ...]:
    steps = sorted(set(ranks.values()))
    return tuple(frozenset(i for i, r in ranks.items() if r == step) for step in steps)


# -- JSON ------------------------------------------------------------------------------------------

_DEEPEST = 100


def _json(text: str) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        _need(len({k for k, _ in found}) == len(found), "a key twice")
        return dict(found)

    def constant(word: str) -> Any:
        raise Refused(f"{word} is no JSON")

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(f"no JSON: {error}") from None
    _need(_depth(value) <= _DEEPEST, "too deep")
    return value


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = 1 + max(map(_depth, inner), default=0)
    return found if isinstance(value, (dict, list)) else 0


def _scalar(value: Any) -> Any:
    """Return a value of JSON as text, as a table would hold it."""
    _need(not isinstance(value, (dict, list)), "no simple value")
    return value if value is None or isinstance(value, str) else json.dumps(value)


def arena(data: bytes, names: tuple[str, ...]) -> list[Row]:
    """Return the records of JSON lines, of an array of objects, or of columns of values by row."""
    text = text_of(content(data))
    lines = [line for line in text.split("\n") if line.strip(" \t\r")]
    _need(lines != [], "empty")
    try:
        first = _json(lines[0])
    except Refused:
        first = None
    records: Any
    if isinstance(first, dict) and not all(isinstance(v, dict) for v in first.values()):
        records = [_json(line) for line in lines]
    else:
        records = _json(text)
    if isinstance(records, dict):
        columns = list(records.values())
        _need(columns != [] and all(isinstance(c, dict) for c in columns), "no records")
        _need(all(set(c) == set(columns[0]) for c in columns), "columns of other rows")
        records = [{name: c[row] for name, c in records.items()} for row in columns[0]]
    _need(isinstance(records, list) and records != [], "no records")
    _need(all(isinstance(record, dict) for record in records), "no objects")
    _need(set(names) <= set(records[0]), "no such keys")
    return [{name: _scalar(record.get(name)) for name in names} for record in records]


# -- ballots ---------------------------------------------------------------------------------------


def ballots(data: bytes) -> Counter[Any]:
    """Return the weight of every ordering of a PrefLib file, alternatives by their ids."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    lines = [line.strip() for line in re.split("\r\n|\r|\n", text)]
    lines = [line for line in lines if line]
    _need(lines != [], "empty")
    known: list[str] = []
    votes = []
    if lines[0].startswith("#") or re.match(r"[0-9.]+\s*:", lines[0]):
        for line in lines:
            if line.startswith("#"):
                named = re.match(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:", line, re.IGNORECASE)
                known += [named.group(1)] if named else []
                continue
            count, colon, order = line.partition(":")
            _need(colon != "", "no colon")
            votes.append((count, order))
        ids = {i.strip() for _, order in votes for i in re.split("[,{}]", order)} - {""}
        _need(not known or ids <= set(known), "an alternative without a name")
    else:
        _need(re.fullmatch("[0-9]{1,15}", lines[0]) is not None, "no number of alternatives")
        k = int(lines[0])
        _need(k >= 1 and len(lines) > k + 1, "truncated")
        _need(all("," in line for line in lines[1 : k + 1]), "no name")
        known = [line.partition(",")[0].strip() for line in lines[1 : k + 1]]
        votes = [line.partition(",")[::2] for line in lines[k + 2 :]]
        ids = {i.strip() for _, order in votes for i in re.split("[,{}]", order)} - {""}
        _need(ids <= set(known), "an alternative without a name")
    _need(len(set(known)) == len(known), "a name twice")
    found: Counter[Any] = Counter()
    total = 0.0
    for written, order in votes:
        count = number(written.strip() or "x")
        _need(math.isfinite(count) and count >= 0, "no count")
        total += count
        places = _order(order)
        if count and sum(map(len, places)) > 1:
            found[places] += count
    _need(votes != [] and total <= 2.0**53, "no ballots, or more than can be counted")
    return found


def _order(text: str) -> tuple[frozenset[str], ...]:
    places: list[list[str]] = []
    depth, word = 0, ""
    group: list[str] = []
    closed = False  # a brace was closed: a comma must follow
    for c in text + ",":
        if c == "{":
            _need(depth == 0 and not word.strip() and not closed, "braces")
            depth = 1
        elif c == "}":
            _need(depth == 1, "braces")
            group.append(word.strip())
            word, depth, closed = "", 0, True
        elif c == ",":
            if closed:
                _need(not word.strip(), "text behind a brace")
                places.append(group)
                group, closed = [], False
            elif depth:
                group.append(word.strip())
            else:
                places.append([word.strip()])
            word = ""
        else:
            word += c
    _need(depth == 0, "braces")
    flat = [i for place in places for i in place]
    _need(all(flat) and len(set(flat)) == len(flat), "an empty place, or an alternative twice")
    return tuple(map(frozenset, places))


# -- is it the same? -------------------------------------------------------------------------------


def same(a: Any, b: Any) -> bool:
    """Whether two readings agree; numbers to 1e-12 of their size, sums of weights included."""
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-300)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)
