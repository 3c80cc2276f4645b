"""What would be read as what is shown before anything is read, on the command line too."""

import json
import shlex

import pytest
from command_line import run

from bayesfair.errors import DataError
from bayesfair.readers import preview, read_history

GUESSED = "item_id,click,pscore,day,note\nx,1,0.5,2,n1\ny,0,0.25,1,\nx,1,0.75,3,n3\nx,0,0.75,4,n4\n"
WHOLE = "arm,reward,p_a,p_b,timestamp,propensity\na,1,0.5,0.5,1,0.5\nb,0,0.25,0.75,2,0.75\n"
NO_ARM = "choice,paid,w\na,1,3\n"


def _file(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_guessed_columns_are_shown_with_their_first_rows(tmp_path):
    found = preview(_file(tmp_path, GUESSED))
    assert {c.name: c.part for c in found.columns} == {
        "item_id": "arm", "click": "reward", "pscore": "propensity", "day": "", "note": "",
    }  # fmt: skip
    assert found.columns[0].values == ("x", "y", "x")
    assert found.columns[4].values == ("n1", None, "n3")
    assert found.problem is None
    assert found.options == {"arm": "item_id", "reward": "click", "propensity": "pscore"}
    log = read_history(tmp_path / "log.csv", **found.options)
    assert not {n.kind for n in log.notices} & {"column_guessed", "probabilities_found"}
    assert {n.kind for n in found.notices} >= {"column_guessed", "probabilities_found"}


def test_the_whole_rule_is_shown_arm_by_arm(tmp_path):
    found = preview(_file(tmp_path, WHOLE))
    assert [c.part for c in found.columns] == [
        "arm", "reward", "probability of a", "probability of b", "order", "compared only",
    ]  # fmt: skip
    assert found.options == {
        "arm": "arm", "reward": "reward", "order": "timestamp", "probabilities": "p_{arm}",
    }  # fmt: skip


def test_records_are_shown_as_they_stand(tmp_path):
    rows = [{"arm": "a", "reward": 1, "probs": {"a": 0.5, "b": 0.5}}] * 2
    path = _file(tmp_path, "".join(json.dumps(r) + "\n" for r in rows), "log.jsonl")
    found = preview(path)
    assert {c.name: c.part for c in found.columns}["probs"] == "probabilities"
    assert found.options["probabilities"] == "probs.{arm}"
    assert read_history(path, **found.options).selection_probability.tolist() == [[0.5, 0.5]] * 2


def test_a_log_that_is_refused_is_shown_all_the_same(tmp_path):
    found = preview(_file(tmp_path, NO_ARM))
    assert [(c.name, c.part, c.values) for c in found.columns] == [
        ("choice", "", ("a",)), ("paid", "", ("1",)), ("w", "", ("3",)),
    ]  # fmt: skip
    assert isinstance(found.problem, DataError) and found.options == {}
    for column in ("choice", "paid", "w"):
        assert repr(column) in str(found.problem)


def test_the_command_shows_the_options_that_say_the_same(tmp_path, capsys):
    path = _file(tmp_path, GUESSED)
    done = run(capsys, "columns", path)
    assert done.status == 0, done.err
    assert all(word in done.out for word in ("item_id", "reward", "0.75", "n3", "note"))
    line = done.out.strip().splitlines()[-1]
    words = shlex.split(line)
    assert words[:3] == ["bayesfair", "audit", str(path)]
    assert words[3:] == ["--arm", "item_id", "--reward", "click", "--propensity", "pscore"]
    audited = run(capsys, *words[1:], "--no-objective", "--json", "-")
    assert audited.status == 0 and "column_guessed" not in audited.out
    numbers = json.loads(run(capsys, "columns", path, "--json", "-").out)
    assert numbers["columns"][1] == {"name": "click", "part": "reward", "first": ["1", "0", "1"]}
    assert numbers["options"]["arm"] == "item_id" and numbers["problem"] is None


def test_the_command_refuses_what_an_audit_would_refuse_behind_the_table(tmp_path, capsys):
    done = run(capsys, "columns", _file(tmp_path, NO_ARM))
    assert done.status == 2
    assert "choice" in done.out and "no column 'arm'" in done.err
    done = run(capsys, "columns", tmp_path / "none.csv")
    assert (done.status, done.out) == (2, "") and "no such file" in done.err


@pytest.mark.parametrize("option", [["--arm", "paid"], ["--delimiter", ","]])
def test_options_of_the_log_are_followed(tmp_path, capsys, option):
    done = run(capsys, "columns", _file(tmp_path, NO_ARM), "--reward", "w", *option)
    assert done.status == (0 if option[0] == "--arm" else 2)


def test_a_refused_log_tells_what_was_named_or_is_well_known():
    log = {"device": ["a", "b"], "variant": ["x", "y"], "won": [1, 0], "prob": [0.5, 0.5]}
    found = preview(log, reward="won")
    assert isinstance(found.problem, DataError) and "'prob'" in str(found.problem)
    assert [(c.name, c.part) for c in found.columns if c.part] == [
        ("variant", "arm"), ("won", "reward"),
    ]  # fmt: skip
    assert [(n.kind, n.column, n.value) for n in found.notices] == [
        ("column_guessed", "variant", "arm")
    ]
