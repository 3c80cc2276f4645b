"""`read_duels`: what a file holds, read in one pass, against the table it was written from."""

import json
from dataclasses import replace

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.readers.duels import comparison_rows

ITEMS = ("a", "b", "c")
LEFT, RIGHT, WON = "abcab", "bcabc", ["left", "tie", "right", "", "left"]
LAW = np.array([[5, 3, 2], [2, 5, 3], [1, 1, 8], [6, 2, 2], [3, 4, 3]]) / 10


def rows(stamps=None, **more):
    columns = {"left": LEFT, "right": RIGHT, "winner": WON}
    if stamps is not None:
        columns["tstamp"] = stamps
    columns |= more
    lines = [columns, *zip(*columns.values(), strict=True)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


def law_columns():
    return {f"p_{item}": LAW[:, i] for i, item in enumerate(ITEMS)}


def written(tmp_path, text, name="duels.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_law_of_the_slot_follows_the_rows_through_sorting_and_dropping(tmp_path):
    path = written(tmp_path, rows(stamps=[5, 4, 3, 2, 1], **law_columns()))
    log = bf.read_duels(path, missing="drop")
    kept = [4, 2, 1, 0]  # sorted by the stamp, the fourth row without a winner left out
    assert [log.items[i] for i in log.left] == [LEFT[i] for i in kept]
    assert [log.items[i] for i in log.right] == [RIGHT[i] for i in kept]
    np.testing.assert_allclose(log.selection_probability, LAW[kept])
    assert log.winner.tolist() == [1, 0, -1, 0]  # b, a (on the right), a tie, a
    assert (log.order, log.logged, log.n_skipped) == ("tstamp", "full", 1)
    as_they_stand = bf.read_duels(path, missing="drop", order=False)
    assert [as_they_stand.items[i] for i in as_they_stand.left] == [LEFT[i] for i in (0, 1, 2, 4)]
    assert as_they_stand.order is None


def test_probabilities_of_left_items_are_used_where_no_law_is_there(tmp_path):
    p = LAW[np.arange(5), [ITEMS.index(i) for i in LEFT]]
    path = written(tmp_path, rows(propensity=p))
    log = bf.read_duels(path, missing="drop")
    assert log.logged == "chosen"
    np.testing.assert_allclose(log.propensity, p[[0, 1, 2, 4]])
    assert bf.read_duels(path, missing="drop", propensity=False).logged == "windows"
    both = written(tmp_path, rows(propensity=p, **law_columns()), "both.csv")
    assert bf.read_duels(both, missing="drop").logged == "full"
    assert bf.read_duels(both, missing="drop", probabilities=False).logged == "chosen"
    assert bf.read_duels(both, missing="drop", propensity="propensity").logged == "chosen"
    with pytest.raises(bf.OptionError, match="leave propensity= out") as error:
        bf.read_duels(both, missing="drop", propensity="propensity", probabilities="p_{item}")
    assert error.value.kind == "unused_option"


def test_a_file_and_the_arrays_it_was_written_from_give_the_same_audit(tmp_path):
    run = bf.simulate_duels(bf.policies.FairSDDTS(C=3), {"a": 3, "b": 2, "c": 1}, 120, seed=4)
    played = run.left != run.right
    names = np.array(run.items, dtype=object)
    table = {
        "left": names[run.left], "right": names[run.right],
        "winner": np.where(run.winner == run.left, "left", "right"),
    }  # fmt: skip
    table |= {f"p_{item}": run.selection_probability[:, i] for i, item in enumerate(run.items)}
    records = [
        {key: values[t] for key, values in table.items()} for t in np.flatnonzero(played).tolist()
    ]
    path = written(tmp_path, "\n".join(json.dumps(r) for r in records), "run.jsonl")
    log = bf.read_duels(path)
    duels = replace(bf.read_duels(path, probabilities=False).comparisons, notices=())
    law = run.selection_probability[played]
    found = bf.audit_comparisons(log, seed=1, draws=400).to_dict()
    expected = bf.audit_comparisons(duels, selection_probability=law, seed=1, draws=400).to_dict()
    assert found == expected
    assert found["log"]["selection"] == "full"


def test_the_source_is_opened_once(tmp_path, monkeypatch):
    opened = []
    real = comparison_rows.open_source
    monkeypatch.setattr(
        comparison_rows, "open_source", lambda *a, **k: opened.append(a[0]) or real(*a, **k)
    )
    path = written(tmp_path, rows(stamps=[1, 2, 3, 4, 5], **law_columns()))
    bf.read_duels(path, missing="drop")
    assert opened == [path]


@pytest.mark.parametrize(
    ("text", "options", "error", "words", "kind"),
    [
        (rows(p_a=[1] * 5), {}, bf.DataError, "no column 'p_b', 'p_c'", "missing_column"),
        (rows(), {"propensity": "q"}, bf.DataError, "no column 'q'", None),
        (rows(), {"probabilities": "law"}, bf.OptionError, "write {item}", "bad_value"),
        (rows(q_a=[1] * 5), {"probabilities": "q_{item}"}, bf.DataError, "'q_b'", "missing_column"),
        (rows(p_a=LAW[:, 0], p_b=LAW[:, 1], p_c=["x"] * 5), {}, bf.DataError, "column 'p_c'", None),
        (rows(p_a=[0.9] * 5, p_b=[0.9] * 5, p_c=[0] * 5), {}, bf.ProbabilityError, "sum to 1.8",
         "probability_sum"),
        ("left,right,wins\na,b,3\n", {}, bf.OptionError, "no usual set", "unknown_columns"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, text, options, error, words, kind):
    path = written(tmp_path, text)
    with pytest.raises(error) as found:
        bf.read_duels(path, missing="drop", **options)
    assert words in str(found.value)
    assert kind is None or found.value.kind == kind


def test_ballots_hold_no_duels_and_a_missing_file_is_missing(tmp_path):
    written(tmp_path, "1: 1,2\n", "x.soc")
    with pytest.raises(bf.OptionError, match=r"x\.soc holds rankings"):
        bf.read_duels(tmp_path / "x.soc")
    with pytest.raises(bf.DataError, match=r"none\.soc") as error:
        bf.read_duels(tmp_path / "none.soc")
    assert "rankings" not in str(error.value)


def test_a_log_says_what_does_not_fit():
    duels = bf.Comparisons.from_duels(["a", "b"], ["b", "a"], ["left", "left"], keep_rows=True)
    make = bf.DuelLog.from_comparisons
    for options, kind in (
        ({"selection_probability": np.ones((3, 2)) / 2}, "shape"),
        ({"propensity": [0.5]}, "shape"),
        ({"propensity": [0.5, 0.5], "slot": "mean"}, "options_exclude"),
        ({"offered": [[1, 2], [1, 1]]}, "offered"),
        ({"pair_probability": [[0, 2], [-1, 0]]}, "probability"),
    ):
        with pytest.raises(bf.BayesfairError) as error:
            make(duels, **options)
        assert error.value.kind == kind
    log = make(duels, pair_probability=[[0, 0.25], [0.75, 0]])
    np.testing.assert_allclose(log.selection_probability, [[0.25, 0.75]] * 2)
    np.testing.assert_allclose(log.pair_propensity, [0.25, 0.75])
    # P* = 2/3, 1/3 with worths by label, in whatever order they are named
    np.testing.assert_allclose(log.fairness_regret({"b": 1, "a": 2}), [2 / 3 - 0.25] * 2)
    with pytest.raises(ValueError, match="read-only"):
        log.selection_probability[0] = 1


def test_columns_that_nobody_asked_for_are_no_fault_and_are_watched(tmp_path):
    record = {"left": "a", "right": "b", "winner": "left", "turns": [{"role": "user"}], "size": 1.5}
    backwards = [record | {"made_at": f"2026-03-{20 - t:02d}"} for t in range(5)]
    text = "\n".join(map(json.dumps, [r | {"made_at": "2026-03-01"} for r in backwards]))
    assert bf.read_duels(written(tmp_path, text, "x.jsonl")).n_rounds == 5
    text = "\n".join(map(json.dumps, backwards))
    with pytest.raises(bf.DataError, match="made_at") as error:
        bf.read_duels(written(tmp_path, text, "y.jsonl"))
    assert error.value.kind == "order"


def test_a_log_is_fitted_as_its_duels_are():
    run = bf.simulate_duels(bf.policies.FairSDDTS(C=3), {"a": 3, "b": 2, "c": 1}, 100, seed=2)
    one, other = (bf.fit(data, seed=1, draws=400) for data in (run, run.comparisons))
    np.testing.assert_array_equal(one["posterior"]["worth"], other["posterior"]["worth"])
