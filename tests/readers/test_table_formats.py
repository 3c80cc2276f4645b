"""Arrow, Feather, ORC and SQLite tables are read as they stand, each by its bytes."""

import sqlite3

import pyarrow as pa
import pytest
from command_line import run
from pyarrow import feather, orc

from bayesfair.errors import DataError, OptionError
from bayesfair.readers import preview, read_history, scan_history

ARM, REWARD = ["a", "b", "a", "001"], [1, 0, 1, 0]
PI = [[0.5, 0.25, 0.25], [0.625, 0.25, 0.125], [0.75, 0.125, 0.125], [0.25, 0.25, 0.5]]
COLUMNS = {"arm": ARM, "reward": REWARD, **{
    f"p_{a}": [row[j] for row in PI] for j, a in enumerate(("a", "b", "001"))
}}  # fmt: skip


def _scan(source, **options):
    return next(scan_history(source, **options).chunks())


READERS = pytest.mark.parametrize("read", [read_history, _scan], ids=["read", "scan"])


def _sqlite(path, **tables):
    with sqlite3.connect(path) as file:
        for name, columns in tables.items():
            fields = ", ".join(f'"{c}"' for c in columns)
            file.execute(f'CREATE TABLE "{name}" ({fields})')
            marks = ", ".join("?" * len(columns))
            rows = zip(*columns.values(), strict=True)
            file.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
    file.close()


def _write(path, kind):
    table = pa.table(COLUMNS)
    if kind == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
    elif kind == "feather":
        feather.write_feather(table, str(path))
    elif kind == "orc":
        orc.write_table(table, str(path))
    else:
        _sqlite(path, **{"my log": COLUMNS})


KINDS = ["arrow", "feather", "orc", "sqlite"]
FORMAT = {"feather": "arrow"}


@READERS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["log", "log.csv"])
def test_tables_are_known_by_their_bytes(tmp_path, read, kind, name):
    _write(tmp_path / name, kind)
    for options in ({}, {"format": FORMAT.get(kind, kind)}):
        log = read(tmp_path / name, **options)
        assert log.arms == ("a", "b", "001")
        assert [log.arms[i] for i in log.arm] == ARM and log.reward.tolist() == REWARD
        assert log.selection_probability.tolist() == PI
        assert log.row.tolist() == [1, 2, 3, 4]
    with pytest.raises(DataError, match="not like JSON"):
        read(tmp_path / name, format="json")
    with pytest.raises(OptionError, match="delimiter"):
        read(tmp_path / name, delimiter=",")


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_tables_are_refused(tmp_path, kind):
    path = tmp_path / "log.x"
    _write(path, kind)
    whole = path.read_bytes()
    for size in (20, len(whole) // 2, len(whole) - 9):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"log\.x"):
            read_history(path)


def test_letters_that_begin_other_formats_are_a_header_all_the_same(tmp_path):
    for word in ("ORC", "ARROW1", "SQLite format"):
        path = tmp_path / "log.csv"
        path.write_text(f"{word},arm,reward\n1,a,1\n2,b,0\n")
        assert read_history(path).reward.tolist() == [1, 0]


@READERS
def test_a_table_of_several_is_named(tmp_path, read):
    path = tmp_path / "log.db"
    _sqlite(path, rounds=COLUMNS, other={"x": [1]})
    with pytest.raises(DataError, match=r"holds 2 tables: 'other', 'rounds'") as caught:
        read(path)
    assert caught.value.kind == "no_table"
    with pytest.raises(DataError, match=r"no table 'round'.*Its tables are"):
        read(path, table="round")
    with pytest.raises(DataError, match=r"no column 'arm'.*Its columns are 'x'"):
        read(path, table="other")
    assert read(path, table="rounds").selection_probability.tolist() == PI
    with pytest.raises(OptionError, match=r"table=.*SQLite"):
        read({"arm": ARM, "reward": REWARD}, table="rounds")


@READERS
@pytest.mark.parametrize("damage", ["cut", "empty page"])
def test_a_damaged_sqlite_file_is_not_read_as_rows_of_nothing(tmp_path, read, damage):
    path = tmp_path / "log.db"
    _sqlite(path, log={"arm": ["a", "b"] * 2000, "reward": [1, 0] * 2000})
    whole = path.read_bytes()
    page = len(whole) // 4096 // 2 * 4096
    path.write_bytes(whole[:-9] if damage == "cut" else
                     whole[:page] + bytes(4096) + whole[page + 4096 :])  # fmt: skip
    with pytest.raises(DataError, match="starts as SQLite, but cannot be read"):
        read(path)


def test_values_of_sqlite_are_what_they_say(tmp_path):
    path = tmp_path / "log.db"
    _sqlite(path, log={"arm": [1, "x", 2.0, "x"], "reward": ["1", 0, None, 0.25]})
    log = read_history(path, missing="unobserved")
    assert log.arms == ("1", "2", "x") and [log.arms[i] for i in log.arm] == ["1", "x", "2", "x"]
    assert log.reward[[0, 1, 3]].tolist() == [1, 0, 0.25] and log.reward[2] != log.reward[2]
    (tmp_path / "empty.db").write_bytes(b"")
    _sqlite(tmp_path / "none.db", log={"arm": [], "reward": []})
    for name, said in (("empty.db", "empty"), ("none.db", "no rows")):
        with pytest.raises(DataError, match=said):
            read_history(tmp_path / name)


def test_a_view_is_read_and_the_file_is_not_written(tmp_path, capsys):
    path = tmp_path / "log.db"
    _sqlite(path, rounds={**COLUMNS, "n": [4, 3, 2, 1]})
    with sqlite3.connect(path) as file:
        file.execute("CREATE VIEW sorted AS SELECT arm, reward FROM rounds ORDER BY n")
    file.close()
    before = path.read_bytes()
    assert read_history(path, table="sorted").reward.tolist() == REWARD[::-1]
    assert path.read_bytes() == before
    assert preview(path, table="rounds").columns[-1].values == ("4", "3", "2")
    done = run(capsys, "audit", path, "--table", "rounds", "--no-objective", "--order", "")
    assert done.status == 0, done.err
    done = run(capsys, "audit", path)
    assert done.status == 2 and "--table" in done.err
