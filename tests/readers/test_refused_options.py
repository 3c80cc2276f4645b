"""Options and paths that cannot be meant are refused by a message, never by a traceback."""

from __future__ import annotations

import os
import re

import numpy as np
import pandas as pd
import pytest

from bayesfair.errors import ArmError, BayesfairError, DataError, OptionError
from bayesfair.history import History
from bayesfair.readers import read_history, scan_history

FRAME = pd.DataFrame(
    {"arm": ["a", "b", "a"], "reward": [1, 0, 1], "p_a": [0.5] * 3, "p_b": [0.5] * 3}
)
NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arms": 3}, "arms=3 must be a list of labels"),
        ({"arms": {"a"}}, "must be a list of labels, in the order"),
        ({"probability_tolerance": "x"}, "probability_tolerance='x' must be a number in [0, 0.5]"),
        ({"probability_tolerance": -1}, "in [0, 0.5]"),
        ({"probability_tolerance": 0.6}, "in [0, 0.5]"),
        ({"offered_delimiter": ""}, "offered_delimiter='' must be text, such as"),
    ],
)
@pytest.mark.parametrize("reader", [read_history, scan_history])
def test_options_name_what_is_allowed(reader, options, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        reader(FRAME, **options)


@pytest.mark.parametrize("size", ["x", 0, -1, 1.5, True])
def test_chunk_rounds_is_a_positive_whole_number(size):
    with pytest.raises(OptionError, match="must be a whole number from 1 on"):
        scan_history(FRAME, chunk_rounds=size)
    assert scan_history(FRAME, chunk_rounds=np.int64(2)).chunk_rounds == 2


@pytest.mark.parametrize("delimiter", ["", '"', "\n", "\u2192", ";;", 3])
def test_delimiters_are_one_plain_character(tmp_path, delimiter):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward\na,1\n")
    with pytest.raises(OptionError, match="must be one character"):
        read_history(path, delimiter=delimiter)


# -- priors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "got"),
    [
        ({"a": "xx"}, "arm 'a' has 'xx'"),
        ({"b": (1, 2, 3)}, "arm 'b' has (1, 2, 3)"),
        ({"a": (-1, 2)}, "arm 'a' has (-1, 2)"),
        ({"b": (np.inf, 2)}, "arm 'b' has (inf, 2)"),
        ({"a": 1}, "arm 'a' has 1"),
        ("x", "got 'x'"),
        (3, "got 3"),
        ([(1, 2)], "got 1 pair"),
        ([(1, 2), (3, None)], "arm 'b' has (3, None)"),
    ],
)
def test_priors_that_are_none_name_the_arm_and_the_value(prior, got):
    with pytest.raises(DataError, match=re.escape(f"both numbers finite and >= 0; {got}.")):
        read_history(FRAME, prior=prior)
    with pytest.raises(DataError, match=re.escape(got)):
        History(["a", "b"], [1, 0], prior_counts=prior)


def test_priors_of_any_sequence_are_taken():
    for prior in ([(1, 2), (3, 4)], np.array([[1, 2], [3, 4]]), {"b": [3, 4], "a": (1, 2)}):
        assert read_history(FRAME, prior=prior).prior_counts.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ArmError, match="prior names 'z'"):
        read_history(FRAME, prior={"z": (1, 1)})


# -- offers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "offered",
    [
        [True],
        "x",
        3,
        [["a", "b"], ["a", "b"]],
        [[1, 2], [1, 1]],
        [[1, np.nan], [1, 1]],
        [[1], [1, 0]],
    ],
)
def test_offers_are_a_matrix_of_truths(offered):
    with pytest.raises(DataError, match=r"offered must be \(rounds, arms\)"):
        History(["a", "b"], [1, 0], offered=offered)


def test_offers_may_be_numbers():
    history = History(["a", "b"], [1, 0], offered=[[1.0, 0.0], [1.0, 1.0]])
    assert history.offered.tolist() == [[True, False], [True, True]]


# -- round numbers ---------------------------------------------------------------------------------

STAMPS = [1_700_000_000 + 60 * i for i in range(6)]


def _frame(**columns):
    return pd.DataFrame({"arm": list("ababab"), "reward": [1, 0] * 3, **columns})


def _both(frame, **options):
    yield lambda: read_history(frame, **options)
    yield lambda: list(scan_history(frame, chunk_rounds=2, **options).chunks())


def test_seconds_are_no_round_numbers():
    later = [s + 60 for s in STAMPS]
    for read in _both(_frame(timestamp=STAMPS, known_at=later)):
        with pytest.raises(
            DataError,
            match=r"row 1 .*'known_at': 1700000060 looks like .* 'timestamp'.*known_at=False",
        ):
            read()
    for read in _both(_frame(known_at=later)):
        with pytest.raises(DataError, match=r"row 1 .*1700000060 lies far beyond the \d rounds"):
            read()
    times = pd.to_datetime(STAMPS, unit="s")
    with pytest.raises(DataError, match="1700000060 lies far beyond the 6 rounds"):
        read_history(_frame(timestamp=times, known_at=later))
    tens = [10 * i for i in range(6)]
    with pytest.raises(DataError, match=r"row 2 .*15 looks like a value of 'timestamp'"):
        read_history(_frame(timestamp=tens, known_at=[t + 5 for t in tens]))


def test_round_numbers_beside_seconds_are_taken():
    known = [2, 3, 4, 5, 6, 9]
    assert read_history(_frame(timestamp=STAMPS, known_at=known)).known_at.tolist() == known
    parts = scan_history(_frame(timestamp=STAMPS, known_at=known), chunk_rounds=2).chunks()
    assert [p.known_at.tolist() for p in parts] == [[2, 3], [2, 3], [2, 5]]
    # round numbers in both columns
    known = [t + 3 for t in range(6)]
    assert read_history(_frame(timestamp=range(6), known_at=known)).known_at.tolist() == known


@pytest.mark.parametrize("value", [np.inf, 1e20, 1e30, -np.inf, -1e30])
def test_known_at_beyond_all_numbers_is_refused_without_a_warning(value):
    frame = _frame(known_at=[value, 2, 3, 4, 5, 6])
    with pytest.raises(DataError, match="row 1 of data frame, column 'known_at'"):
        read_history(frame)
    with pytest.raises(DataError, match="round 0 of memory: known_at is"):
        History(list("ab"), [1, 0], known_at=[value, 2])


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, 1e20])
def test_known_until_is_whole(value):
    frame = _frame(batch=[0, 0, value, 2, 2, 2])
    with pytest.raises(DataError, match="row 3 of data frame, column 'batch'"):
        read_history(frame, known_until="batch")


@pytest.mark.parametrize("value", [1.7, np.nan, None, 10**30, np.uint64(2**63)])
def test_histories_take_whole_round_numbers_only(value):
    with pytest.raises(DataError, match=r"round 1 of memory: known_at is .* whole number"):
        History(list("ab"), [1, 0], known_at=[1, value])
    with pytest.raises(DataError, match=r"round 1 of memory: known_until is .* whole number"):
        History(list("ab"), [1, 0], known_until=[0, value])


def test_histories_take_no_dates_and_no_complex_numbers():
    days = np.array(["2024-01-01", "2024-01-02"], "datetime64[D]")
    with pytest.raises(DataError, match=r"known_at of memory is not numeric: it holds datetime64"):
        History(list("ab"), [1, 0], known_at=days)
    with pytest.raises(DataError, match="reward of memory is not numeric: it holds complex128"):
        History(list("ab"), np.array([1j, 0]))


def test_known_until_names_the_round():
    with pytest.raises(DataError, match=r"round 2 .*known_until is 0\. It must not be below 0"):
        History(list("abab"), [1, 0, 1, 0], known_until=[0, 1, 0, 2])


# -- paths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a" * 300, r"\(300 characters\)' is no path"),
        ("a" * 300, "too long"),
        ("~nobody-of-that-name/x.csv", "is no path that can be opened .*home"),
        ("~nobody-of-that-name/*.csv", "is no path that can be opened .*home"),
        ("a\0b", "no such file"),
    ],
)
def test_impossible_paths(path, reason):
    with pytest.raises(BayesfairError, match=reason.replace(")' is", ").* is")):
        read_history(path)


@NOT_ROOT
def test_forbidden_files_and_folders(tmp_path):
    for folder, file in (("open", "x.csv"), ("shut", "x.csv")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text("arm,reward\na,1\n")
    (tmp_path / "open" / "x.csv").chmod(0)
    (tmp_path / "shut").chmod(0)
    try:
        for name in ("open/x.csv", "open", "shut/x.csv", "shut", "shut/*.csv", "."):
            with pytest.raises(DataError, match=r"(?i)permission.* permissions"):
                read_history(tmp_path / name)
    finally:
        (tmp_path / "shut").chmod(0o700)


def test_forbidden_paths_whoever_runs_the_tests(tmp_path, monkeypatch):
    def forbidden(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.is_file", forbidden)
    with pytest.raises(DataError, match=r"no permission to read .*log\.csv'; change its perm"):
        read_history(tmp_path / "log.csv")
