"""One JSON array, cut into pieces: the same elements whatever the cuts, and no piece grows."""

import json
import random

import pytest

import bayesfair as bf
from bayesfair.errors import DataError
from bayesfair.readers.files.json_arrays import array_pieces

NASTY = [
    {"a": 1, "b": "x, y"}, {"c": "}], [{"}, {"d": '\\"'}, {"e": '\\\\"},{"'}, {},
    {"f": [1, {"g": [[], {}]}, ","]}, {"h": "\u00e9\u20ac\U0001f600", "i": None},
    {"j": {"k": "", "l": [""]}}, {"m": -1.5e-3, "n": True},
]  # fmt: skip


FORMS = [{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}]


@pytest.mark.parametrize("form", FORMS)
def test_pieces_hold_the_elements_wherever_the_text_is_cut(form):
    rng = random.Random(5)
    for _ in range(40):
        rows = rng.choices(NASTY, k=rng.randrange(12))
        text = json.dumps(rows, **form).encode()
        size = rng.randrange(1, 40)
        blocks = [text[i : i + size] for i in range(0, len(text), size)]
        pieces = list(array_pieces(blocks))
        assert [row for piece, _ in pieces for row in json.loads(piece)] == rows
        lines = 0
        for piece, before in pieces:
            assert before == lines
            lines += piece.count(b"\n")
        assert lines == text.count(b"\n")


def test_no_piece_is_longer_than_a_block_and_a_record():
    row = b'{"arm": "a, b", "reward": 1, "p": {"a": 0.5}},'
    blocks = (row * 20 for _ in range(300))
    pieces = [len(piece) for piece, _ in array_pieces([b"[", *blocks, b"{}]"])]
    assert sum(pieces) > 300 * 20 * len(row) and max(pieces) < 22 * len(row)


@pytest.mark.parametrize("end", [b"", b'", {}]'])
def test_a_long_element_is_not_searched_anew_for_every_block(end):
    """2 MB by 64 bytes: many minutes, were all that stands before a block searched with it."""
    text = b'["' + b"x" * (1 << 21) + end
    pieces = list(array_pieces([text[i : i + 64] for i in range(0, len(text), 64)]))
    assert b"".join(piece for piece, _ in pieces) == text


def test_what_does_not_begin_as_an_array_is_one_piece():
    text = b' {"a": {"0": 1}, "b": {"0": 2}}'
    assert list(array_pieces([text[i : i + 3] for i in range(0, len(text), 3)])) == [(text, 0)]


ROWS = [json.dumps({"arm": "ab"[i % 2], "reward": i % 3 % 2}) for i in range(60)]
GOOD = "[" + ",\n".join(ROWS) + "]"
BROKEN = {
    "a comma at the end": (GOOD[:-1] + ",]", None),
    "a comma at the end of a line": ("[" + ",".join(ROWS) + ", ]", None),
    "two commas": (GOOD.replace("},\n", "},,\n", 40), None),
    "no end": (GOOD[:-1], 60),
    "more behind the end": (GOOD + GOOD, 60),
    "no value": (GOOD.replace('{"arm": "a", "reward": 1}', '{"arm": "a", "reward": }', 1), 5),
    "a key twice": (GOOD[:-2] + ', "arm": "a"}]', None),
    "not a number": (GOOD[:-2] + ', "p": NaN}]', None),
    "no record": (GOOD[:-1] + ", 3]", None),
    "a record without end": (GOOD[:-3], 60),
}  # fmt: skip


@pytest.mark.parametrize("size", [11, 200, 1 << 20])
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_array_of_records_is_refused_in_blocks_too(name, size, tmp_path, monkeypatch):
    monkeypatch.setattr("bayesfair.readers.formats.registry._LONG", 0)
    monkeypatch.setattr("bayesfair.readers.duels.arena._BLOCK", size)
    path = tmp_path / "log.json"
    text, line = BROKEN[name]
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        bf.read_history(path)
    assert (caught.value.kind, caught.value.source) == ("bad_json", "log.json")
    assert line is None or caught.value.row == line
    path.write_text(GOOD)
    assert bf.read_history(path).n_rounds == 60
