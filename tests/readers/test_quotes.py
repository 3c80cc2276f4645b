"""Quotes of delimited text, held against Python's own strict reader."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayesfair.errors import DataError
from bayesfair.readers import read_history, scan_history
from bayesfair.readers.files.quotes import QuoteWatch, misquoted


def _strict(text: str) -> bool:
    """Whether Python's strict reader takes the text."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return False
    return True


def _watched(data: bytes, size: int) -> QuoteWatch:
    """What has seen the bytes, `size` at a time."""
    watch = QuoteWatch(",")
    for start in range(0, len(data), size):
        watch.look(data[start : start + size])
    watch.finish()
    return watch


def _blank_matters(text: str) -> bool:
    """Whether quotes mean something else once blanks behind a delimiter are skipped."""
    try:
        rows, skipped = (
            [
                [re.sub("^ +", "", field) for field in row]
                for row in csv.reader(io.StringIO(text, newline=""), strict=True,
                                      skipinitialspace=skip)
            ]
            for skip in (False, True)
        )  # fmt: skip
    except csv.Error:
        return True
    return rows != skipped


@given(
    st.lists(st.sampled_from(['"', ",", "\n", "\r\n", "a", " "]), max_size=30), st.integers(1, 9)
)
@example(list('a,"b\n1,"",x\n'), 2)
@example(list('"a""b",c\n"'), 4)
@example(list('a, "b"\n'), 3)
@example(list('" ""a""",b"c\n'), 3)
def test_every_mistake_is_suspect_however_the_text_is_cut(pieces, size):
    text = "".join(pieces)
    data = text.encode()
    for begin in (b"", b"\xef\xbb\xbf"):
        watch = _watched(begin + data, size)
        found = misquoted(io.BytesIO(begin + data), ",")
        assert (found is not None and found.kind != "blank") == (not _strict(text)) or (
            found is not None and found.kind == "blank" and _blank_matters(text)
        )
        assert watch.suspect or found is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('a, "b"\n', "blank"),
        ('a,b\nc, "d, e",f\n', "blank"),
        ('" ""a""",b"c\n', None),  # a quoted field that begins so, and a quote as text
        ('a,"b\n1,"",x\n', "open"),
        ('a,"b"c\n', "behind"),
    ],
)
def test_kinds_of_mistakes(text, kind):
    found = misquoted(io.BytesIO(text.encode()), ",")
    assert (found.kind if found else None) == kind


@given(
    st.lists(
        st.lists(st.text(st.sampled_from('",\nab '), max_size=5), min_size=2, max_size=2),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 9),
)
def test_what_a_csv_writer_quotes_is_never_suspect(rows, size):
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows(rows)
    assert not _watched(buffer.getvalue().encode(), size).suspect


def test_quotes_inside_a_plain_field_are_text(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('reward,arm\n1,12" pipe\n0,plain\n')
    history = read_history(path)
    assert history.arms == ('12" pipe', "plain") and history.n_rounds == 2


def test_a_long_field_beside_a_stray_quote_is_no_mistake(tmp_path):
    """Python's reader takes 131072 characters per field, unless told otherwise."""
    before = csv.field_size_limit()
    path = tmp_path / "log.csv"
    path.write_text(f'reward,note,arm\n1,5" pipe,a\n0,{"x" * 200_000},b\n')
    assert read_history(path).arms == ("a", "b")
    path.write_text(f'reward,note,arm\n1,5" pipe,a\n0,{"x" * 200_000},"b\n')
    with pytest.raises(DataError, match=r"row 3 of log.csv opens a double quote"):
        read_history(path)
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("blank", [" ", "\t"])
def test_a_blank_behind_the_last_quote_is_shown(blank):
    found = misquoted(io.BytesIO(f'a,b\n1,"x"{blank}\r\n'.encode()), ",")
    assert found == (2, "behind", f'1,"x"{blank}')


def test_an_open_quote_late_in_a_long_file_is_named_by_its_row(tmp_path):
    """Beyond one block of the reader, with quoted rows before it."""
    n = 450_000
    path = tmp_path / "long.csv"
    path.write_text("reward,note,arm\n" + '1,"a, b",north east\n' * n + '0,x,"south\n')
    assert path.stat().st_size > 1 << 23
    with pytest.raises(DataError, match=rf"row {n + 2} of long.csv opens a double quote"):
        read_history(path)
    with pytest.raises(DataError, match=rf"row {n + 2} of long.csv opens a double quote"):
        list(scan_history(path).chunks())
