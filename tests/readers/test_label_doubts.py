"""Labels that may be one in two spellings, or none at all, are refused unless they are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.base.notices import Notice
from bayesfair.errors import ArmError

WORDS = ["nan", "None", "NULL", "NaT", "<NA>", "NA", "n/a", "\\N"]
PAIRS = [("01", "1"), ("1.50", "1.5"), ("1e3", "1000")]


def _log(folder, labels):
    path = folder / "log.csv"
    path.write_text("arm,reward\n" + "".join(f"{label},1\n" for label in ["a", *labels]))
    return path


@pytest.mark.parametrize("read", [bf.read_history, bf.scan_history], ids=["read", "scan"])
def test_a_whole_number_is_one_arm_with_and_without_its_point(tmp_path, read):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,p_1.0,p_2\n1,1,.5,.5\n1.0,0,.25,.75\n2,1,.5,.5\n2.00,0,.5,.5\n")
    log = read(path)
    log = next(log.chunks()) if hasattr(log, "chunks") else log
    assert log.arms == ("1", "2") and log.arm.tolist() == [0, 0, 1, 1]
    found = read(path, probabilities=False)
    assert found.arms == ("1", "2") and read(path, arms=[2.0, "1"]).arms == ("2", "1")
    frame = pd.DataFrame({"arm": [1.0, np.nan, 2], "reward": [1, 0, 1], "p_1": 0.5, "p_2": 0.5})
    assert bf.read_history(frame, missing="drop").arm.tolist() == [0, 1]


def test_merged_numbers_are_said(tmp_path):
    notices = bf.read_history(_log(tmp_path, ["1", "1.0"])).notices
    assert any(Notice.of(n).kind == "merged_spellings" and "'1', '1.0'" in n for n in notices)


@pytest.mark.parametrize("word", WORDS)
def test_words_for_missing_are_refused_with_their_row_unless_named(tmp_path, word):
    path = _log(tmp_path, ["b", word])
    for read in (bf.read_history, bf.scan_history):
        with pytest.raises(ArmError, match=r"row 4 of log.csv, column 'arm'.*arms=") as caught:
            read(path)
        assert (caught.value.kind, caught.value.value) == ("label_like_missing", word)
        assert read(path, arms=["a", "b", word]).arms == ("a", "b", word)
    with pytest.raises(ArmError, match="round 1"):
        bf.History(["a", word], [1, 0])
    with pytest.raises(ArmError, match="missing item"):
        bf.Comparisons.from_duels(["a", word], ["b", "b"], ["left"] * 2)
    assert bf.Comparisons.from_duels(["a"], [word], ["left"], items=["a", word]).items[1] == word


@pytest.mark.parametrize("pair", PAIRS)
def test_one_number_in_two_spellings_is_refused_with_both_rows_unless_named(tmp_path, pair):
    path = _log(tmp_path, pair)
    for read in (bf.read_history, bf.scan_history):
        with pytest.raises(ArmError, match=r"row 3 of log.csv.*row 4 of log.csv.*arms=") as caught:
            read(path)
        assert caught.value.kind == "labels_alike" and set(caught.value.value) == set(pair)
        kept = read(path, arms=["a", *pair])
        assert kept.arms == ("a", *pair)
    kinds = [Notice.of(n).kind for n in bf.read_history(path, arms=["a", *pair]).notices]
    assert kinds == ["labels_alike"]


def test_groups_have_names(tmp_path):
    path = tmp_path / "log.csv"
    for groups, kind in ((["x", "NA"], "label_like_missing"), (["1", "01"], "labels_alike")):
        rows = "".join(f"{g},{a},1\n" for g in groups for a in "ab")
        path.write_text("city,arm,reward\n" + rows)
        for read in (bf.read_history, bf.scan_history):
            with pytest.raises(ArmError, match=r"row 4 of log\.csv, column 'city'") as caught:
                read(path, by="city")
            assert caught.value.kind == kind


@pytest.mark.parametrize(
    "labels", [["1", "2", "10"], ["9007199254740993", "9007199254740992"], ["none here", "Nana"]]
)
def test_numbers_that_differ_and_other_words_raise_no_doubt(labels):
    assert bf.History(labels, [1] * len(labels)).notices == ()
