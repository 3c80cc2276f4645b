"""Groups by several columns are those of a column that was joined by hand, and no two share one."""

import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.errors import BayesfairError, DataError
from bayesfair.readers.files.joined import joined_label

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({
    "arm": RNG.choice(["a", "b"], 60), "reward": RNG.integers(0, 2, 60), "p_a": 0.5, "p_b": 0.5,
    "device": RNG.choice(["phone", "desk"], 60), "year": RNG.choice([2024, 2025], 60),
})  # fmt: skip
READERS = pytest.mark.parametrize("read", [bf.read_history, bf.scan_history])


def whole(log):
    return next(log.chunks()) if hasattr(log, "chunks") else log


@READERS
@pytest.mark.parametrize("form", ["frame", "csv", "parquet", "jsonl"])
def test_each_combination_is_a_log(tmp_path, read, form):
    source = FRAME if form == "frame" else tmp_path / f"log.{form}"
    if form == "csv":
        FRAME.to_csv(source, index=False)
    elif form == "parquet":
        FRAME.to_parquet(source)
    elif form == "jsonl":
        FRAME.to_json(source, orient="records", lines=True)
    logs = read(source, by=["device", "year"])
    expected = dict(list(FRAME.groupby(["device", "year"])))
    assert set(logs) == {f"{device}, {year}" for device, year in expected}
    for (device, year), rows in expected.items():
        log = whole(logs[f"{device}, {year}"])
        assert log.reward.tolist() == rows["reward"].tolist()
        assert [log.arms[a] for a in log.arm] == rows["arm"].tolist()
        assert log.unused_columns == ()


def test_no_two_combinations_share_a_label():
    words = ["a", "b", "a, b", 'a", "b', '"a', ", ", "a,"]
    pairs = [(x, y) for x in words for y in words]
    assert len({joined_label(pair) for pair in pairs}) == len(pairs)


def test_one_name_in_a_list_is_that_column_and_a_missing_label_is_named():
    one, listed = (bf.read_history(FRAME, by=by) for by in ("device", ["device"]))
    assert list(one) == list(listed) == ["desk", "phone"]
    with pytest.raises(DataError, match="'land'"):
        bf.read_history(FRAME, by=["device", "land"])
    gone = FRAME.assign(device=FRAME["device"].where(FRAME.index != 7))
    with pytest.raises(BayesfairError, match=r"row 8 .*the group is empty"):
        bf.read_history(gone, by=["device", "year"])
    cased = FRAME.assign(device=["Phone" if i == 3 else "phone" for i in range(60)])
    logs = bf.read_history(cased, by=["device", "year"])
    assert "look_alike" in [notice.kind for notice in next(iter(logs.values())).notices]
    spelt = FRAME.assign(device=[" phone" if i == 3 else "phone" for i in range(60)])
    with pytest.raises(DataError) as caught:
        bf.read_history(spelt, by=["device", "year"])
    assert (caught.value.kind, caught.value.column) == ("two_spellings", "device")


def test_the_command_takes_columns_with_commas_between_them(tmp_path, capsys):
    from command_line import run

    path = tmp_path / "log.csv"
    FRAME.to_csv(path, index=False)
    done = run(capsys, "audit", path, "--by", "device,year", "--no-objective")
    assert done.status == 0, done.err
    assert "desk, 2024" in done.out and "phone, 2025" in done.out
    shown = run(capsys, "columns", path, "--by", "device,year")
    assert shown.status == 0 and "--by device,year" in shown.out
