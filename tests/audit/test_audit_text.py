"""The report on terminals of any width, and with labels of any kind."""

from __future__ import annotations

import numpy as np
import pytest
from rich.cells import cell_len

import bayesfair as bf
from bayesfair import examples
from bayesfair.errors import OptionError


@pytest.fixture
def report(monkeypatch):
    def made(log, width=None, **options):
        if width is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(width))
        return str(bf.audit(log, seed=1, **options))

    return made


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("by", [False, True])
def test_no_line_is_longer_than_the_terminal_and_no_word_is_lost(report, width, by):
    log = bf.read_history(examples.path("ecmo"))
    logs = {"1": log, "2": log} if by else log
    narrow, whole = report(logs, width, eps1=1, eps2=0), report(logs, eps1=1, eps2=0)
    prose = [line for line in narrow.splitlines() if line[2:7] not in ("group", "-----")]
    prose = [line for line in prose if not line.strip().endswith(" -")]  # the rows of groups
    assert max(map(len, prose)) <= width
    assert narrow.split() == whole.split()
    if width == 200:
        assert narrow == whole


def test_wide_letters_count_as_two_columns(report):
    arms = ["\u63a8\u8350" * 10, "\u304a\u3059" * 10]
    log = bf.History([0, 1] * 20, [1, 0] * 20, np.tile([0.9, 0.1], (40, 1)), arms=arms)
    lines = report(log, 80, eps1=0, eps2=0).splitlines()
    named = [line for line in lines if any(arm in line for arm in arms)]
    prose = [line for line in named if "0." not in line]  # no row of the table
    assert len(prose) >= 2  # the sentence on the worst round, broken between its two labels
    assert max(map(cell_len, prose)) <= 80 < sum(map(cell_len, prose))


def test_labels_cannot_break_the_table(report):
    arms = ["two\nlines", "\x1b[31mred", "Caf\u00e9", "x" * 200]
    log = bf.History([0, 1, 2, 3], [1, 0, 1, 0], np.full((4, 4), 0.25), arms=arms)
    text = report(log)
    assert "two\\nlines" in text and "\\x1b[31mred" in text and "Caf\u00e9" in text
    assert "\x1b" not in text and "x" * 41 not in text
    assert [a["arm"] for a in bf.audit(log, seed=1).to_dict()["arms"]] == arms


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 2.5}, "draws=2.5 must be a whole number"),
        ({"truth": [0.5, 0.5]}, r"truth=\[0.5, 0.5\] must be the true reward laws"),
    ],
)
def test_options_of_the_wrong_kind_are_refused_by_name(options, message):
    log = bf.read_history(examples.path("ecmo"))
    with pytest.raises(OptionError, match=message):
        bf.audit(log, seed=1, **options)
