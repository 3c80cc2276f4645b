"""JSON in files, columns and attributes is read strictly: what only some read is refused."""

from __future__ import annotations

import json
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bayesfair as bf
from bayesfair.base.json_text import DEEPEST, BadJson, each_line, from_json, strictly
from bayesfair.base.notices import notices_from_json
from bayesfair.errors import BayesfairError, DataError
from bayesfair.readers.log.nested import meaning

GOOD = '{"model_a":"x","model_b":"z","winner":"model_a","votes":2}\n'
DEEP = "[" * 100_000 + "]" * 100_000

BROKEN = {
    "latin1": (GOOD.encode() + GOOD.encode().replace(b"x", b"\xf4"), "row 2 .*0xf4 is no UTF-8"),
    "utf16": (GOOD.encode("utf-16"), "UTF-16 text; save it as UTF-8"),
    "deep": (GOOD + GOOD.replace("2", DEEP), "row 2 .*more than 100 deep"),
    "deep_at_once": (DEEP, "more than 100 deep"),
    "half_a_character": (GOOD + GOOD.replace('"x"', '"\\ud800x"'), r"row 2 .*\\ud800 alone"),
    "key_twice": (GOOD + GOOD.replace("votes", "winner"), "row 2 .*'winner' stands twice"),
    "key_twice_further_in": (GOOD.replace("2", '{"a":1,"a":1}'), "row 1 .*'a' stands twice"),
    "nan": (GOOD.replace("2", "NaN"), "row 1 .*NaN is no JSON; write null"),
    "infinity": (GOOD + GOOD.replace("2", "-Infinity"), "row 2 .*-Infinity is no JSON"),
    "thousands_of_digits": (GOOD + GOOD.replace("2", "9" * 5000), "row 2 .*4300 digits"),
    "two_objects_on_a_line": (GOOD + GOOD.strip() + " " + GOOD, "row 2 .*Extra data"),
    "object_over_two_lines": (GOOD + GOOD.replace(",", ",\n", 1), "row 2 .*not valid JSON"),
    "no_object": (GOOD + "[1, 2]\n", r"row 2 .*is no object"),
    "mark_within": (GOOD + "\ufeff" + GOOD, "row 2 .*not valid JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "json"])
def test_broken_json_lines_are_refused_by_row_and_reason(name, suffix, tmp_path):
    content, said = BROKEN[name]
    path = tmp_path / f"log.{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=said) as caught:
        bf.read_comparisons(path, weight="votes")
    assert caught.value.source == path.name


@pytest.mark.parametrize(
    "name", ["latin1", "deep", "half_a_character", "key_twice", "nan", "infinity"]
)
def test_broken_json_arrays_are_refused(name, tmp_path):
    content, said = BROKEN[name]
    lines = (content if isinstance(content, bytes) else content.encode()).strip().split(b"\n")
    path = tmp_path / "log.json"
    path.write_bytes(b"[" + b",\n".join(lines) + b"]")
    with pytest.raises(DataError, match=said.rpartition(".*")[2]):
        bf.read_comparisons(path)


def test_columns_of_values_by_row_must_hold_the_same_rows(tmp_path):
    path = tmp_path / "log.json"
    columns = {"model_a": {"0": "x"}, "model_b": {"0": "y"}, "winner": {"0": "tie"}}
    path.write_text(json.dumps(columns))
    assert bf.read_comparisons(path).n_comparisons == 1
    path.write_text(json.dumps(columns | {"winner": {"0": "tie", "1": "model_a"}}))
    with pytest.raises(DataError, match="'1' in one of them only"):
        bf.read_comparisons(path)


def test_rows_of_json_lines_are_records_and_lines_are_named_where_they_differ(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("\n\n" + GOOD + "\n" + GOOD + "{\n")
    with pytest.raises(DataError, match=r"row 3 of log.jsonl \[line 6\]"):
        bf.read_comparisons(path)


def test_long_files_are_read_in_blocks_as_at_once(tmp_path, monkeypatch):
    """Oracle: Python's own counting of the lines."""
    rng = random.Random(3)
    rows = [(*rng.sample("abcd", 2), rng.choice(["model_a", "model_b"])) for _ in range(400)]
    keys = ("model_a", "model_b", "winner")
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(dict(zip(keys, r, strict=True))) + "\n" for r in rows))
    monkeypatch.setattr("bayesfair.readers.duels.arena._BLOCK", 100)
    found = bf.read_comparisons(path)
    assert found.n_comparisons == 400
    for i, j, outcome, n in zip(found.left, found.right, found.outcome, found.count, strict=True):
        word = ("model_a", "model_b")[outcome]
        assert n == rows.count((found.items[i], found.items[j], word))


def test_deepest_json_is_read_and_one_deeper_is_not():
    assert strictly("[" * DEEPEST + "]" * DEEPEST) is not None
    with pytest.raises(BadJson, match="100 deep"):
        strictly("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))
    assert strictly("[" + ",".join(["[1]"] * 500) + "]") == [[1]] * 500


def test_characters_of_two_halves_are_characters():
    assert strictly('"\\ud83d\\ude00"') == "\U0001f600"


@pytest.mark.parametrize("text", [b"\xff", "[1", 3, None, "NaN", '{"a":1,"a":2}', DEEP])
def test_json_in_named_places_is_refused_by_their_name(text):
    with pytest.raises(DataError, match=r"^the attribute 'x' is no JSON \(.*\)\. Save it again\."):
        from_json(text, "the attribute 'x'", remedy="Save it again.")


@pytest.mark.parametrize("text", ["[", "3", "[1", '[{"a": 1}]', '[{"text": 1, "text": 2}]', "null"])
def test_notices_that_were_changed_by_hand_are_refused(text):
    with pytest.raises(BayesfairError, match="the attribute that holds the notices"):
        notices_from_json(text)


# -- records of probabilities ----------------------------------------------------------------------

TWICE = [
    '{"a": 0.5, "b": 0.5, "a": 0.5}',
    "{'a': 0.5, 'b': 0.5, 'a': 0.5}",
    '{"a": 0.5, "b": 0.5, "a ": 0.5}',
]


@pytest.mark.parametrize("record", TWICE)
def test_an_arm_that_a_record_names_twice_is_refused_by_its_row(record, tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text(f'arm\treward\tprobs\na\t1\t{{"a": 0.5, "b": 0.5}}\na\t1\t{record}\n')
    with pytest.raises(DataError, match=r"row 3 .*.*(twice|more than once)"):
        bf.read_history(path, probabilities="probs.{arm}")


def test_an_arm_that_a_map_or_struct_names_twice_is_refused(tmp_path):
    base = {"arm": ["a", "b"], "reward": [1, 0]}
    pairs = [[("a", 0.5), ("b", 0.5)], [("a", 0.5), ("b", 0.25), ("b", 0.25)]]
    maps = pa.array(pairs, pa.map_(pa.string(), pa.float64()))
    half = pa.array([0.5, 0.5])
    structs = pa.StructArray.from_arrays([half, half, half], names=["a", "b", "b"])
    spaced = pa.StructArray.from_arrays([half, half, half], names=["a", "b", "b "])
    for column in (maps, structs, spaced):
        table = pa.table({**base, "probs": column})
        pq.write_table(table, tmp_path / "log.parquet")
        for source in (table, tmp_path / "log.parquet"):
            with pytest.raises(DataError, match=r"'b'"):
                bf.read_history(source, probabilities="probs.{arm}")
    frame = pd.DataFrame({**base, "probs": pairs})
    with pytest.raises(DataError, match=r"'b' stands twice"):
        bf.read_history(frame, probabilities="probs.{arm}")


@pytest.mark.parametrize("odd", ["0x1", "1_0", "1e400", "1e-400", "1j", "0b1", "9" * 5000])
def test_numbers_that_only_python_reads_are_none_in_records(odd, tmp_path):
    path = tmp_path / "log.tsv"
    for record in (f"{{'a': {odd}, 'b': 0.5}}", f'{{"a": {odd}, "b": 0.5}}'):
        path.write_text(f"arm\treward\tprobs\na\t1\t{{'a': 0.5, 'b': 0.5}}\na\t1\t{record}\n")
        with pytest.raises(DataError, match=r"row 3 of log.tsv, column 'probs'"):
            bf.read_history(path, probabilities="probs.{arm}")


def test_python_and_numpy_text_is_read_as_before():
    """Oracle: the values as they are written here."""
    cases = {
        "{'a': 0.25, 'b': .75}": {"a": 0.25, "b": 0.75},
        "{'a': 1, 'b': 0}": {"a": 1, "b": 0},
        "('x', 'y')": ["x", "y"],
        "{'y'}": {"y"},
        "{0.5,0.2,NULL}": [0.5, 0.2, None],
        "{0.5, 0.2}": {0.5, 0.2},
        "{b=0.5, a=0.25, c=.25}": {"b": 0.5, "a": 0.25, "c": 0.25},
        "{'a': np.float64(0.25), 'b': np.float32(.75)}": {"a": 0.25, "b": 0.75},
        "[0.25 0.75]": [0.25, 0.75],
        "['x' 'y']": ["x", "y"],
        "(-1, +2.5, None, True)": [-1, 2.5, None, True],
        '{"a": NaN, "b": 1}': {"a": np.nan, "b": 1},
        "f(1)": None,
        "[x for x in y]": None,
        "{**{}}": None,
        "['\\d']": ["\\d"],
    }
    for text, value in cases.items():
        assert repr(meaning(text)) == repr(value), text


def test_an_arm_twice_among_offers_is_refused(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text('arm\treward\toffered\na\t1\t{"a": 1, "b": 1}\na\t1\t{"a": 1, "a": 0}\n')
    with pytest.raises(DataError, match=r"row 3 of log.tsv, column 'offered': .*stands twice"):
        bf.read_history(path, offered="offered", propensity=False)


def test_lines_read_at_once_are_those_read_one_by_one():
    rng = random.Random(5)
    pieces = ['{"a": 1}', '{"a": 1.50, "b": [1, null]}', '{"a": "x\\ty"}', '{"a": "\u2028"}', " ",
              '{"a": 1}}', '{"a": 1, "a": 2}', '{"a":', '1}', '{"a": "x', 'y"}', '[1]',
              '{"a": NaN}',
              '{"a": 1} {"b": 2}', '{"a": 01}', '{"a": "\\u0041"}', "[" * 101 + "]" * 101,
              '{"a": [[{}', '{}]]}', '{}],[{}']  # fmt: skip
    agreed = 0
    for _ in range(3000):
        lines = rng.choices(pieces[: rng.choice([5, len(pieces)])], k=rng.randint(1, 4))
        quick = each_line("\n".join(lines) + rng.choice(["", "\n"]), str)
        try:
            slow = [strictly(line, to_number=str) for line in lines if line.strip()]
        except BadJson:
            assert quick is None
            continue
        assert quick is None or quick == slow
        agreed += quick is not None
    assert agreed > 500


def test_objects_over_several_lines_one_after_another_are_refused_with_the_remedy(tmp_path):
    record = {"model_a": "x", "model_b": "y", "winner": "model_a"}
    path = tmp_path / "duels.json"
    path.write_text("\n".join(json.dumps(record, indent=1) for _ in range(3)))
    with pytest.raises(DataError) as error:
        bf.read_comparisons(path)
    assert error.value.kind == "bad_json" and error.value.row == 6
    assert "one object per line" in str(error.value) and "jq -c" in str(error.value)
    path.write_text(json.dumps([record] * 3, indent=1))
    assert bf.read_comparisons(path).n_comparisons == 3
