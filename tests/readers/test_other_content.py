"""Content that is no log, or of two formats, is refused by what it looks like."""

from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

from bayesfair.base.notices import Notice
from bayesfair.errors import DataError
from bayesfair.readers import read_history

ROWS = [{"arm": "a", "reward": 1, "p_a": 0.5, "p_b": 0.5}, {"arm": "b", "reward": 0,
                                                           "p_a": 0.25, "p_b": 0.75}]  # fmt: skip
JSON = "".join(json.dumps(row) + "\n" for row in ROWS)
CSV = "arm,reward,p_a,p_b\na,1,0.5,0.5\nb,0,0.25,0.75\n"
VW = "1:-1:0.5 | x:1\n2:0:0.75 | x:2\n"
DSJSON = "".join(
    json.dumps({"_label_cost": -1, "_label_probability": 0.5, "_label_Action": 1, "_labelIndex": 0,
                "a": [1, 2], "p": [0.5, 0.5]}) + "\n" for _ in range(2)
)  # fmt: skip


def _array():
    held = io.BytesIO()
    np.save(held, np.arange(3))
    return held.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pickle.dumps(ROWS), "pickle"), (_array(), "NumPy"), (b"\x89HDF\r\n\x1a\n\0\0", "HDF5"),
        (b"Obj\x01\x04\x14avro.codec", "Avro"), (b"%PDF-1.7\n", "PDF"), (b"PK\x03\x04x", "zip"),
        (b"\n<!DOCTYPE html><html>404</html>", "web page"), (CSV.encode("utf-32"), "UTF-32"),
        (CSV.encode("utf-16-le"), "UTF-16"), (b"\0" * 8 + b"DUCK@\0", "DuckDB"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_files_of_other_programs_are_named(tmp_path, content, said):
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        read_history(tmp_path / "log.csv")
    assert caught.value.kind in ("unknown_format", "not_utf8")


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (CSV, JSON, "looks like JSON"), (CSV, VW, "looks like Vowpal Wabbit"),
        (JSON, DSJSON, "decision of Vowpal Wabbit"), (DSJSON, JSON, "no decision of Vowpal"),
        (JSON, CSV, "not valid JSON"), (VW, CSV, "action:cost:probability"),
        (VW, JSON, "action:cost:probability"), (JSON, VW, "not valid JSON"),
    ],
)  # fmt: skip
def test_two_formats_in_one_file_are_refused_by_row(tmp_path, first, then, said):
    (tmp_path / "log").write_text(first + then)
    with pytest.raises(DataError, match=said) as caught:
        read_history(tmp_path / "log")
    assert caught.value.row == (4 if first == CSV else 3)


@pytest.mark.parametrize("content", [JSON, DSJSON])
def test_what_is_said_of_each_file_of_a_folder_is_said_once(tmp_path, content):
    for i in range(3):
        (tmp_path / f"{i}.jsonl").write_text(content)
    notices = [Notice.of(n) for n in read_history(tmp_path).notices]
    assert len({n.kind for n in notices}) == len(notices)
    assert [n.n for n in notices if n.kind == "cost_as_reward"] == (
        [6] if content is DSJSON else []
    )
    (tmp_path / "README.txt").write_text("hello")
    with pytest.raises(DataError, match=r"\*\.jsonl") as caught:
        read_history(tmp_path)
    assert caught.value.kind == "mixed_formats"


@pytest.mark.parametrize("content", [JSON, CSV, VW, DSJSON])
def test_a_format_that_is_not_that_of_the_bytes_is_refused(tmp_path, content):
    (tmp_path / "log").write_text(content)
    own = {JSON: {"json", "dsjson"}, DSJSON: {"json", "dsjson"}, CSV: {"text", "vw"}, VW: {"vw"}}
    for name in {"text", "parquet", "json", "dsjson", "vw", "arrow", "orc", "sqlite"} - own[
        content
    ]:
        with pytest.raises(DataError, match="looks like") as caught:
            read_history(tmp_path / "log", format=name)
        assert caught.value.kind == "wrong_format"


def test_a_stream_of_arrow_that_was_kept_is_read(tmp_path):
    table = pa.Table.from_pylist(ROWS)
    with (
        pa.OSFile(str(tmp_path / "log"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as to,
    ):
        to.write_table(table)
    assert read_history(tmp_path / "log").selection_probability.tolist() == [
        [0.5, 0.5],
        [0.25, 0.75],
    ]
