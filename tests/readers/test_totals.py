"""Tables of totals are no log of choices."""

import pytest

import bayesfair as bf

TOTALS = {"arm": ["a", "b", "c"], "trials": [100, 200, 300], "reward": [30, 40, 90]}


@pytest.mark.parametrize("name", ["trials", "N", "Impressions", "n_trials", "total_views"])
@pytest.mark.parametrize("read", [bf.read_history, bf.scan_history])
def test_totals_are_refused_with_their_first_row(tmp_path, read, name):
    path = tmp_path / "log.csv"
    path.write_text(f"day,arm,{name},clicks\n1,a,100,10\n1,b,200,12\n2,a,100,9\n2,b,200,14\n")
    with pytest.raises(bf.DataError) as refused:
        read(path, reward="clicks")
    found = refused.value
    assert (found.kind, found.row, found.column, found.value) == ("totals", 2, name, 100)
    log = read(path, reward="clicks", round=False)  # each row is a decision all the same
    parts = list(log.chunks()) if read is bf.scan_history else [log]
    assert [x for part in parts for x in part.reward.tolist()] == [10, 12, 9, 14]


@pytest.mark.parametrize(
    "change",
    [{"reward": [1, 0, 1]}, {"trials": [100, 20, 300]}, {"reward": [30, 40.5, 90]},
     {"trials": [100, 200.5, 300]}, {"trials": ["x", "y", "z"]}],
)  # fmt: skip
def test_what_need_not_be_totals_is_read(change):
    assert bf.read_history(TOTALS | change).n_rounds == 3


def test_a_column_that_has_a_part_is_no_count_of_trials():
    assert bf.read_history(TOTALS, context="trials").n_rounds == 3
    renamed = {"age" if name == "trials" else name: values for name, values in TOTALS.items()}
    assert bf.read_history(renamed).n_rounds == 3
