"""Seeded mutators: bytes, fields, rows, encodings and compression of real files."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import re
import unicodedata

import pyarrow as pa

__all__ = ["mutated", "mutated_records", "mutated_wide"]

BYTES = [
    b'"', b'""', b"\0", b"\r", b"\n", b"\r\n", b",", b";", b"\t", b"|", b"\xef\xbb\xbf", b"\xff",
    b"\xed\xa0\x80", b"\xc3", b"\x85", b"\xe2\x80\xa8", b"\x1a", b"\x1b[31m", b"{", b"}", b"[",
    b":", b"#", b"\\", b"\\u0000", b"\\ud800", b"'", b" ", b"\xc2\xa0", b"_", b"-", b"e", b"0",
]  # fmt: skip
FIELDS = [
    "", " ", "0", "1", "-1", "-0", "+1", "0.5", ".5", "1.", "0,5", "50%", "1e-3", "1E5", "1e400",
    "1e-400", "1e308", "-1e308", "nan", "NaN", "NA", "n/a", "inf", "-Infinity", "null", "None",
    "\\N", "1_000", "0x10", "0b1", "1d5", "1f", "\u0663", "\uff11", "1 000", "TRUE", "true", "no",
    "t", "0.1000000000000000055511151231257827", "00001", "9999999999999999999", "1" * 400, "a",
    "b", "left", "model_a", "tie", "both_bad", "item", "arm", "reward", "p_a", "\ufeffa", "a\u200b",
    "Cafe\u0301", "Caf\u00e9", "\u202ea", "a" * 3000, '"', '"a"', '"a', 'a"', '"a"b', ' "a"', "a,b",
    '"a,b"', '"a\nb"', "a\nb", "=1+1", "{1,2}", "{1", "1,{2", "1:2", "#", "[]", "{}", '{"a":1}',
    "true ", "\u00a01", "1\u00a0", "1\u2009", "2024-01-01", "1970-01-01T00:00:00Z", "1/2",
    "2024-02-30", "2024-01-02 10:00", "2024-01-02T10:00:00+02:00", "2024-01-02 10:00:00 UTC",
    "2024-01-02T10:00:00.123456789", "9007199254740993", "9007199254740992", "0001-01-01", "12:00",
    "2024-01-02T24:00:00", "2024-01-02T10:00:60", "1704153600", "9999-12-31", "20240102", "9e15",
]  # fmt: skip
TOKENS = [
    "NaN", "Infinity", "-Infinity", "1e400", "1e-400", '"\\ud800"', '"\\udc00x"', '"\\u0000"',
    '"\\ud83d\\ude00"', "[" * 500 + "]" * 500, "[" * 100000 + "]" * 100000, '{"a":' * 400, "null",
    "true", "false", "1", "1.0", "-0", "-0.0", "01", "1.", "0.1", "[]", "{}", "[1]", '["x"]', '""',
    '"model_a"', '"tie"', '"a":1,"a":2', "9" * 5000, "9" * 400, "12345678901234567890", "undefined",
    "'x'", '"x\ty"', '"\\x"', "/**/1", '"1"', '"1_0"', '"\u0663"', '" x"', '"Cafe\u0301"', "2.50",
]  # fmt: skip


def mutated(rng: random.Random, data: bytes, kind: str) -> bytes:
    """Return a mutant of a file: one to three changes, now and then compressed.

    Parameters
    ----------
    rng : random.Random
        The same state gives the same mutant.
    data : bytes
        The whole file.
    kind : {"table", "json", "ballots", "vw", "binary"}
        What its parts are.
    """
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(_CHANGES[kind])(rng, data)
    if kind in ("table", "json", "vw") and rng.random() < 0.15:
        data = _compressed(rng, data)
        if rng.random() < 0.6:
            data = _bytes(rng, data)
    return data


def mutated_records(rng: random.Random, data: bytes, kind: str) -> bytes:
    """Return a mutant of a table that holds JSON: of its fields, or within one of them."""
    return mutated(rng, data, rng.choice((kind, "json")))


def mutated_wide(rng: random.Random, data: bytes, kind: str) -> bytes:
    """Return a mutant of text in UTF-16: of its bytes, or of what they say."""
    if rng.random() < 0.3:
        return _bytes(rng, data)
    text = mutated(rng, data.decode("utf-16").encode(), kind).decode("utf-8", errors="replace")
    return rng.choice((b"\xff\xfe", b"\xff\xfe", b"")) + text.encode("utf-16-le")


# -- bytes -----------------------------------------------------------------------------------------


def _bytes(rng: random.Random, data: bytes) -> bytes:
    if not data:
        return rng.choice(BYTES)
    at = rng.randrange(len(data))
    size = rng.choice((1, 1, 2, 5, 30, len(data) // 3))
    new = rng.choice(BYTES)
    what = rng.randrange(9)
    if what == 0:
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    if what == 1:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if what == 2:
        return data[:at] + data[at + size :]
    if what == 3:
        return data[: at + size] + data[at:]
    if what == 4:
        return data[:at]
    if what == 5:
        return data[:at] + bytes(rng.randrange(256) for _ in range(rng.choice((1, 4)))) + data[at:]
    if what == 6:
        return data + data[at:]
    if what == 7:
        return data[at:] + data[:at]
    return data[:at] + new + data[at:]


def _encoding(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", errors="replace")
    what = rng.randrange(8)
    if what == 0:
        return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32")))
    if what == 1:
        return text.encode(rng.choice(("latin-1", "cp1252", "cp037")), errors="replace")
    if what == 2:
        return text.encode("utf-8-sig")
    if what == 3:
        return text.replace("\n", rng.choice(("\r\n", "\r", "\n\n", "\n\r"))).encode()
    if what == 4:
        return unicodedata.normalize(rng.choice(("NFD", "NFKD")), text).encode()
    if what == 5:
        return text.encode() + rng.choice((b"\n", b"\n\n", b" ", b"\x1a", b"\0", b"\r"))
    if what == 6:
        return rng.choice((b"\n", b" ", b"\r\n", b"\xef\xbb\xbf\xef\xbb\xbf", b"#\n")) + data
    return text.translate({ord("0"): "\u0660", ord("1"): "\u0661"}).encode()


def _compressed(rng: random.Random, data: bytes) -> bytes:
    how = rng.randrange(6)
    if how == 0:
        return gzip.compress(data, mtime=0)
    if how == 1:
        return bz2.compress(data)
    if how == 2:
        return lzma.compress(data)
    if how == 3:
        half = len(data) // 2
        return gzip.compress(data[:half], mtime=0) + gzip.compress(data[half:], mtime=0)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd" if how == 4 else "lz4") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


# -- tables ----------------------------------------------------------------------------------------


def _cells(data: bytes) -> tuple[list[list[str]], str]:
    lines = data.decode("utf-8", errors="surrogateescape").split("\n")
    mark = max(",;\t|", key=lines[0].count)
    return [line.split(mark) for line in lines], mark


def _joined(rows: list[list[str]], mark: str) -> bytes:
    return "\n".join(mark.join(row) for row in rows).encode("utf-8", errors="surrogateescape")


def _field(rng: random.Random, data: bytes) -> bytes:
    rows, mark = _cells(data)
    i = rng.randrange(len(rows)) if rng.random() < 0.85 else 0
    j = rng.randrange(len(rows[i]))
    row = rows[i]
    what = rng.randrange(8)
    if what <= 3:
        row[j] = rng.choice(FIELDS)
    elif what == 4:
        row[j] = rng.choice((f" {row[j]} ", f'"{row[j]}"', row[j] + row[j], row[j].upper()))
    elif what == 5:
        row.insert(j, rng.choice(FIELDS))
    elif what == 6:
        del row[j]
    else:
        k = rng.randrange(len(row))
        row[j], row[k] = row[k], row[j]
    return _joined(rows, mark)


def _rows(rng: random.Random, data: bytes) -> bytes:
    rows, mark = _cells(data)
    i, k = rng.randrange(len(rows)), rng.randrange(len(rows))
    what = rng.randrange(8)
    if what == 0:
        del rows[i]
    elif what == 1:
        rows.insert(k, list(rows[i]))
    elif what == 2:
        rows[i], rows[k] = rows[k], rows[i]
    elif what == 3:
        rows.insert(i, [rng.choice(("", " ", mark * 3, "# note", '"'))])
    elif what == 4:
        order = rng.sample(range(len(rows[0])), len(rows[0]))
        rows = [[r[j] for j in order] if len(r) == len(order) else r for r in rows]
    elif what == 5:
        rows = [[*r, rng.choice(FIELDS)] if r != [""] else r for r in rows]
    elif what == 6:
        mark = rng.choice(",;\t|:")
    else:
        rows = [[f'"{f}"' for f in r] if r != [""] else r for r in rows]
    return _joined(rows or [[""]], mark)


# -- JSON and ballots ------------------------------------------------------------------------------


def _token(rng: random.Random, data: bytes) -> bytes:
    """Replace a value, double a key, break the punctuation."""
    text = data.decode("utf-8", errors="surrogateescape")
    what = rng.randrange(6)
    marks = [i for i, c in enumerate(text) if c in '{}[],:"\n']
    if not marks:
        return data
    at = rng.choice(marks)
    ends = [i for i in (text.find(c, at + 1) for c in ",}\n") if i > 0]
    end = min(ends, default=len(text))
    if what <= 2 and text[at] == ":":
        text = text[: at + 1] + rng.choice(TOKENS) + text[end:]
    elif what == 3:
        text = text[:at] + text[at + 1 :]
    elif what == 4:
        text = text[: at + 1] + text[at:end] + text[end:]
    else:
        text = text[:at] + rng.choice(TOKENS) + text[at:]
    return text.encode("utf-8", errors="surrogateescape")


def _lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    i, k = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(5)
    if what == 0:
        del lines[i]
    elif what == 1:
        lines.insert(k, lines[i])
    elif what == 2:
        lines[i], lines[k] = lines[k], lines[i]
    elif what == 3:
        lines.insert(i, rng.choice((b"", b" ", b"null", b"{}", b"[]", b"# note")))
    else:
        lines[i] += rng.choice((b" ", b",", b"\r", b"}", b"{}", lines[k]))
    return b"\n".join(lines)


def _ballot(rng: random.Random, data: bytes) -> bytes:
    """Change a count, an alternative, a brace or a header line."""
    text = data.decode("utf-8", errors="surrogateescape")
    marks = [i for i, c in enumerate(text) if c in ",:{}#\n"]
    at = rng.choice(marks) if marks else 0
    ends = [i for i in (text.find(c, at + 1) for c in ",:{}\n") if i > 0]
    end = min(ends, default=len(text))
    what = rng.randrange(5)
    if what <= 1:
        text = text[: at + 1] + rng.choice(FIELDS) + text[end:]
    elif what == 2:
        text = text[:at] + text[at + 1 :]
    elif what == 3:
        text = text[:at] + rng.choice(("{", "}", ",", ":", "{}", ",,", "}{")) + text[at:]
    else:
        text = text[:end] + text[at:end] + text[end:]
    return text.encode("utf-8", errors="surrogateescape")


def _word(rng: random.Random, data: bytes) -> bytes:
    """Replace, double or drop what stands between two marks of a line of Vowpal Wabbit."""
    parts = re.split(r"([ :|\n])", data.decode("utf-8", errors="surrogateescape"))
    at = rng.randrange(len(parts))
    what = rng.randrange(4)
    if what <= 1:
        parts[at] = rng.choice((*FIELDS, "shared |", "|", "'x", "1:0:0.5", "0:0:1"))
    elif what == 2:
        parts.insert(at, parts[at])
    else:
        del parts[at]
    return "".join(parts).encode("utf-8", errors="surrogateescape")


_CHANGES = {
    "table": (_bytes, _bytes, _encoding, _field, _field, _field, _rows, _rows),
    "json": (_bytes, _bytes, _encoding, _token, _token, _token, _lines),
    "ballots": (_bytes, _bytes, _encoding, _ballot, _ballot, _ballot, _lines),
    "vw": (_bytes, _bytes, _encoding, _word, _word, _word, _lines),
    "binary": (_bytes,),
}
