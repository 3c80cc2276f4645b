"""Labels given to `History` mean what they mean in a file."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest

from bayesfair.errors import ArmError, DataError
from bayesfair.history import History
from bayesfair.readers import read_history

SPELT = ["GPT 4", "GPT 4 ", "gpt 4", "Caf\u00e9", "Cafe\u0301", "org1/x", "org2/x", "001", "2"]


def test_case_045_in_memory_and_from_a_file_alike(tmp_path):
    """Trim and NFC merge, with a notice; case is only warned about; ids are never shortened."""
    path = tmp_path / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["arm", "reward"], *[[arm, 1] for arm in SPELT]])
    read = read_history(path)
    made = History(SPELT, np.ones(len(SPELT)))
    assert made.arms == read.arms == (
        "001", "2", "Caf\u00e9", "GPT 4", "gpt 4", "org1/x", "org2/x",
    )  # fmt: skip
    np.testing.assert_array_equal(made.arm, read.arm)
    assert set(made.notices) <= set(read.notices)
    assert "'GPT 4', 'GPT 4 ' read as 'GPT 4'" in made.notices[0]
    assert "differ only in case were kept apart: 'GPT 4', 'gpt 4'" in made.notices[1]


def test_declared_arms_columns_and_priors_are_cleaned_alike():
    pi = pd.DataFrame({" b ": [0.5], "Cafe\u0301": [0.5]})
    prior = {"b ": (1, 2)}
    history = History(["b"], [1], arms=["Caf\u00e9", " b"], selection_probability=pi,
                      prior_counts=prior)  # fmt: skip
    assert history.arms == ("Caf\u00e9", "b")
    assert history.prior_counts.tolist() == [[0, 0], [1, 2]]
    with pytest.raises(ArmError, match=r"arms names 'b' more than once, as 'b' and as 'b ',"):
        History(["b"], [1], arms=["b", "b "])
    with pytest.raises(ArmError, match="prior names 'b' more than once, as 'b' and as 'b ',"):
        History(["b"], [1], prior_counts={"b": (1, 0), "b ": (0, 1)})


@pytest.mark.parametrize("blank", ["", " ", "\u00a0\t"])
def test_an_empty_label_is_a_missing_arm(blank):
    with pytest.raises(ArmError, match=r"round 1 of memory: the arm is missing \(2 such rounds\)"):
        History(["a", blank, blank], [1, 0, 1])
    with pytest.raises(ArmError, match=r"arms holds .*, a missing label"):
        History(["a"], [1], arms=["a", blank])


@pytest.mark.parametrize("twin", ["a\u200b", "\ufeffa", "\uff41", "A"])
def test_labels_that_look_alike_are_kept_apart_and_named(twin, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(f"arm,reward\na,1\n{twin},0\n", encoding="utf-8")
    for history in (History(["a", twin], [1, 0]), read_history(path)):
        assert set(history.arms) == {"a", twin}
        (found,) = [n for n in history.notices if "were kept apart" in n]
        assert ascii(twin) in found and "give them one spelling" in found


def test_numbers_among_labels_are_written_as_readers_write_them():
    mixed = pd.Series([1, 2.0, "x", 0.5], dtype=object)
    assert History(mixed, [1, 0, 1, 0]).arms == ("0.5", "1", "2", "x")
    assert History([0.5, 1.0], [1, 0]).arms == ("0.5", "1")


def test_a_value_that_is_no_number_is_named_with_its_round():
    with pytest.raises(DataError, match=r"reward of round 1 of memory is 'True', which is no"):
        History(["a", "b"], ["1", "True"])
    with pytest.raises(DataError, match=r"propensity of round 0 of memory is 'half'"):
        History(["a", "b"], [1, 0], propensity=["half", 0.5])
    with pytest.raises(DataError, match="arm must be one value per round, got None"):
        History(None, [1])
