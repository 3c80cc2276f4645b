"""Where a log may lie: text in any dress, Parquet files, folders, globs, frames of any library."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesfair.errors import DataError, OptionError
from bayesfair.readers import read_history, scan_history
from bayesfair.readers.duels.comparisons import read_comparisons

TEXT = "timestamp,arm,reward,p_x,p_001\n1,001,1,0.25,0.75\n2,x,0,0.5,0.5\n3,001,0,0.125,0.875\n"
ROWS = {
    "timestamp": [1, 2, 3],
    "arm": ["001", "x", "001"],
    "reward": [1, 0, 0],
    "p_x": [0.25, 0.5, 0.125],
    "p_001": [0.75, 0.5, 0.875],
}


def check(history, first_row=2):
    """The same history, whatever it came from."""
    assert history.arms == ("x", "001")
    assert history.arm.tolist() == [1, 0, 1]
    assert history.reward.tolist() == [1.0, 0.0, 0.0]
    assert history.selection_probability.tolist() == [[0.25, 0.75], [0.5, 0.5], [0.125, 0.875]]
    assert history.time.tolist() == [1, 2, 3]
    assert history.row.tolist() == [first_row, first_row + 1, first_row + 2]
    assert history.notices == ()


def parts(source, **options):
    return list(scan_history(source, chunk_rounds=2, **options).chunks())


def write(folder, text=TEXT, name="log.csv"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# -- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_detected(tmp_path, delimiter):
    path = write(tmp_path, TEXT.replace(",", delimiter))
    check(read_history(path))
    check(read_history(str(path), delimiter=delimiter))


def test_delimiter_can_be_called_tab_and_be_another(tmp_path):
    check(read_history(write(tmp_path, TEXT.replace(",", "\t")), delimiter="tab"))
    check(read_history(write(tmp_path, TEXT.replace(",", "^")), delimiter="^"))
    with pytest.raises(OptionError, match="one character"):
        read_history(write(tmp_path), delimiter="::")


def test_the_header_settles_an_ambiguous_delimiter(tmp_path):
    path = write(tmp_path, "arm;reward;a,b\nx;1;9,5\ny;0;1,5\n")
    assert read_history(path).arms == ("x", "y")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path, newline):
    check(read_history(write(tmp_path, TEXT.replace("\n", newline))))


def test_last_line_without_end_and_empty_lines(tmp_path):
    check(read_history(write(tmp_path, TEXT.rstrip("\n"))))
    check(read_history(write(tmp_path, TEXT + "\n\n")))


COMPRESSORS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_compressed(tmp_path, suffix, named):
    """The first bytes decide, not the name."""
    path = tmp_path / (f"log.csv.{suffix}" if named else "log.csv")
    if suffix == "zst":  # a whole frame, as command-line tools write it
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(TEXT.encode())
    else:
        path.write_bytes(COMPRESSORS[suffix](TEXT.encode()))
    check(read_history(path))
    assert sum(p.n_rounds for p in parts(path)) == 3


def test_case_47_byte_order_mark_and_blanks_in_the_header(tmp_path):
    text = TEXT.replace("timestamp,arm,reward", " timestamp , arm,reward ")
    check(read_history(write(tmp_path, b"\xef\xbb\xbf" + text.encode())))
    check(read_history(write(tmp_path, b"\xef\xbb\xbf" + text.replace(" arm", '"arm"').encode())))


def test_case_48_semicolons_and_decimal_commas_only_when_told(tmp_path):
    path = write(tmp_path, "timestamp;arm;reward\n2024-01-05 10:00;a;0,5\n")
    assert read_history(path, decimal=",").reward.tolist() == [0.5]
    with pytest.raises(DataError, match=r"row 2 .*'reward': '0,5' is not a number.*decimal="):
        read_history(path)
    path = write(tmp_path, "timestamp;arm;reward\n2024-01-05 10:00;a;1.5\n")
    with pytest.raises(DataError, match=r"'1\.5'"):
        read_history(path, decimal=",")
    with pytest.raises(OptionError, match="decimal"):
        read_history(path, decimal=";")


def test_quoted_fields_may_hold_delimiters_quotes_and_line_breaks(tmp_path):
    text = 'arm,reward,note\n"Smith, J.",1,"two\nlines"\n"a ""b""",0,\n"x\ny",1,z\n'
    history = read_history(write(tmp_path, text))
    assert history.arms == ("Smith, J.", 'a "b"', "x\ny")
    assert history.row.tolist() == [2, 3, 4]  # records, not lines


def test_a_quoted_break_does_not_shift_the_row_of_an_error(tmp_path):
    text = 'arm,reward,note\na,1,"two\nlines"\na,oops,\n'
    with pytest.raises(DataError, match=r"row 3 of log\.csv"):
        read_history(write(tmp_path, text))


def test_text_keeps_every_digit(tmp_path):
    values = np.random.default_rng(3).dirichlet(np.ones(3), 500)
    lines = ["arm,reward,p_a,p_b,p_c"] + [f"a,1,{a!r},{b!r},{c!r}" for a, b, c in values.tolist()]
    history = read_history(write(tmp_path, "\n".join(lines)))
    np.testing.assert_array_equal(history.selection_probability, values)


def test_a_wrong_name_offers_the_closest(tmp_path):
    write(tmp_path, name="decisions.csv")
    with pytest.raises(DataError, match=r"no such file.*Did you mean 'decisions\.csv'"):
        read_history(tmp_path / "decision.csv")


def test_other_objects_are_refused():
    for source in (7, None, 1.5):
        with pytest.raises(OptionError, match="path, a data frame"):
            read_history(source)


# -- Parquet ---------------------------------------------------------------------------------------


def table(**changes):
    return pa.table(ROWS | changes)


def test_parquet_file(tmp_path):
    pq.write_table(table(), tmp_path / "log.parquet")
    check(read_history(tmp_path / "log.parquet"), first_row=1)
    assert [p.row.tolist() for p in parts(tmp_path / "log.parquet")] == [[1, 2], [3]]


@pytest.mark.parametrize(
    "changes",
    [
        {"arm": pa.array(ROWS["arm"]).dictionary_encode()},
        {"arm": pa.array(ROWS["arm"], pa.large_string())},
        {"arm": pa.array(ROWS["arm"], pa.string_view())},
        {"arm": pa.array([b"001", b"x", b"001"])},
        {"reward": pa.array([True, False, False])},
        {"reward": pa.array(["True", "no", "FALSE"])},
        {"reward": pa.array(["yes", "no", "no"]).dictionary_encode()},
        {"reward": pa.array([1, 0, 0], pa.uint8())},
        {"reward": pa.array([1, 0, 0], pa.float32())},
        {"reward": pa.array([1, 0, 0]).cast(pa.decimal128(21, 1))},
        {
            "p_x": pa.array(ROWS["p_x"], pa.float32()),
            "p_001": pa.array(ROWS["p_001"], pa.float32()),
        },
        {"p_x": pa.array(ROWS["p_x"], pa.float16())},
        {"p_x": pa.array(ROWS["p_x"]).cast(pa.decimal128(6, 5))},
        {"p_x": pa.array(["0.25", " 0.5", "1.25e-1"])},
        {"timestamp": pa.array(["1", "2", "3"])},
        {"timestamp": pa.array([1, 2, 3], pa.uint16())},
    ],
    ids=lambda c: ",".join(f"{k}:{v.type}" for k, v in c.items()),
)
def test_parquet_types(tmp_path, changes):
    pq.write_table(table(**changes), tmp_path / "log.parquet")
    check(read_history(tmp_path / "log.parquet"), first_row=1)
    check_parts = parts(tmp_path / "log.parquet")
    assert np.concatenate([p.arm for p in check_parts]).tolist() == [1, 0, 1]
    assert np.concatenate([p.reward for p in check_parts]).tolist() == [1, 0, 0]


@pytest.mark.parametrize("groups", [[5, 70_000, 3, 9, 66_000, 70_000], [263_000, 70_000]])
def test_row_groups_of_any_size_make_one_log(tmp_path, groups):
    """Those that fit are decoded whole, the others in batches: each row once, in its order."""
    n = sum(groups)
    at, p = np.arange(n), (np.arange(n) % 7 + 1) / 8
    table = pa.table({"arm": np.array(["a", "b"])[at % 3 % 2], "reward": at * 1.0,
                      "p_a": p, "p_b": 1 - p})  # fmt: skip
    with pq.ParquetWriter(tmp_path / "log.parquet", table.schema) as file:
        for start, size in zip(np.cumsum([0, *groups]), groups, strict=False):
            file.write_table(table.slice(int(start), size), row_group_size=size)
    found = list(scan_history(tmp_path / "log.parquet").chunks())
    assert [part.n_rounds for part in found[:-1]] == [1 << 17] * (n >> 17)
    for name, expected in (("reward", at), ("row", at + 1), ("arm", at % 3 % 2)):
        np.testing.assert_array_equal(np.concatenate([getattr(x, name) for x in found]), expected)
    pi = np.concatenate([part.selection_probability for part in found])
    np.testing.assert_array_equal(pi, np.column_stack([p, 1 - p]))


def test_integer_arms_are_labels(tmp_path):
    log = pa.table({"arm": [3, 20, 3], "reward": [1, 0, 1], "p_3": [0.5] * 3, "p_20": [0.5] * 3})
    pq.write_table(log, tmp_path / "log.parquet")
    assert read_history(tmp_path / "log.parquet").arms == ("3", "20")
    assert read_history(tmp_path / "log.parquet", probabilities=False).arms == ("3", "20")


def test_folder_of_parquet_in_natural_order(tmp_path):
    for i in (10, 2, 1):
        pq.write_table(pa.table({"arm": [f"a{i}"], "reward": [i]}), tmp_path / f"part-{i}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "_delta_log").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "_delta_log" / "0.checkpoint.parquet")
    for source in (tmp_path, f"{tmp_path}/*.parquet", f"{tmp_path}/**/*.parquet"):
        history = read_history(source, arms=["a1", "a2", "a10"])
        assert history.reward.tolist() == [1, 2, 10]
        assert history.row.tolist() == [1, 2, 3]
        assert "3 files" in history.notices[0] and "part-10.parquet" in history.notices[0]
    assert scan_history(tmp_path).n_rounds == 3


def test_partition_folders_are_text_columns(tmp_path):
    for day, label in [("2024-01-06", "b"), ("2024-01-05", "a")]:
        folder = tmp_path / f"day={day}" / "shop=001"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"arm": [label, "c"], "reward": [1, 0]}), folder / "x.parquet")
    history = read_history(tmp_path, order="day")
    assert history.time.astype("datetime64[D]").astype(str).tolist() == [
        "2024-01-05", "2024-01-05", "2024-01-06", "2024-01-06",
    ]  # fmt: skip
    assert set(read_history(tmp_path, by="shop")) == {"001"}


def test_folder_of_text(tmp_path):
    write(tmp_path, "arm,reward\na,1\n", "day2.csv")
    write(tmp_path, "reward;arm\n0;b\n", "day1.csv")  # own delimiter, other order of columns
    history = read_history(tmp_path)
    assert history.arms == ("a", "b")
    assert history.arm.tolist() == [1, 0]
    assert history.row.tolist() == [2, 3]


def test_files_of_one_log_need_the_same_columns(tmp_path):
    write(tmp_path, "arm,reward\na,1\n", "day1.csv")
    write(tmp_path, "arm,click\na,1\n", "day2.csv")
    with pytest.raises(DataError, match=r"day2\.csv has no column 'reward', which day1\.csv has"):
        read_history(tmp_path)


def test_folders_without_or_with_both_kinds_are_refused(tmp_path):
    with pytest.raises(DataError, match="no Parquet, JSON or CSV"):
        read_history(tmp_path)
    with pytest.raises(DataError, match="no file matches"):
        read_history(tmp_path / "*.parquet")
    write(tmp_path)
    pq.write_table(table(), tmp_path / "log.parquet")
    with pytest.raises(DataError, match="both Parquet and text"):
        read_history(tmp_path)


def test_files_with_different_types_make_one_log(tmp_path):
    pq.write_table(pa.table({"arm": [1, 2], "reward": [1, 0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"arm": ["1", "3"], "reward": ["yes", "no"]}), tmp_path / "2.parquet")
    history = read_history(tmp_path)
    assert [history.arms[i] for i in history.arm] == ["1", "2", "1", "3"]
    assert history.reward.tolist() == [1, 0, 1, 0]
    scanned = parts(tmp_path, arms=["1", "2", "3"])
    assert np.concatenate([p.arm for p in scanned]).tolist() == history.arm.tolist()


# -- data frames ---------------------------------------------------------------------------------


def duckdb_relation():
    log = table()  # noqa: F841  duckdb finds it by name
    return duckdb.sql("select * from log")


FRAMES = {
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas_object": lambda: pd.DataFrame(ROWS).astype({"arm": object, "reward": object}),
    "pandas_category": lambda: pd.DataFrame(ROWS).astype({"arm": "category"}),
    "pandas_index": lambda: pd.DataFrame(ROWS, index=[7, 8, 9]),
    "pandas_arrow": lambda: pd.DataFrame(ROWS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: pl.DataFrame(ROWS),
    "polars_lazy": lambda: pl.LazyFrame(ROWS),
    "polars_categorical": lambda: pl.DataFrame(ROWS).with_columns(
        pl.col("arm").cast(pl.Categorical)
    ),
    "arrow": table,
    "arrow_batch": lambda: table().to_batches()[0],
    "duckdb": duckdb_relation,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind):
    check(read_history(FRAMES[kind]()), first_row=1)
    assert [p.row.tolist() for p in parts(FRAMES[kind]())] == [[1, 2], [3]]


def test_frame_names_itself_in_errors():
    frame = pd.DataFrame({"arm": ["a", "b"], "reward": ["1", "oops"]})
    with pytest.raises(DataError, match="row 2 of data frame, column 'reward': 'oops'"):
        read_history(frame)


def test_python_objects_keep_what_they_say():
    frame = pd.DataFrame(
        {
            "arm": pd.Series([1, "1", "NA", "None", True, 2.0], dtype=object),
            "reward": pd.Series([True, "False", 0, "1", "yes", False], dtype=object),
        }
    )
    history = read_history(frame, arms=["1", "2", "NA", "None", "True"])
    # a whole float is the number it is in every other column
    assert [history.arms[i] for i in history.arm] == ["1", "1", "NA", "None", "True", "2"]
    assert history.reward.tolist() == [1, 0, 0, 1, 1, 0]


def test_pandas_missing_values_of_every_sort():
    frame = pd.DataFrame(
        {
            "arm": ["a", "b", "a", "b"],
            "reward": pd.Series([1, None, float("nan"), pd.NA], dtype=object),
            "p_a": [0.5, 1.0, 0.5, np.nan],
            "p_b": [0.5, np.nan, 0.5, 1.0],
        }
    )
    frame.loc[1, "arm"] = "a"
    history = read_history(frame, missing="unobserved")
    assert np.isnan(history.reward).tolist() == [False, True, True, True]
    assert history.offered.tolist() == [[True, True], [True, False], [True, True], [False, True]]


def test_integer_arms_that_pandas_turned_into_floats():
    frame = pd.DataFrame({"arm": [1, 2, None, 1], "reward": [1, 0, 1, 0]})
    assert frame["arm"].dtype == float
    history = read_history(frame, missing="drop")
    assert history.arms == ("1", "2") and history.n_skipped == 1


def test_frames_with_duplicate_columns():
    frame = pd.DataFrame([["a", 1, 0]], columns=["arm", "reward", "reward"])
    with pytest.raises(DataError, match="reward"):
        read_history(frame)


def test_unused_columns_of_odd_types_do_no_harm():
    frame = pd.DataFrame({"arm": ["a"], "reward": [1], "junk": pd.Series([{1: 2}], dtype=object)})
    assert read_history(frame).n_rounds == 1


# -- imports -------------------------------------------------------------------------------------


@pytest.mark.parametrize("heavy", ["pyarrow", "pandas", "polars", "narwhals", "duckdb"])
def test_importing_the_readers_loads_no_data_library(heavy):
    code = f"import sys, bayesfair.readers; assert {heavy!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_reading_text_does_not_import_pandas(tmp_path):
    path = write(tmp_path)
    code = (
        "import sys; from bayesfair.readers import read_history; "
        f"read_history({str(path)!r}); assert not {{'pandas', 'polars'}} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)


@pytest.mark.parametrize(
    ("bad", "own", "message"),
    [
        ("a,x,0.5,0.5", 4, "'x' is not a reward"),
        ("a,1,0.5,0.7", 4, "sum"),
        ("c,1,0.5,0.5", 4, "'c' is not among"),
    ],
)
def test_a_mistake_in_a_folder_names_the_file_and_its_row(tmp_path, bad, own, message):
    folder = tmp_path / "logs"
    folder.mkdir()
    head, good = "arm,reward,p_a,p_b\n", "a,1,0.5,0.5\nb,0,0.5,0.5\n"
    (folder / "part-1.csv").write_text(head + good * 2)
    (folder / "part-2.csv").write_text(head + good + bad + "\n" + good)
    (folder / "part-3.csv").write_text(head + good)
    for read in (read_history, lambda path: list(scan_history(path, chunk_rounds=2).chunks())):
        with pytest.raises(DataError, match=message) as caught:
            read(folder)
        assert f"row 8 of logs [row {own} of part-2.csv]" in str(caught.value)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"])
def test_rows_are_records_and_their_line_is_named_where_it_differs(tmp_path, pack):
    head, good = "arm,reward,p_a,p_b\n", "a,1,0.5,0.5\n"
    path = tmp_path / "log.csv"
    for bad, message in [
        ("b,x,0.5,0.5", "'x' is not a reward"),
        ("b,1,0.5,0.7", "sum"),
        ("b,1,0.5", "has 3 fields"),
    ]:
        for read in (read_history, lambda p: list(scan_history(p).chunks())):
            path.write_bytes(pack((head + good + "\n\r\n" + good + bad + "\n").encode()))
            with pytest.raises(DataError, match=rf"row 4 of log\.csv \[line 6\].*{message}"):
                read(path)
            path.write_bytes(pack((head + good + good + bad + "\n").encode()))
            with pytest.raises(DataError, match=rf"row 4 of log\.csv[^\[].*{message}"):
                read(path)
    path.write_bytes(pack(b'arm,reward\n"a\nb",1\nb,x\n'))
    with pytest.raises(DataError, match=r"row 3 of log\.csv \[line 4\], column 'reward'"):
        read_history(path)


def test_a_fault_in_a_folder_names_the_folder_and_a_missing_ballot_no_other_format(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "notes.txt").write_text("\nnothing\n")
    with pytest.raises(DataError) as error:
        read_history(tmp_path / "logs")
    assert "notes.txt" in str(error.value) and repr(str(tmp_path / "logs")) in str(error.value)
    for reader in (read_comparisons, read_history):
        with pytest.raises(DataError) as error:
            reader(tmp_path / "none.soc")
        assert error.value.kind == "no_file"
        assert error.value.value == str(tmp_path / "none.soc")
        assert "CSV" not in str(error.value)
