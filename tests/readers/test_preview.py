"""What would be read as what is shown before anything is read, on the command line too."""

import json
import shlex
import sqlite3

import pytest
from command_line import run

from bayesfair.cli.options import LOG_COLUMNS
from bayesfair.errors import DataError
from bayesfair.readers import preview, read_history

GUESSED = "item_id,click,pscore,day,note\nx,1,0.5,2,n1\ny,0,0.25,1,\nx,1,0.75,3,n3\nx,0,0.75,4,n4\n"
WHOLE = "arm,reward,p_a,p_b,timestamp,propensity\na,1,0.5,0.5,1,0.5\nb,0,0.25,0.75,2,0.75\n"
NO_ARM = "choice,paid,w\na,1,3\n"
MANY = (
    "arm,reward,p_a,p_b,propensity,timestamp,site's,until,q_a,q_b,arm2,reward2,could_a,late,list,"
    "sure\na,1.5,.5,.5,.5,1,x,0,.4,.6,b,0,1,2,a|b,1\nb,,.5,.5,.5,2,,0,.4,.6,a,1,1,3,a|b,1\n"
    "a,1,.5,.5,.5,3,y,2,.4,.6,b,1,1,4,a|b,1\n"
)
NO_RULE = ["--probabilities", "", "--propensity", "propensity"]
#: A value of each option of a log, with what it needs beside it.
GIVEN = {
    "arm": ["arm2"], "reward": ["reward2"], "propensity": [""], "probabilities": ["q_{arm}"],
    "order": [""], "by": ["arm2,could_a"], "arms": ["b,a"], "offered": ["list", *NO_RULE],
    "offered_delimiter": ["|", "--offered", "list", *NO_RULE], "known_at": ["late"],
    "known_until": ["until"], "waiting": ["1"], "round": [""],
    "chosen": ["could_a", "--round", "timestamp", "--propensity", "sure"], "format": ["json"],
    "table": ["it's"],
    "unique": ["timestamp"], "user": ["site's"], "context": ["arm2,could_a"],
    "missing_context": ["not known", "--context", "site's"], "keep_prob": ["q_a", *NO_RULE],
    "constant_within": ["arm2,list", *NO_RULE], "rewards": ["1.5=0,1=1"], "missing": ["0.5"],
    "delimiter": [","], "decimal": ["."], "probability_tolerance": ["0.25"],
}  # fmt: skip


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


@pytest.mark.parametrize("option", LOG_COLUMNS.options)
def test_every_option_that_was_given_stands_in_the_command(tmp_path, capsys, option):
    path = _file(tmp_path, MANY)
    if option in ("table", "format"):
        path = tmp_path / f"log.{option}"
        if option == "format":
            path.write_text('[{"arm": "a", "reward": 1}, {"arm": "b", "reward": 0}]')
        else:
            with sqlite3.connect(path) as base:
                base.executescript(
                    'create table other (x); create table "it\'s" (arm, reward);'
                    "insert into \"it's\" values ('a', 1), ('b', 0);"
                )
    words = [f"--{option.replace('_', '-')}", *GIVEN[option]]
    words += [] if option in ("missing", "waiting") else ["--missing", "unobserved"]
    done = run(capsys, "columns", path, *words)
    assert done.status == 0, done.err
    again = shlex.split(done.out.strip().splitlines()[-1])
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given.items() <= dict(zip(again[3::2], again[4::2], strict=True)).items()
    repeated = run(capsys, "columns", *again[2:])  # the same, and nothing is left to be found
    assert repeated.out.splitlines()[-1] == done.out.splitlines()[-1], repeated


@pytest.mark.parametrize("given", [
    {"by": ["arm2", "could_a"], "missing": "unobserved"},
    {"rewards": {1.5: 0}, "missing": 0.5},
    {"arms": ["b", "a"], "context": ["arm2", "could_a"], "missing": "unobserved"},
    {"probabilities": False, "propensity": False, "missing": "drop", "prior": {"a": (1, 2)}},
])  # fmt: skip
def test_the_same_log_is_read_with_the_options_of_a_preview(tmp_path, given):
    path = _file(tmp_path, MANY)
    found = preview(path, **given)
    assert given.items() <= found.options.items()
    assert json.loads(json.dumps(found.to_dict()))["options"].keys() == found.options.keys()
    read, again = read_history(path, **given), read_history(path, **found.options)
    for one, two in zip(*([r] if hasattr(r, "arm") else r.values() for r in (read, again)),
                        strict=True):  # fmt: skip
        assert (one.arms, one.selection) == (two.arms, two.selection)
        assert (one.arm.tolist(), repr(one.reward)) == (two.arm.tolist(), repr(two.reward))


def test_a_log_of_a_row_for_each_arm_is_named_by_its_own_columns(tmp_path, capsys):
    rows = "".join(f"{t},{arm},{arm == 'a':d},{t % 2 if arm == 'a' else ''},{p}\n"
                   for t in range(6) for arm, p in (("a", ".25"), ("b", ".75")))  # fmt: skip
    path = _file(tmp_path, f"turn,arm,took,reward,prob\n{rows}")
    words = ["--round", "turn", "--chosen", "took"]
    line = run(capsys, "columns", path, *words).out.strip().splitlines()[-1]
    assert "--propensity prob" in line and "--probabilities" not in line
    assert run(capsys, "columns", *shlex.split(line)[2:]).status == 0


@pytest.mark.parametrize(("text", "row"), [
    ("arm,reward,p_a,p_b\n", None),
    (WHOLE + "a,x,.5,.5,3,.5\n", 4),
    (WHOLE + "a,1,.5,.4,3,.5\n", 4),
    (WHOLE + "a,,.5,.5,3,.5\n", 4),
    ("created_at,arm,reward,p_a,p_b\n"
     + "".join(f"2026-01-{31 - t},a,1,.5,.5\n" for t in range(20)), None),
])  # fmt: skip
def test_what_the_first_rows_show_is_refused_behind_the_table(tmp_path, capsys, text, row):
    path = _file(tmp_path, text)
    done = run(capsys, "columns", path)
    assert (done.status, type(done.error)) == (2, type(preview(path).problem))
    with pytest.raises(type(done.error)) as refused:
        read_history(path)
    assert str(done.error) == str(refused.value)
    assert row is None or f"row {row}" in done.err
    assert "probability of b" in done.out and "bayesfair audit" not in done.out


def test_records_that_are_no_label_are_refused_behind_the_table(tmp_path, capsys):
    rows = '{"arm": {"id": "a"}, "reward": 1}\n{"arm": {"id": "b"}, "reward": 0}\n'
    done = run(capsys, "columns", _file(tmp_path, rows, "log.jsonl"))
    assert done.status == 2 and "{'id': 'a'}" in done.out and "row 1" in done.err


def test_what_only_the_whole_log_can_tell_does_not_refuse_its_first_rows():
    n = 2500
    log = {"arm": ["a"] * 2400 + ["b"] * 100, "reward": [1] * n, "propensity": [0.5] * n,
           "t": list(range(n, 0, -1)), "until": [*range(n)], "at": [n + 1] * n}  # fmt: skip
    for given in ({"known_until": "until"}, {"known_at": "at"}, {"prior": {"b": (1, 1)}}):
        assert preview(log, order="t", **given).problem is None, given
    log["reward"][2400] = "x"  # nor is it known what stands further down
    assert preview(log).problem is None


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
