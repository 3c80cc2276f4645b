"""Logs as they are: JSON in every form, Vowpal Wabbit, Open Bandit, records, standard input."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bayesfair as bf
from bayesfair.errors import BayesfairError, DataError, OptionError
from bayesfair.readers import read_history, scan_history

ARM, REWARD = ["a", "b", "a"], [1, 0, 1]
PI = [[0.5, 0.5], [0.625, 0.375], [0.75, 0.25]]  # P* before each round under Beta(.5, .5): regret 0
WIDE = [
    {"arm": a, "reward": r, "p_a": p[0], "p_b": p[1]}
    for a, r, p in zip(ARM, REWARD, PI, strict=True)
]
NESTED = [
    {"action": {"id": a}, "out": {"reward": r}, "probs": dict(zip("ab", p, strict=True))}
    for a, r, p in zip(ARM, REWARD, PI, strict=True)
]


def _scan(source, **options):
    return next(scan_history(source, **options).chunks())


READERS = pytest.mark.parametrize("read", [read_history, _scan], ids=["read", "scan"])


def assert_is_it(log, arms=("a", "b")):
    assert log.arms == arms and log.arm.tolist() == [0, 1, 0]
    assert log.reward.tolist() == REWARD and log.selection_probability.tolist() == PI
    audit = bf.audit(log, eps1=1, objective=False)
    assert audit.regret.value == pytest.approx(0, abs=1e-12)


def _zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def _forms(rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    return {
        "log.jsonl": lines.encode(), "log.ndjson": ("\n" + lines).encode(),
        "log.json": json.dumps(rows).encode(), "pretty.json": json.dumps(rows, indent=2).encode(),
        "log.jsonl.gz": gzip.compress(lines.encode()), "log.jsonl.zst": _zstd(lines.encode()),
        "log.json.zst": _zstd(json.dumps(rows).encode()), "log.txt": lines.encode(),
        "marked.jsonl": b"\xef\xbb\xbf" + lines.encode(),
    }  # fmt: skip


@READERS
@pytest.mark.parametrize("form", _forms(WIDE))
def test_json_lines_and_arrays_are_read_flat_and_nested(tmp_path, read, form):
    path = tmp_path / form
    path.write_bytes(_forms(WIDE)[form])
    assert_is_it(read(path))
    path.write_bytes(_forms(NESTED)[form])
    named = {"arm": "action.id", "reward": "out.reward"}
    assert_is_it(read(path, **named))
    assert_is_it(read(path, probabilities="probs.{arm}", **named))


@READERS
def test_lists_of_probabilities_in_json_need_the_order_of_the_arms(tmp_path, read):
    rows = [{"arm": a, "reward": r, "p": p} for a, r, p in zip(ARM, REWARD, PI, strict=True)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match="arms="):
        read(path)
    assert_is_it(read(path, arms=["a", "b"]))


@READERS
def test_records_and_columns_in_memory(read):
    assert_is_it(read(WIDE))
    assert_is_it(read(NESTED, arm="action.id", reward="out.reward"))
    columns = {key: [row[key] for row in WIDE] for key in WIDE[0]}
    assert_is_it(read(columns))
    assert_is_it(read({key: np.array(values) for key, values in columns.items()}))
    for wrong in ({}, [], {"arm": 1}, [1, 2], {"arm": [1], "reward": [1, 2]}):
        with pytest.raises(BayesfairError):
            read(wrong)


@READERS
def test_rows_of_json_are_counted_from_1_and_numbers_read_strictly(tmp_path, read):
    path = tmp_path / "log.jsonl"
    path.write_text('{"arm": "a", "reward": 1}\n\n{"arm": "b", "reward": "x"}\n')
    with pytest.raises(DataError, match=r"row 2 of log.jsonl, column 'reward': 'x'"):
        read(path)
    path.write_text('{"arm": "a", "reward": 1}\n{"arm": "b", "reward": 1e999}\n')
    with pytest.raises(DataError, match=r"row 2 of log.jsonl, key 'reward'.*too large"):
        read(path)
    path.write_text('{"arm": "a", "reward": 1}\n{"arm": "b", \n')
    with pytest.raises(DataError, match=r"row 2 of log.jsonl .*not valid JSON"):
        read(path)


@READERS
def test_format_names_what_a_file_is_and_is_held_against_it(tmp_path, read):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward\na,1\nb,0\n")
    assert read(path, format="text").n_rounds == 2
    with pytest.raises(DataError, match="looks like delimited text, not like JSON"):
        read(path, format="json")
    with pytest.raises(OptionError, match="format='xml' is not known"):
        read(path, format="xml")
    with pytest.raises(OptionError, match="format='json' has no effect on data frame"):
        read(pd.read_csv(path), format="json")


# -- Vowpal Wabbit ---------------------------------------------------------------------------------


def _dsjson(t, **changes):
    """The log above as Vowpal Wabbit writes it: the chosen action stands first in `a`."""
    chosen = "ab".index(ARM[t])
    order = [chosen, 1 - chosen]
    return {
        "_label_cost": -float(REWARD[t]), "_label_probability": PI[t][chosen],
        "_label_Action": chosen + 1, "_labelIndex": chosen, "Version": "1", "EventId": f"e{t}",
        "Timestamp": f"2026-01-0{t + 1}T00:00:00Z",
        "a": [i + 1 for i in order], "p": [PI[t][i] for i in order],
        "c": {"_multi": [{"i": 1}, {"i": 2}]}, **changes,
    }  # fmt: skip


def _lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@READERS
def test_dsjson_gives_the_whole_rule_and_minus_the_cost(tmp_path, read):
    log = read(_lines(tmp_path / "log.dsjson", [_dsjson(t) for t in range(3)]))
    assert_is_it(log, arms=("1", "2"))
    assert "cost_as_reward" in [n.kind for n in log.notices]


@READERS
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"_labelIndex": 0}, "bad_dsjson"), ({"_label_probability": 0.4}, "bad_dsjson"),
        ({"a": [2, 2]}, "bad_dsjson"), ({"a": [3, 1]}, "bad_dsjson"),
        ({"pdrop": 1}, "bad_dsjson"), ({"pdrop": "x"}, "bad_dsjson"),
        ({"_outcomes": []}, "several_slots"), ({"_label_cost": "x"}, "bad_dsjson"),
    ],
)  # fmt: skip
def test_dsjson_that_contradicts_itself_is_refused_by_row(tmp_path, read, change, kind):
    path = _lines(tmp_path / "log.dsjson", [_dsjson(0), _dsjson(1, **change), _dsjson(2)])
    with pytest.raises(DataError, match=r"row 2 of log\.dsjson") as caught:
        read(path)
    assert (caught.value.kind, caught.value.row) == (kind, 2)


def test_an_outcome_without_its_decision_is_named(tmp_path):
    path = _lines(tmp_path / "log.dsjson", [_dsjson(0), {"EventId": "e0", "RewardValue": 1.0}])
    with pytest.raises(DataError, match="outcome without its decision") as caught:
        read_history(path)
    assert (caught.value.kind, caught.value.row) == ("dangling_outcome", 2)
    _lines(path, [{"EventId": "e0", "RewardValue": 1.0}, _dsjson(0)])
    with pytest.raises(DataError) as caught:
        read_history(path)
    assert (caught.value.kind, caught.value.row) == ("dangling_outcome", 1)


@READERS
@pytest.mark.parametrize("mark", ["_skipLearn", "DeferredAction"])
def test_marks_of_dsjson_tell_lines_apart(tmp_path, read, mark):
    path = _lines(tmp_path / "log.dsjson", [_dsjson(0), _dsjson(1, **{mark: True}), _dsjson(2)])
    assert mark in read(path).unused_columns
    assert read_history(path, by=mark)["True"].n_rounds == 1
    plain = _lines(tmp_path / "plain.dsjson", [_dsjson(t, **{mark: False}) for t in range(3)])
    assert mark not in read(plain).unused_columns


# -- Open Bandit -----------------------------------------------------------------------------------

OBD = (
    "timestamp,item_id,position,click,propensity_score,user_feature_0\n"
    "2019-11-24 00:00:01+00:00,0,1,1,0.5,x\n2019-11-24 00:00:02+00:00,1,1,0,0.375,y\n"
    "2019-11-24 00:00:03+00:00,0,1,1,0.75,x\n"
)


@READERS
def test_the_columns_of_open_bandit_data_are_guessed_and_said(tmp_path, read):
    path = tmp_path / "men.csv"
    path.write_text(OBD)
    log = read(path)
    assert (log.arms, log.arm.tolist(), log.reward.tolist()) == (("0", "1"), [0, 1, 0], REWARD)
    assert log.propensity.tolist() == [0.5, 0.375, 0.75]
    guessed = {n.column: n.value for n in log.notices if n.kind == "column_guessed"}
    assert guessed == {"item_id": "arm", "click": "reward"}
    with pytest.raises(DataError, match="no column 'arm'"):
        read(pd.DataFrame({"action": ["a"], "variant": ["b"], "reward": [1]}))


@READERS
def test_bandit_feedback_gives_the_rule_of_its_slot(read):
    pi = np.array(PI)[:, :, None]
    base = {"n_rounds": 3, "n_actions": 2, "context": np.zeros((3, 1)), "position": None,
            "action": np.array([0, 1, 0]), "reward": np.array(REWARD)}  # fmt: skip
    assert_is_it(read({**base, "pi_b": pi, "pscore": np.array([0.5, 0.375, 0.75])}), ("0", "1"))
    two = np.concatenate([pi, pi[:, ::-1]], axis=2)
    assert_is_it(read({**base, "pi_b": two, "position": np.zeros(3, int)}), ("0", "1"))
    chosen = read({**base, "pi_b": None, "pscore": np.array([0.5, 0.375, 0.75])})
    assert chosen.propensity.tolist() == [0.5, 0.375, 0.75]
    with pytest.raises(DataError, match=r"round 1 .*pscore is 0\.4, but pi_b"):
        read({**base, "pi_b": pi, "pscore": np.array([0.5, 0.4, 0.75])})
    with pytest.raises(DataError, match=r"pi_b .*shape"):
        read({**base, "pi_b": two, "pscore": None})
    for n in (1, 3):  # fewer than were chosen, more than the rule has
        with pytest.raises(DataError, match="n_actions"):
            read({**base, "pi_b": pi, "n_actions": n})
    three = read({**base, "n_actions": 3, "pi_b": None})
    assert [n.n for n in three.notices if n.column == "n_actions"] == [3]
    seen = {**base, "pi_b": pi, "context": np.array([[1, 0.5], [0, 0.5], [1, 0]]), "more": [1]}
    log = read(seen, context=["context_0", "context_1"])
    assert log.context.labels[0] == ("1", "0")
    assert "not_read" in [n.kind for n in log.notices]
    assert read(seen).unused_columns == ("context_0", "context_1")
    with pytest.raises(DataError, match=r"context .*shape \(2,\)"):
        read({**seen, "context": [1, 2]})


# -- streams ---------------------------------------------------------------------------------------

CSV = "arm,reward,p_a,p_b\n" + "".join(
    f"{r['arm']},{r['reward']},{r['p_a']},{r['p_b']}\n" for r in WIDE
)


@READERS
def test_pipes_and_buffers_are_read(tmp_path, read):
    assert_is_it(read(io.BytesIO(CSV.encode())))
    assert_is_it(read(io.StringIO(CSV)))
    pipe = tmp_path / f"pipe{read.__name__}"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(CSV,))
    writer.start()
    assert_is_it(read(pipe))
    writer.join()
    with pytest.raises(DataError, match="null is empty"):
        read("/dev/null")


def test_standard_input_is_audited():
    found = subprocess.run(
        [sys.executable, "-m", "bayesfair", "audit", "-", "--no-objective", "--json", "-"],
        input=CSV.encode(), capture_output=True, check=True,
    )  # fmt: skip
    numbers = json.loads(found.stdout)
    assert numbers["log"]["n_rounds"] == 3
    assert numbers["calibration"]["subjective"]["regret_per_round"] == pytest.approx(0, abs=1e-12)


@READERS
@pytest.mark.parametrize("coding", ["utf-16", "utf-16-be"])
def test_utf_16_with_its_mark_is_read(tmp_path, read, coding):
    path = tmp_path / "log.csv"
    mark = "" if coding == "utf-16" else "\ufeff"
    path.write_bytes((mark + CSV).encode(coding))
    assert_is_it(read(path))
    path.write_bytes((mark + CSV + "c,x,.5,.5\n").encode(coding))
    with pytest.raises(DataError, match=r"row 5 of log\.csv"):
        read(path)
    path.write_bytes((mark + CSV).encode(coding) + b"\x00")
    with pytest.raises(DataError, match="begins as UTF-16 text, but is none"):
        read(path)


# -- notes for spreadsheets ------------------------------------------------------------------------


@READERS
@pytest.mark.parametrize("mark", [";", "\t", ","])
@pytest.mark.parametrize("note", ["sep={}\n", '"sep={}"\r\n', "\ufeffSEP={}\n"])
def test_a_first_line_that_names_the_delimiter_is_followed(tmp_path, read, mark, note):
    path = tmp_path / "log.csv"
    text = note.format(mark) + CSV.replace(",", mark)
    path.write_text(text)
    assert_is_it(read(path))
    assert_is_it(read(path, delimiter=mark))
    assert read(path).row.tolist() == [2, 3, 4]
    with pytest.raises(OptionError, match=r"delimiter='\|' contradicts the first line"):
        read(path, delimiter="|")
    path.write_text(text + mark.join(["a", "x", ".5", ".5"]) + "\n")
    with pytest.raises(DataError, match=r"row 5 of log\.csv \[line 6\]"):
        read(path)
    path.write_bytes(gzip.compress(text.encode()))
    assert_is_it(read(path))
    path.write_text(text + f'b{mark}"1"x{mark}.5{mark}.5\n')
    with pytest.raises(DataError, match=r"row 5 of log\.csv"):
        read(path)


# -- long files ------------------------------------------------------------------------------------


def _in_blocks(monkeypatch, size):
    monkeypatch.setattr("bayesfair.readers.formats.registry._LONG", 0)
    monkeypatch.setattr("bayesfair.readers.formats.registry._PACKED", 0)
    monkeypatch.setattr("bayesfair.readers.duels.arena._BLOCK", size)


LONG = {
    "flat": (WIDE * 9, {}),
    "nested": (NESTED * 9, {"arm": "action.id", "reward": "out.reward"}),
    "kinds that change": (
        [{"arm": a, "reward": r} for a in (1, 2.0, "x", "2") for r in (1, 0, 0.5, None, "1", True)],
        {"missing": "unobserved"},
    ),
    "keys that come late": ([*({"arm": "a", "reward": 1},) * 5, *WIDE], {"probabilities": False}),
    "an arm that comes late": (
        [*({"arm": "a", "reward": 1, "probs": {"a": 1.0}},) * 5,
         *({"arm": "b", "reward": 1, "probs": {"a": 0.5, "b": 0.5}},) * 5],
        {"probabilities": "probs.{arm}", "arms": ["a", "b"]},
    ),
}  # fmt: skip


@READERS
@pytest.mark.parametrize("size", [100, 1000])
@pytest.mark.parametrize("name", LONG)
def test_long_json_lines_are_read_block_by_block_as_they_are_whole(
    tmp_path, monkeypatch, read, name, size
):
    rows, options = LONG[name]
    path = _lines(tmp_path / "log.jsonl", rows)
    whole = read(path, **options)
    _in_blocks(monkeypatch, size)
    found = read(path, **options)
    assert found.arms == whole.arms and found.arm.tolist() == whole.arm.tolist()
    np.testing.assert_array_equal(found.reward, whole.reward)
    np.testing.assert_array_equal(found.selection_probability, whole.selection_probability)
    assert {n.kind for n in found.notices} == {n.kind for n in whole.notices}


@READERS
@pytest.mark.parametrize("size", [7, 100])
@pytest.mark.parametrize("name", LONG)
def test_long_arrays_are_read_block_by_block_as_their_lines(
    tmp_path, monkeypatch, read, name, size
):
    rows, options = LONG[name]
    whole = read(_lines(tmp_path / "log.jsonl", rows), **options)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(rows, indent=size // 50))
    _in_blocks(monkeypatch, size)
    found = read(path, **options)
    assert found.arms == whole.arms and found.arm.tolist() == whole.arm.tolist()
    np.testing.assert_array_equal(found.reward, whole.reward)
    np.testing.assert_array_equal(found.selection_probability, whole.selection_probability)


@READERS
def test_long_dsjson_is_read_block_by_block(tmp_path, monkeypatch, read):
    path = _lines(tmp_path / "log.dsjson", [_dsjson(t) for t in range(3)])
    _in_blocks(monkeypatch, 300)
    log = read(path)
    assert_is_it(log, arms=("1", "2"))
    assert next(n for n in log.notices if n.kind == "cost_as_reward").n == 3
    _lines(path, [_dsjson(0), _dsjson(1), _dsjson(2, pdrop=2)])
    with pytest.raises(DataError, match=r"row 3 of log\.dsjson"):
        read(path)


@READERS
@pytest.mark.parametrize("block", [1 << 20, 300])
def test_the_chance_to_be_dropped_is_read_as_one_to_be_kept(tmp_path, monkeypatch, read, block):
    path = _lines(tmp_path / "log.dsjson", [_dsjson(0), _dsjson(1), _dsjson(2, pdrop=0.75)])
    _in_blocks(monkeypatch, block)
    log = read(path)
    whole = next(log.chunks()) if hasattr(log, "chunks") else log
    assert whole.keep_prob.tolist() == [1, 1, 0.25]
    with pytest.raises(DataError) as caught:
        bf.audit(log, seed=1)
    assert (caught.value.kind, caught.value.column) == ("thinned", "keep_prob")
    _lines(path, [_dsjson(t, pdrop=0.0) for t in range(3)])
    log = read(path)
    whole = next(log.chunks()) if hasattr(log, "chunks") else log
    assert whole.keep_prob is None
    assert_is_it(log, arms=("1", "2"))


@READERS
def test_faults_in_later_blocks_are_named_by_row(tmp_path, monkeypatch, read):
    path = tmp_path / "log.jsonl"
    lines = [json.dumps(row) for row in WIDE * 9]
    _in_blocks(monkeypatch, 200)
    for bad, said in (
        ('{"arm": "a", "reward": "x", "p_a": 1, "p_b": 0}', r"row 28 .*'x'"),
        ('{"arm": "a", "reward": 1e999}', "row 28 .*too large"), ("{", "row 28 .*not valid"),
    ):  # fmt: skip
        path.write_text("\n".join([*lines, bad]) + "\n")
        with pytest.raises(DataError, match=said):
            read(path)
