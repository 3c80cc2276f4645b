"""What a column is stored as does not change what it says; what cannot be read is refused."""

from __future__ import annotations

import re
import uuid

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesfair.base.label_encoder import encoded
from bayesfair.errors import DataError
from bayesfair.readers import read_history, scan_history

# -- categories whose rows were filtered away ------------------------------------------------------


def _filtered() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "arm": pd.Categorical(list("abcabc")),
            "reward": [1, 0, 1, 1, 0, 1],
            "slot": pd.Categorical(list("xyzxyz")),
        }
    )
    return frame[frame["arm"] != "c"]


def _arrow_filtered() -> pa.Table:
    table = pa.table({"arm": pa.array(list("abcabc")).dictionary_encode(), "reward": [1, 0] * 3})
    return table.filter(pa.array([True, True, False] * 2))


def _polars(kind):
    frame = polars.DataFrame({"arm": list("abcabc"), "reward": [1, 0] * 3})
    dtype = polars.Enum(list("zcba")) if kind == "enum" else polars.Categorical
    return frame.with_columns(polars.col("arm").cast(dtype)).filter(polars.col("arm") != "c")


SOURCES = {
    "pandas": lambda _: _filtered(),
    "arrow": lambda _: _arrow_filtered(),
    "polars enum": lambda _: _polars("enum"),
    "polars categorical": lambda _: _polars("categorical"),
    "parquet": lambda path: _filtered().to_parquet(path) or path,
}


@pytest.mark.parametrize("name", SOURCES)
def test_unused_categories_are_no_arms(name, tmp_path):
    source = SOURCES[name](tmp_path / "log.parquet")
    history = read_history(source)
    assert history.arms == ("a", "b")
    assert history.arm.tolist() == [0, 1, 0, 1]
    scan = scan_history(source, chunk_rounds=3)
    assert scan.arms == ("a", "b")
    assert np.concatenate([part.arm for part in scan.chunks()]).tolist() == [0, 1, 0, 1]


def test_unused_categories_are_no_groups_and_no_items(tmp_path):
    assert list(read_history(_filtered(), by="slot")) == ["x", "y"]
    _filtered().to_parquet(tmp_path / "log.parquet")
    assert list(read_history(tmp_path / "log.parquet", by="slot")) == ["x", "y"]
    found = encoded(pd.Series(pd.Categorical(["a", None, "c"], categories=list("abc"))))
    assert found.labels == ("a", "c") and found.codes.tolist() == [0, -1, 1]


def test_a_full_narrow_dictionary_has_room_for_missing():
    """128 entries use up the numbers of an 8-bit index."""
    index = pa.array([0, 127, None], pa.int8())
    column = pa.DictionaryArray.from_arrays(index, [str(i) for i in range(128)])
    table = pa.table({"arm": column, "reward": [1, 0, 1]})
    assert read_history(table, missing="drop").arms == ("0", "127")
    assert encoded(column).codes.tolist() == [0, 1, -1]


# -- kinds of columns ------------------------------------------------------------------------------


def test_numbered_columns_go_by_their_number_as_text():
    frame = pd.DataFrame([["a", 1], ["b", 0]])
    assert read_history(frame, arm="0", reward="1").reward.tolist() == [1, 0]


def test_sparse_run_length_and_uuid_columns_are_read(tmp_path):
    sparse = pd.DataFrame({"arm": ["a", "b"], "reward": pd.arrays.SparseArray([0, 1])})
    assert read_history(sparse).reward.tolist() == [0, 1]
    runs = pa.RunEndEncodedArray.from_arrays([1, 3], ["b", "a"])
    assert read_history(pa.table({"arm": runs, "reward": [1, 0, 1]})).arm.tolist() == [1, 0, 0]
    names = [uuid.UUID(int=2), uuid.UUID(int=1)]
    stored = pa.array([name.bytes for name in names], pa.uuid())
    pq.write_table(pa.table({"arm": stored, "reward": [1, 0]}), tmp_path / "log.parquet")
    for source in (tmp_path / "log.parquet", pd.DataFrame({"arm": names, "reward": [1, 0]})):
        assert read_history(source).arms == tuple(sorted(map(str, names)))


def test_complex_numbers_are_refused_by_column():
    with pytest.raises(DataError, match=r"column 'reward' of data frame holds .* convert it"):
        read_history(pd.DataFrame({"arm": ["a", "b"], "reward": [1j, 0j]}))


def test_bytes_that_are_no_text_are_refused_and_never_merged():
    arms = pa.array([b"a", b"\xff", b"\xfe"])
    with pytest.raises(
        DataError, match=re.escape(r"row 2 of data frame, column 'arm': the arm b'")
    ):
        read_history(pa.table({"arm": arms, "reward": [1, 0, 1]}))
    with pytest.raises(
        DataError, match=r"row 2 of data frame, column 'reward': b'.xff' is not UTF"
    ):
        read_history(pa.table({"arm": ["a", "b"], "reward": [b"1", b"\xff"]}))
    text = pa.array([b"b", b"a"], pa.large_binary())
    assert read_history(pa.table({"arm": text, "reward": [1, 0]})).arms == ("a", "b")
