"""Readers remember which columns of a source nothing was read from."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesfair.readers import read_history, scan_history

TABLE = pd.DataFrame({
    "leaf": ["US", "EU", "US", "EU"],
    "arm": ["a", "b", "a", "a"],
    "reward": [1, 0, 1, 0],
    "p_a": [0.5, 0.5, 0.75, 0.25],
    "p_b": [0.5, 0.5, 0.25, 0.75],
    "x": [0.1, 0.2, 0.3, 0.4],
})  # fmt: skip


def _sources(folder):
    TABLE.to_csv(folder / "log.csv", index=False)
    pq.write_table(pa.Table.from_pandas(TABLE, preserve_index=False), folder / "log.parquet")
    return {
        "csv": folder / "log.csv",
        "parquet": folder / "log.parquet",
        "pandas": TABLE,
        "arrow": pa.Table.from_pandas(TABLE, preserve_index=False),
    }


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "arrow"])
@pytest.mark.parametrize("read", [read_history, scan_history])
def test_columns_that_play_no_part_are_remembered_in_the_order_of_the_source(tmp_path, kind, read):
    source = _sources(tmp_path)[kind]
    log = read(source)
    assert log.unused_columns == ("leaf", "x")
    if read is scan_history:
        assert all(part.unused_columns == ("leaf", "x") for part in log.chunks())


@pytest.mark.parametrize("read", [read_history, scan_history])
def test_a_column_with_a_part_to_play_is_used(read):
    groups = read(TABLE, by="leaf")
    assert {log.unused_columns for log in groups.values()} == {("x",)}
    assert read(TABLE, order="x", by="leaf")["US"].unused_columns == ()


def test_columns_that_another_notice_names_are_not_named_twice():
    spare = TABLE.assign(propensity=[0.5, 0.5, 0.75, 0.25], p_c=[0.0, 0.0, 0.0, 0.0])
    assert read_history(spare, arms=["a", "b"]).unused_columns == ("leaf", "x")


def test_parts_of_a_history_keep_them():
    log = read_history(TABLE)
    assert log.rounds(1, 3).unused_columns == log.before(2).unused_columns == ("leaf", "x")
    assert log.with_notices("said").unused_columns == ("leaf", "x")
