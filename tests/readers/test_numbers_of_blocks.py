"""Columns that hold numbers are converted while they are parsed, block by block: as Python does."""

from __future__ import annotations

import numpy as np
import pytest

from bayesfair.errors import DataError
from bayesfair.readers import read_history, scan_history
from bayesfair.readers.files import blocks, delimited

ROWS = 400


def _log(path, odd):
    """Write a log of many blocks, in whose 300th row texts are odd; return rewards and the rule."""
    rng = np.random.default_rng(3)
    rows = []
    for t in range(ROWS):
        p = round(float(rng.random()), 6)
        row = {"label-e": "one-e-200" if t % 2 else "two", "click": str(t % 2)}
        row |= {"p_two": repr(p), "p_one-e-200": repr(round(1 - p, 6))}
        rows.append(row | (odd if t == 300 else {}))
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    number = lambda text: float(text.replace("True", "1") or "nan")  # noqa: E731
    found = np.array([[number(text) for text in list(row.values())[1:]] for row in rows])
    return found[:, 0], found[:, 1:]


@pytest.fixture(params=[1, 2])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(delimited, "_BLOCK", 1000)
    monkeypatch.setattr(blocks, "usable_cores", lambda: request.param)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"click": "True"},
        {"p_two": "0.000000", "p_one-e-200": "1", "label-e": "one-e-200"},
        {"p_two": "nan", "p_one-e-200": "1", "label-e": "one-e-200"},
        {"p_two": "", "p_one-e-200": " 1e0 ", "label-e": "one-e-200"},
        {"p_two": "5E-1", "p_one-e-200": "+.5"},
        {"p_two": "1e-7", "p_one-e-200": "0.9999999", "label-e": "two"},
    ],
)
def test_numbers_are_those_that_python_reads(tmp_path, small_blocks, odd):
    path = tmp_path / "log.csv"
    reward, pi = _log(path, odd)
    options = {"arm": "label-e", "reward": "click", "arms": ["two", "one-e-200"]}
    parts = list(scan_history(path, chunk_rounds=90, **options).chunks())
    assert len(parts) > 4 and parts[0].row[0] == 2
    for logs in ([read_history(path, **options)], parts):
        found = np.concatenate([log.selection_probability for log in logs])
        np.testing.assert_allclose(found, pi, rtol=0, atol=2e-16)
        np.testing.assert_array_equal(np.concatenate([log.reward for log in logs]), reward)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("p_two", "1e-400"), ("p_two", f"0.{0:0400}1"), ("p_two", "1e400"), ("p_two", "abc"),
        ("click", "1e-400"), ("click", "maybe"), ("click", "1e999"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused_by_its_row(tmp_path, small_blocks, column, text):
    path = tmp_path / "log.csv"
    _log(path, {})
    lines = path.read_text().splitlines()
    fields = lines[301].split(",")
    fields[lines[0].split(",").index(column)] = text
    path.write_text("\n".join([*lines[:301], ",".join(fields), *lines[302:]]) + "\n")
    for read in (read_history, lambda p, **o: list(scan_history(p, **o).chunks())):
        with pytest.raises(DataError, match=rf"row 302 of log.csv, column '{column}'") as caught:
            read(path, arm="label-e", reward="click")
        assert caught.value.kind == "bad_number"


def test_a_broken_record_is_named_as_ever(tmp_path, small_blocks):
    path = tmp_path / "log.csv"
    _log(path, {})
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:301], lines[301] + ",1", *lines[302:]]) + "\n")
    with pytest.raises(DataError, match=r"row 302 of log.csv has 5 fields"):
        read_history(path, arm="label-e", reward="click")
