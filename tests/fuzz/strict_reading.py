"""An independent strict reading of every file format: the oracle of the fuzzer.

Nothing here comes from the package. Text is split by Python's `csv`, JSON by Python's `json`,
ballots by the few lines below, following what the documentation promises and nothing else. What is
not exactly as promised is `Refused`, and the package must refuse it as well. It may refuse more.

Leniencies that are promised, each with its reason; there are no others:

* blanks around labels, numbers and names of columns, and the encoding of letters (NFC), make no
  difference: exports pad columns, and nobody sees the difference;
* a whole number loses its ".0" where it is a label: a column of numbers with a gap is written so;
* NA, NaN, null and the like are missing numbers (never labels): programs write them;
* a missing mark of the chosen arm is a no: exactly one row of each round must be marked, so it is
  another one;
* a first line such as `sep=;` names the delimiter: spreadsheets write and read it;
* text may be UTF-16 where its mark says so: spreadsheets write it;
* empty lines are no rows: exports end with them;
* compression goes by the bytes, not by the name; streams may follow one another, and zeros may
  stand behind gzip and xz streams, as both formats say;
* records of probabilities may hold NaN, and be text of Python or NumPy: data frames write them so;
* a ballot file that is no UTF-8 is Latin-1, as PrefLib's older files are;
* columns of Parquet that nothing is read from may be damaged: they are not looked at.
"""

from __future__ import annotations

import ast
import bz2
import csv
import io
import json
import lzma
import math
import re
import unicodedata
import zlib
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

__all__ = [
    "Refused",
    "Row",
    "Unheld",
    "by_arm",
    "content",
    "history",
    "label",
    "need",
    "number",
    "ordered",
    "parsed_json",
    "records",
    "same",
    "table",
    "text_of",
]  # fmt: skip

Row = dict[str, Any]


class Refused(Exception):
    """The file is not exactly what was promised to be readable."""


def need(holds: bool, why: str) -> None:
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
        need(one.eof, "truncated")
        data = one.unused_data
        if make is _gzip or make is lzma.LZMADecompressor:
            data = data.lstrip(b"\0")  # padding, which both formats allow
    return out


def _gzip() -> Any:
    return zlib.decompressobj(wbits=31)


def content(data: bytes) -> bytes:
    """Return what is compressed, whatever the file is called; UTF-16 with its mark as UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError as error:
            raise Refused(f"no UTF-16: {error}") from None
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
    marked = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return data.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"no UTF-8: {error}") from None


def label(text: Any) -> str:
    """Return a label, "" where it is missing: blanks around it and the encoding of letters go."""
    found = "" if text is None else unicodedata.normalize("NFC", text).strip()
    return re.sub(r"^([+-]?[0-9]+)\.0+$", r"\1", found)


_ABSENT = {"", "na", "n/a", "nan", "null", "none", "\\n"}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def number(text: Any) -> float:
    """Return a number of the digits 0 to 9, NaN where it is missing."""
    if text is None or text.strip().casefold() in _ABSENT:
        return math.nan
    text = text.strip()
    if re.fullmatch(r"[+-]?inf(inity)?", text, re.IGNORECASE):
        return float(text)
    need(_NUMBER.fullmatch(text) is not None, f"{text[:40]!r} is no number")
    value = float(text)
    digits = re.split("[eE]", text)[0]
    need(math.isfinite(value), f"{text[:40]!r} is too large")
    need(value != 0 or not digits.strip("+-0."), f"{text[:40]!r} is too close to 0")
    return value


# -- delimited text --------------------------------------------------------------------------------


def table(data: bytes, needed: tuple[str, ...], delimiter: str | None = None) -> list[Row]:
    """Return the rows of delimited text by the columns of its header."""
    text = text_of(content(data))
    noted = re.match(r'"?sep=([^"\r\n])"?[;,\t|]*(\r\n|\n|\r)', text, re.IGNORECASE)
    if noted:
        need(delimiter in (None, noted[1]), "another delimiter")
        delimiter, text = noted[1], text[noted.end() :]
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
    need(len(set(header)) == len(header), "a column twice")
    need(len(rows) > 1, "no rows")
    need(all(len(row) == len(header) for row in rows), "rows of other lengths")
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


# -- logs ------------------------------------------------------------------------------------------

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d+)?)?)?\s*(Z|UTC|GMT|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)
_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


def history(rows: list[Row], rule: str) -> list[tuple[str, float, Any]]:
    """Return arm, reward and what is known of the rule, round by round.

    `rule`: "full" (columns p_{arm}), "chosen" (propensity) or "none".
    """
    found = []
    columns = {label(c[2:]): c for c in rows[0] if c.startswith("p_") and label(c[2:])}
    if rule == "full":
        names = [label(c[2:]) for c in rows[0] if c.startswith("p_") and label(c[2:])]
        need(len(set(names)) == len(names) and names != [], "two columns of one arm, or none")
        need(all(label(r["arm"]) in columns for r in rows), "an arm without its column")
        laws = _laws([[number(r[c]) for c in columns.values()] for r in rows])
    for i, row in enumerate(rows):
        arm, paid = label(row["arm"]), row["reward"]
        need(arm != "", "no arm")
        word = "" if paid is None else paid.strip().casefold()
        reward = _WORDS[word] if word in _WORDS else number(paid)
        need(abs(reward) <= 1e150, "no reward, or one whose square cannot be held")
        known: Any = None
        if rule == "chosen":
            known = number(row["propensity"])
            need(0 < known <= 1 + 1e-6, "no probability")
            known = min(known, 1.0)
        if rule == "full":
            known = {a: p for a, p in zip(columns, laws[i], strict=True) if not math.isnan(p)}
            need(known.get(arm, 0.0) > 0, "the chosen arm cannot have been chosen")
        found.append((arm, reward, known))
    return found


def records(rows: list[Row], arms: tuple[str, ...]) -> list[tuple[str, float, Any]]:
    """Return the same of a log whose column `probs` holds JSON: objects or lists of numbers."""
    filled = []
    for row in rows:
        text = row["probs"].strip()
        law = _record(text) if text else {}
        need(isinstance(law, (dict, list)), "no record")
        if isinstance(law, list):
            need(len(law) == len(arms), "a list of another length")
            law = dict(zip(arms, law, strict=True))
        named = {label(str(a)): p for a, p in law.items()}
        need(len(named) == len(law) and set(named) <= set(arms), "other arms")
        for p in named.values():
            need(
                p is None or (isinstance(p, (int, float)) and not isinstance(p, bool)), "no number"
            )
        need(label(row["arm"]) in arms, "another arm")
        written = {a: "" if p is None else _shown(p) for a, p in named.items()}
        filled.append({**row, **{f"p_{a}": written.get(a, "") for a in arms}})
    return history(filled, "full")


def _record(text: str) -> Any:
    """Return a record in JSON, as Python writes it, or as NumPy writes lists."""
    try:
        return parsed_json(text, nan=True)
    except Refused as refusal:
        need("no JSON" in str(refusal), str(refusal))
    inside = text[1:-1]
    parts = [p.strip() for p in (inside.split(",") if "," in inside else inside.split())]
    if text[0] + text[-1] in ("[]", "()") and all(map(_NUMBER.fullmatch, parts)):
        need(len(parts) > 1, "no list")
        return [number(part) for part in parts]
    odd = r"\d_\d|0[xXoObB]|\d[jJ]|['\"]\s*['\"]|\d[eE]"  # exponents may be lost: not judged here
    need(re.search(odd, text) is None, "numbers that only Python reads")
    try:
        tree = ast.parse(text, mode="eval").body
        found = ast.literal_eval(tree)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise Refused(f"no record: {error}") from None
    need(not isinstance(tree, ast.Dict) or len(found) == len(tree.keys), "a key twice")
    return list(found) if isinstance(found, tuple) else found


def _shown(value: float) -> str:
    try:
        return repr(float(value))
    except OverflowError:
        raise Refused("too large") from None


def by_arm(rows: list[Row]) -> list[tuple[str, float, Any]]:
    """Return the rounds of a log with one row for each arm on offer, `chosen` marking one."""
    rounds: dict[str, Row] = {}
    for row in rows:
        key, arm, mark = label(row["round"]), label(row["arm"]), row["chosen"].strip().casefold()
        need(key != "" and arm != "", "no round, or no arm")
        taken = 0 if mark in _ABSENT else _WORDS[mark] if mark in _WORDS else number(mark)
        need(taken in (0, 1), "neither chosen nor not")
        found = rounds.setdefault(key, {})
        need(f"p_{arm}" not in found, "an arm twice in a round")
        found[f"p_{arm}"] = row["propensity"]
        if taken:
            need("arm" not in found, "two arms chosen")
            found |= {"arm": arm, "reward": row["reward"]}
    need(all("arm" in found for found in rounds.values()), "no arm chosen")
    columns = dict.fromkeys(c for found in rounds.values() for c in found if c.startswith("p_"))
    return history([{**dict.fromkeys(columns, ""), **found} for found in rounds.values()], "full")


def ordered(rows: list[Row]) -> list[tuple[str, float, Any]]:
    """Return the rounds sorted stably by column `t`: all numbers, or all times of one kind."""
    written = [row["t"].strip() for row in rows]
    try:
        places: list[Any] = [Fraction(t) if _NUMBER.fullmatch(t) else _time(t) for t in written]
        order = sorted(range(len(rows)), key=places.__getitem__)
    except (ValueError, TypeError) as error:  # two kinds cannot be compared
        raise Refused(f"no order: {error}") from None
    return history([rows[i] for i in order], "none")


def _time(text: str) -> datetime:
    need(_ISO.fullmatch(text) is not None, f"{text[:40]!r} is no time")
    return datetime.fromisoformat(re.sub(r"\s*(UTC|GMT)$", "Z", text))


def _laws(matrix: list[list[float]]) -> list[list[float]]:
    """Return rows of probabilities that sum to 1, within what their decimals can have lost."""
    written = [Decimal(repr(p)).normalize() for row in matrix for p in row if math.isfinite(p)]
    decimals = max((max(0, -int(d.as_tuple().exponent)) for d in written), default=0)
    digits = max((len(d.as_tuple().digits) for d in written), default=1)
    found = []
    for row in matrix:
        known = [p for p in row if not math.isnan(p)]
        need(known != [] and all(0 <= p <= 1 + 1e-6 for p in known), "no probabilities")
        slack = len(known) / 2 * 10.0 ** -min(decimals, digits)
        slack = min(slack, 0.02) if min(decimals, digits) <= 1 else slack
        total = math.fsum(known)
        need(abs(total - 1) <= max(slack, 1e-6) * (1 + 1e-9), f"a sum of {total}")
        found.append([p / total for p in row])
    return found


# -- JSON ------------------------------------------------------------------------------------------

_DEEPEST = 100


class Unheld(str):
    """A number that double precision cannot hold: wrong only where it is read."""


def parsed_json(text: str, *, nan: bool = False) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len({k for k, _ in found}) == len(found), "a key twice")
        return dict(found)

    def constant(word: str) -> Any:
        if nan and word == "NaN":
            return math.nan
        raise Refused(f"{word} is no JSON")

    def held(word: str) -> Any:
        try:
            return number(word)
        except Refused:
            return Unheld(word)

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=held)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(f"no JSON: {error}") from None
    need(_depth(value) <= _DEEPEST, "too deep")
    return value


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = 1 + max(map(_depth, inner), default=0)
    return found if isinstance(value, (dict, list)) else 0


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
