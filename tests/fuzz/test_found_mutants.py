"""What the fuzzer found, each as the smallest file that shows it."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct

import fuzzing
import originals
import pytest
import strict_reading as strict
import tables

CASES = {case.name: case for case in fuzzing.CASES}
BATTLE = {"model_a": "x", "model_b": "y", "winner": "tie"}
LINE = json.dumps(BATTLE).encode() + b"\n"
BOM = b"\xef\xbb\xbf"
SMALL = b"arm,reward,p_a,p_b\na,1,0.5,0.5\n"


def _text_that_is_none():
    """Return Parquet whose column of labels holds bytes that are no UTF-8."""
    whole = tables.ORIGINALS["parquet"]
    at = whole.index("Caf\u00e9".encode()) + 3
    return whole[:at] + b"\xff" + whole[at + 1 :]


def _name_that_is_none():
    return tables.ORIGINALS["parquet"].replace("p_Caf\u00e9".encode(), b"p_Caf\xf2\xa9")


def _place_outside():
    """Return Arrow text that goes on far behind the end of its file: read, it ends the process."""
    whole = tables.ORIGINALS["arrow"]
    lengths = [len(row["arm"].encode()) for row in strict.table(originals.FULL, ("arm",))[:10]]
    places = [sum(lengths[:i]) for i in range(11)]
    at = whole.index(struct.pack("<11i", *places)) + 40
    return whole[:at] + struct.pack("<i", 1 << 30) + whole[at + 4 :]


FOUND = {
    "an empty first line with the delimiter told": ("full_told", b"\n" + SMALL, "empty"),
    "a probability as large as double precision holds": (
        "full", SMALL + b"a,1,1e308,0.5\n", "1e+308",
    ),
    "a probability below the least normal number": (
        "full", SMALL + b"a,1,0.125,5e-324\nb,0,0.1234567,0.1\n", "sum to",
    ),
    "a list where a label belongs": (
        "jsonl", LINE + LINE.replace(b'"tie"', b"[1]"), "one value, text or a number",
    ),
    "a mark of the byte order in front of the second line": ("jsonl", LINE + BOM + LINE, "row 2"),
    "two marks of the byte order": ("jsonl", BOM + BOM + LINE, "not valid JSON"),
    "something behind an xz stream": ("none", lzma.compress(originals.NONE) + b"x", "cannot be r"),
    "something behind a gzip stream": ("none", gzip.compress(originals.NONE) + b"x", "cannot be"),
    "something behind a bz2 stream": ("none", bz2.compress(originals.NONE) + b"x", "cannot be"),
    "half an xz stream": ("none", lzma.compress(originals.NONE)[:-9], "truncated"),
    "a blank for an item of a duel": ("duels", b"model_a,model_b,winner\n ,y,tie\n", "missing"),
    "a no-break space for an item of a ranking": (
        "long", "ranking,item,rank\n1,\u00a0,1\n1,x,2\n".encode(), "missing",
    ),
    "Parquet text that is no text": ("parquet", _text_that_is_none(), "UTF-8|damaged"),
    "a Parquet column whose name is no text": ("parquet", _name_that_is_none(), "parquet"),
    "a label of JSON that is no number that can be held": (
        "jsonl", LINE + LINE.replace(b'"x"', b"1e-400"), "row 2",
    ),
    "a reward whose square cannot be held": ("none", b"reward,arm\n1e200,a\n0,b\n", "finite"),
    "an empty place in a ballot": ("soi", b"3: 1,,2\n", "no order"),
    "no comma behind a brace": ("toc", b"3: {1,2}3\n", "no order"),
    "nothing behind the colon": ("soi", b"3:\n", "no order"),
    "empty braces": ("toc", b"3: {},1,2\n", "no order"),
    "an Arrow text behind the end of the file": ("arrow", _place_outside(), "Offset|offset"),
    "ORC text that is no text": (
        "orc", tables.ORIGINALS["orc"].replace("Caf\u00e9".encode(), b"Caf\xff\xff"), "UTF|read",
    ),
    "words before an action that was not chosen": (
        "cb_adf", b"shared |u\n0:-1:0.5 |a\nx1 |a\n", "before the |",
    ),
    "a header of one endless name": ("none", b"[" * 200_000, "none.csv|log.csv|1"),
    "raised digits as the number of voters": ("old", "\u00b2\n1,x\n".encode(), "row 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_found_mutants_are_refused_with_a_reason(name, tmp_path):
    case, data, said = FOUND[name]
    verdict = fuzzing.judged(CASES[case], data, tmp_path)
    assert verdict.word == "refused", verdict
    assert any(part in verdict.detail for part in said.split("|")), verdict.detail


READ = {
    "one mark of the byte order": ("jsonl", BOM + LINE * 2),
    "two xz streams with padding between": (
        "none", lzma.compress(originals.NONE[:13]) + b"\0" * 8 + lzma.compress(originals.NONE[13:]),
    ),
    "two gzip members": (
        "none", gzip.compress(originals.NONE[:20]) + gzip.compress(originals.NONE[20:]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_near_relatives_of_found_mutants_are_read_right(name, tmp_path):
    case, data = READ[name]
    assert fuzzing.judged(CASES[case], data, tmp_path) == fuzzing.Verdict("equal")
