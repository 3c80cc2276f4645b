"""What the fuzzer found, each as the smallest file that shows it."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma

import fuzzing
import originals
import pytest

CASES = {case.name: case for case in fuzzing.CASES}
BATTLE = {"model_a": "x", "model_b": "y", "winner": "tie"}
LINE = json.dumps(BATTLE).encode() + b"\n"
BOM = b"\xef\xbb\xbf"
SMALL = b"arm,reward,p_a,p_b\na,1,0.5,0.5\n"


def _text_that_is_none():
    """Return Parquet whose column of labels holds bytes that are no UTF-8."""
    whole = originals.PARQUET
    at = whole.index("Caf\u00e9".encode()) + 3
    return whole[:at] + b"\xff" + whole[at + 1 :]


def _name_that_is_none():
    return originals.PARQUET.replace("p_Caf\u00e9".encode(), b"p_Caf\xf2\xa9")


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
