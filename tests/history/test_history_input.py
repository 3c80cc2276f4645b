"""What `History` takes as arms and as columns: two readings, or none, are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from bayesfair.errors import ArmError, DataError, ProbabilityError
from bayesfair.history import History

NAN = float("nan")


@pytest.mark.parametrize(
    "arm",
    [
        ["a", None, "b"],
        ["a", NAN, "b"],
        [1, None, 2],
        np.array([1.0, NAN, 0.0]),
        np.array(["a", None, "b"], dtype=object),
        pd.Series(["a", pd.NA, "b"]),
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Categorical(["a", None, "b"]),
        pa.array(["a", None, "b"]),
        ["a", pd.NaT, "b"],
    ],
    ids=lambda arm: type(arm).__name__,
)
def test_a_missing_arm_is_no_label(arm):
    with pytest.raises(ArmError, match=r"round 1 of memory: the arm is missing \(1 such round\)"):
        History(arm, [1, 0, 1])


def test_words_for_missing_are_labels_only_if_they_are_named():
    words = ["None", "nan", "NA"]
    assert History(words, [1, 0, 1], arms=sorted(words)).arms == ("NA", "None", "nan")
    with pytest.raises(ArmError, match=r"round 0 of memory: 'None' spells a missing arm.*arms="):
        History(words, [1, 0, 1])


def test_bytes_are_text_or_refused():
    assert History(np.array([b"b", b"a"]), [1, 0]).arms == ("a", "b")
    with pytest.raises(ArmError, match=r"round 1 of memory: the arm b'.xff' is not UTF-8"):
        History(np.array([b"a", b"\xff"]), [1, 0])


@pytest.mark.parametrize("given", [list, tuple], ids=["list", "tuple"])
def test_a_list_of_numbers_and_texts_has_the_labels_of_the_same_values_in_a_series(given):
    for values, arms, codes in (
        ([1, 1.0, "1", 2], ("1", "2"), [0, 0, 0, 1]),
        ([-0.0, 0.0, "0", 0], ("0",), [0, 0, 0, 0]),
        ([b"a", "a", 0.5, "b"], ("0.5", "a", "b"), [1, 1, 0, 2]),
        (["7.0", 7, 7.0, "x"], ("7", "x"), [0, 0, 0, 1]),
    ):
        for arm in (given(values), pd.Series(values, dtype=object)):
            log = History(arm, [1, 0, 1, 0])
            assert log.arms == arms
            assert log.arm.tolist() == codes
    with pytest.raises(ArmError, match=r"round 1 of memory: the arm b'.xff' is not UTF-8"):
        History(given(["a", b"\xff"]), [1, 0])


# -- labels or positions ---------------------------------------------------------------------------


def test_integers_that_are_labels_and_positions_are_refused():
    with pytest.raises(ArmError, match=r"round 0 .*arm 1 may be the label '1' or the position of "):
        History([1, 2, 1], [1, 0, 1], arms=["1", "2", "3"])
    with pytest.raises(ArmError, match=r"round 2 .*arm 1 may be .* position of '2' .*int32"):
        History(np.array([0, 0, 1]), [1, 0, 1], arms=["0", "2", "1"])


def test_integers_with_one_meaning_are_taken():
    numbers = ["1", "2", "3"]
    assert History(["1", "2", "1"], [1, 0, 1], arms=numbers).arm.tolist() == [0, 1, 0]
    assert History([1, 2, 1], [1, 0, 1], arms=[1, 2, 3]).arm.tolist() == [0, 1, 0]
    assert History([1, 2, 1], [1, 0, 1], arms=["0", "1", "2"]).arm.tolist() == [1, 2, 1]
    assert History([1, 2, 1], [1, 0, 1], arms=["a", "b", "c"]).arm.tolist() == [1, 2, 1]
    # 0 is no label, so these are positions
    assert History([0, 2, 1], [1, 0, 1], arms=numbers).arm.tolist() == [0, 2, 1]
    with pytest.raises(ArmError, match=r"round 2 .*arm 3 is not a position.*give them as text"):
        History([1, 2, 3], [1, 0, 1], arms=numbers)


@pytest.mark.parametrize(
    ("values", "arms"),
    [
        ([1.0, 2.0, 1.0, 2.0], ("1", "2")),
        ([1, 2, 1, 2], ("1", "2")),
        (np.array([7, 10, 10, 7], dtype=np.uint8), ("7", "10")),
        (pd.Series([2, 9, 9, 9]), ("2", "9")),
        (pd.Series([3, 1, 1, 3], dtype="Int64"), ("1", "3")),
        ([10**12, 5, 5, 5], ("5", "1000000000000")),
        ([0.0, 2.0, 0.0, 2.0], ("0", "2")),
    ],
)
def test_numbers_that_do_not_count_from_0_are_labels_and_no_arm_is_invented(values, arms):
    log = History(values, [1, 0, 1, 0])
    assert (log.arms, log.notices) == (arms, ())
    as_text = History([f"{value:g}" if value < 1e6 else str(value) for value in values], log.reward)
    assert (as_text.arms, as_text.arm.tolist()) == (log.arms, log.arm.tolist())


def test_positions_stay_positions_and_one_that_no_round_chose_is_said():
    whole = History([1, 0, 2], [1, 0, 1])
    assert (whole.arms, whole.arm.tolist(), whole.notices) == (("0", "1", "2"), [1, 0, 2], ())
    gap = History([0, 2, 0], [1, 0, 1])
    again = History(History(["b", "b"], [1, 0], arms=["a", "b"]).arm, [1, 0])
    for log, arms, never in ((gap, ("0", "1", "2"), "'1'"), (again, ("0", "1"), "'0'")):
        assert log.arms == arms
        (notice,) = log.notices
        assert (notice.kind, notice.n) == ("arms_never_chosen", 1)
        assert f"no round chose {never}" in notice


def test_positions_in_columns_without_names_that_may_count_from_1_are_asked_about():
    pi = [[0.2, 0.3, 0.5]] * 2
    with pytest.raises(ArmError, match=r"column 2 of 3 .* column 1 .*int32.*arms=") as info:
        History([2, 1], [1, 0], selection_probability=pi)
    assert (info.value.kind, info.value.value) == ("positions_from_one", 1)
    for arm, arms in ((np.array([2, 1], np.int32), None), ([2, 1], [*"012"]), ([2, 0], None)):
        log = History(arm, [1, 0], selection_probability=pi, arms=arms)
        assert (log.arms, log.arm.tolist(), log.notices) == (("0", "1", "2"), list(arm), ())
    with pytest.raises(ArmError, match="count from 1"):
        History([1, 3], [1, 0], selection_probability=pi)


def test_a_history_can_be_made_anew_from_its_own_columns():
    first = History(["2", "3", "2"], [1, 0, 1], arms=["1", "2", "3"])
    again = History(first.arm, first.reward, arms=first.arms)
    assert again.arm.tolist() == [1, 2, 1]


# -- columns by name -------------------------------------------------------------------------------

NAMED = pd.DataFrame({"b": [0.9, 0.8], "a": [0.1, 0.2]})


def _polars(frame):
    return polars.from_pandas(frame)


FRAMES = [lambda f: f, _polars, lambda f: pa.Table.from_pandas(f, preserve_index=False)]


@pytest.mark.parametrize("make", FRAMES, ids=["pandas", "polars", "arrow"])
def test_columns_of_a_frame_go_by_their_names(make):
    frame = make(NAMED)
    history = History(["a", "b"], [1, 0], selection_probability=frame, arms=["a", "b"])
    assert history.selection_probability.tolist() == [[0.1, 0.9], [0.2, 0.8]]
    by_position = History([0, 1], [1, 0], selection_probability=frame, arms=["a", "b"])
    assert by_position.selection_probability.tolist() == [[0.1, 0.9], [0.2, 0.8]]
    discovered = History(["a", "a"], [1, 0], selection_probability=frame)
    assert discovered.arms == ("b", "a") and discovered.arm.tolist() == [1, 1]
    for arms in (["a", "c"], ()):
        with pytest.raises(DataError, match=r"columns of selection_probability are 'b', 'a', but"):
            History(["a", "c"], [1, 0], selection_probability=frame, arms=arms)


def test_numbered_columns_of_a_frame_are_positions():
    frame = pd.DataFrame(NAMED.to_numpy())
    history = History(["a", "b"], [1, 0], selection_probability=frame, arms=["b", "a"])
    assert history.selection_probability.tolist() == NAMED.to_numpy().tolist()


def test_offers_in_a_frame_go_by_their_names():
    on = pd.DataFrame({"b": [0, 1], "a": [1, 1]})
    assert History(["a", "b"], [1, 0], offered=on, arms=["a", "b"]).offered.tolist() == [
        [True, False],
        [True, True],
    ]
    pi = [[1.0, 0.0], [0.5, 0.5]]
    history = History(["a", "b"], [1, 0], selection_probability=pi, offered=on, arms=["a", "b"])
    np.testing.assert_array_equal(history.selection_probability, [[1, np.nan], [0.5, 0.5]])
    both = History(["a", "b"], [1, 0], selection_probability=NAMED[["a", "b"]], offered=on * 0 + 1)
    assert both.arms == ("a", "b")


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ([0.51, 0.51], False),  # 1.02: two roundings to two decimals move a sum by .01 at most
        ([0.5, 0.51], True),
        ([0.34, 0.33, 0.345], False),  # three decimals are seen: .0015
        ([0.334, 0.333, 0.3345], False),
        ([0.334, 0.333, 0.334], True),
        ([0.0] * 2 + [0.11] * 5 + [0.16] * 3, True),  # 1.03 with ten arms
        ([0.0] * 2 + [0.11] * 5 + [0.17] * 3, False),  # 1.06
    ],
)
def test_a_row_may_miss_1_by_what_rounding_can_cause(row, fits):
    """Half a unit of the last decimal for each arm, and no more."""
    pi, arm = np.array([row]), np.array([len(row) - 1], np.int32)
    if fits:
        assert History(arm, [1], selection_probability=pi).repairs.n_rescaled == 1
        return
    with pytest.raises(ProbabilityError, match="expected 1") as caught:
        History(arm, [1], selection_probability=pi)
    assert caught.value.kind == "row_sum" and caught.value.value == pytest.approx(sum(row))


def test_arms_that_are_not_on_offer_round_nothing():
    pi = np.array([[0.5, 0.49, NAN], [0.33, 0.33, 0.33]])  # .01 for two arms, .015 for three
    assert History([0, 0], [1, 1], selection_probability=pi).repairs.n_rescaled == 2
    pi[0] = [0.5, 0.485, NAN]  # three decimals are seen now
    with pytest.raises(ProbabilityError, match=r"round 0 .* sum to 0.985"):
        History([0, 0], [1, 1], selection_probability=pi)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_log_does_not_change_with_the_arrays_it_was_made_of(read_only):
    # a view that cannot be written to changes with what it is a view of
    held = {
        "reward": np.array([1.0, 0.0, 1.0]),
        "selection_probability": np.full((3, 2), 0.5),
        "known_at": np.array([2, 3, 3]),
        "row": np.array([2, 3, 4]),
    }
    given = {name: values[:] for name, values in held.items()}
    for values in given.values():
        values.flags.writeable = not read_only
    log = History([0, 1, 0], arms=("a", "b"), **given)
    before = {name: np.array(getattr(log, name)) for name in held}
    for values in held.values():
        values[0] = 0
    for name, values in before.items():
        np.testing.assert_array_equal(getattr(log, name), values)
        assert not getattr(log, name).flags.writeable, name
