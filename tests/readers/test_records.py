"""Blocks of whole records, held against Python's own reader of the whole text."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayesfair.errors import DataError
from bayesfair.readers import read_history, scan_history
from bayesfair.readers.files import delimited
from bayesfair.readers.files.quotes import LONGEST, QuoteWatch
from bayesfair.readers.files.records import RecordTooLong, whole_records


def _rows(text: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


@given(
    st.lists(st.sampled_from(['"', ",", "\n", "\r\n", "\r", "a", "é"]), max_size=40),
    st.integers(1, 12),
)
@example(list('x"y,1\n"a\nb",2\n'), 11)  # a quote within a field, then a line break within quotes
@example(list('"a""\nb",c\n"d"'), 7)
@example(list('a,"b\n\n\n'), 3)
def test_the_records_of_all_blocks_are_those_of_the_text(pieces, size):
    text = "".join(pieces)
    for begin in (b"", b"\xef\xbb\xbf"):
        watch = QuoteWatch(",")
        blocks = list(whole_records(io.BytesIO(begin + text.encode()), watch, size))
        assert b"".join(blocks).rstrip(b"\r\n") == (begin + text.encode()).rstrip(b"\r\n")
        found = [row for block in blocks for row in _rows(block.decode("utf-8-sig"))]
        # an open quote takes the line break that ends the last block; such files are refused
        assert found == _rows(text) or found == _rows(text.rstrip("\r\n") + "\n")


def test_a_record_without_end_is_not_kept_in_memory_for_ever(tmp_path):
    endless = io.BytesIO(b"a,b\n" + b"x" * (LONGEST + (1 << 24)))
    with pytest.raises(RecordTooLong):
        list(whole_records(endless, QuoteWatch(","), 1 << 23))
    path = tmp_path / "log.csv"
    path.write_bytes(b"arm,reward\na,1\nb," + b"0" * (LONGEST + (1 << 24)))
    for read in (read_history, lambda p: list(scan_history(p, arms=["a", "b"]).chunks())):
        with pytest.raises(DataError, match=r"log.csv: a record behind row 2 is longer than 32 MB"):
            read(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_far_into_a_file_are_named_whatever_ends_a_line(tmp_path, end, monkeypatch):
    """Beyond the first block, with empty lines and quoted line breaks before it."""
    monkeypatch.setattr(delimited, "_BLOCK", 1 << 12)
    path = tmp_path / "log.csv"
    n = 500
    body = f'1,"no{end}te",a{end}{end}0,,b{end}' * n
    path.write_text(f"reward,note,arm{end}{body}1,a{end}", newline="")
    assert path.stat().st_size > 1 << 13
    for read in (read_history, lambda p: list(scan_history(p, arms=["a", "b"]).chunks())):
        with pytest.raises(
            DataError, match=rf"row {2 * n + 2} of log.csv .*has 2 fields"
        ) as caught:
            read(path)
        assert caught.value.row == 2 * n + 2


def test_a_field_longer_than_a_block_of_the_parser_is_read(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(f"arm,note,reward\na,{'x' * 3_000_000},1\nb,{'y' * 10_000_000},0\n")
    assert read_history(path).reward.tolist() == [1, 0]


def test_a_list_of_files_is_refused_with_what_reads_several():
    for read in (read_history, scan_history):
        with pytest.raises(DataError, match=r"holds 'str'.*glob") as refused:
            read(["a.csv", "b.csv"])
        assert refused.value.kind == "bad_record"
    with pytest.raises(DataError, match="holds 'float', 'int'") as refused:
        read_history([1, 2.0])
    assert "glob" not in str(refused.value)
    with pytest.raises(DataError, match="holds nothing"):
        read_history([])
