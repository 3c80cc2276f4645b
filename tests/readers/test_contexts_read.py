"""Columns of the context, from files, frames and scans."""

import json

import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.history.design import design_of
from bayesfair.readers.formats import registry

TEXT = """arm,reward,p_a,p_b,device,age,group
a,1,.5,.5,web,3,x
b,0,.5,.5,app,4,x
a,1,.6,.4,web,3,y
b,1,.4,.6, app,,y
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(TEXT)
    return file


def names(history):
    codes, labels = history.context.cells
    return [labels[c] for c in codes]


def test_one_column_and_several(path):
    one = bf.read_history(path, context="device")
    assert names(one) == ["web", "app", "web", "app"] and "device" not in one.unused_columns
    two = bf.read_history(path, context=["device", "group"])
    assert names(two)[0] == "device=web, group=x" and len(set(names(two))) == 4
    assert two.context.columns == ("device", "group")


def test_a_missing_context_is_refused_or_a_level_of_its_own(path):
    with pytest.raises(bf.DataError) as refused:
        bf.read_history(path, context="age")
    assert (refused.value.kind, refused.value.column) == ("missing_label", "age")
    found = bf.read_history(path, context="age", missing_context="none")
    assert names(found) == ["3", "4", "3", "none"]
    with pytest.raises(bf.OptionError) as refused:
        bf.read_history(path, missing_context="none")
    assert refused.value.column == "missing_context"


def test_scans_and_groups_and_frames_read_the_same(path):
    whole = names(bf.read_history(path, context="device"))
    parts = list(bf.scan_history(path, context="device", chunk_rounds=3).chunks())
    assert [x for part in parts for x in names(part)] == whole
    groups = bf.read_history(path, context="device", by="group")
    assert [x for log in groups.values() for x in names(log)] == whole
    frame = pd.read_csv(path, skipinitialspace=True)
    assert names(bf.read_history(frame, context="device")) == whole
    numbers = pd.DataFrame({"arm": ["a", "b"], "reward": [1, 0], "x": [1.5, 2.0]})
    assert names(bf.read_history(numbers, context="x", propensity=False)) == ["1.5", "2"]


def test_a_context_that_belongs_to_an_arm_is_none_of_the_round(tmp_path):
    file = tmp_path / "long.csv"
    file.write_text("round,arm,reward,propensity,x,y\n1,a,1,.5,u,1\n1,b,,.5,u,2\n2,a,,.4,v,1\n"
                    "2,b,0,.6,v,2\n")  # fmt: skip
    assert names(bf.read_history(file, round="round", context="x")) == ["u", "v"]
    with pytest.raises(bf.DataError) as refused:
        bf.read_history(file, round="round", context="y")
    assert refused.value.kind == "context_of_arm"


@pytest.mark.parametrize(
    ("context", "found"),
    [
        (["u", "v", "u"], ["u", "v", "u"]),
        (np.array([[1.0, 2.0], [3.0, 2.0], [1.0, 2.0]]), None),
        ({"x": [1, 1, 2], "y": ["p", "q", "p"]}, ["x=1, y=p", "x=1, y=q", "x=2, y=p"]),
        (pd.DataFrame({"z": ["m", "n", "m"]}), ["m", "n", "m"]),
    ],
)
def test_a_history_takes_labels_tables_and_frames(context, found):
    log = bf.History(["a", "b", "a"], [1, 0, 1], propensity=[0.5] * 3, context=context)
    first, second = "context_0=1, context_1=2", "context_0=3, context_1=2"
    found = found or [first, second, first]
    assert names(log) == found
    assert names(log.rounds(1, 3)) == found[1:]
    assert bf.History(log.arm, log.reward, propensity=log.propensity, arms=log.arms,
                      context=log.context).context is log.context  # fmt: skip


@pytest.mark.parametrize(
    ("context", "kind"),
    [(["u"], "length"), (["u", None, "v"], "missing_label"), ([1.0, np.nan, 2.0], "missing_label"),
     (np.array([1.0, np.nan, 2.0]), "missing_label"), (["u", "NA", "v"], "label_like_missing"),
     ({}, "length")],
)  # fmt: skip
def test_a_context_that_cannot_be_used_is_refused(context, kind):
    with pytest.raises(bf.DataError) as refused:
        bf.History(["a", "b", "a"], [1, 0, 1], propensity=[0.5] * 3, context=context)
    assert refused.value.kind == kind


def _decision(t, **more):
    """A decision of Vowpal Wabbit that shows a user, and a topic and a price of each action."""
    topics = [{"t": {"topic": topic, "price": t + i}} for i, topic in enumerate(("art", "golf"))]
    user = {"id": f"u{t % 2}", "age": 20 + t, "full.name": "x"}
    return {
        "_label_cost": -(t % 2), "_label_probability": 0.5, "_label_Action": 1 + t % 2,
        "a": [1 + t % 2, 2 - t % 2], "p": [0.5, 0.5],
        "c": {"user": user, "_multi": topics, **more},
    }  # fmt: skip


@pytest.mark.parametrize("parts", [False, True])
def test_what_vowpal_wabbit_showed_is_a_context_by_its_path(tmp_path, monkeypatch, parts):
    path = tmp_path / "log.dsjson"
    path.write_text("".join(f"{json.dumps(_decision(t))}\n" for t in range(5)))
    if parts:  # block by block
        monkeypatch.setattr(registry, "_LONG", 0)
    assert names(bf.read_history(path, context="c.user.id")) == ["u0", "u1", "u0", "u1", "u0"]
    mixed = bf.read_history(path, context=["c.user.age", "c.user.full.name"]).context
    assert mixed.labels == (("20", "21", "22", "23", "24"), ("x",))
    actions = bf.read_history(path, context="c._multi.{arm}.t.price").context
    assert actions.columns == ("c._multi.1.t.price", "c._multi.2.t.price")
    assert actions.labels[1] == ("1", "2", "3", "4", "5")
    assert names(bf.read_history(path, context="c._multi.2.t.topic")) == ["golf"] * 5
    with pytest.raises(bf.DataError) as refused:
        bf.read_history(path, context="c.user.town")
    assert refused.value.kind == "missing_column" and "c.user.town" in str(refused.value)
    with pytest.raises(bf.DataError) as refused:
        bf.read_history(path, context="c.user")
    assert (refused.value.kind, refused.value.row) == ("nested_context", 1)
    assert any("c.user.age" in note for note in bf.read_history(path).notices)


def test_a_path_that_some_decisions_lack_needs_a_level(tmp_path):
    path = tmp_path / "log.dsjson"
    decisions = [_decision(0, user={}), _decision(1), _decision(2, user={"id": "u9"})]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in decisions))
    with pytest.raises(bf.DataError) as refused:
        bf.read_history(path, context="c.user.id")
    assert (refused.value.kind, refused.value.column) == ("missing_label", "c.user.id")
    found = bf.read_history(path, context="c.user.id", missing_context="nobody")
    assert names(found) == ["nobody", "u1", "u9"]


def test_columns_of_every_arm_are_one_context(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("arm,reward,propensity,price_a,price_b\na,1,.5,3,4\nb,0,.5,3,5\n")
    found = bf.read_history(file, context=["price_{arm}"]).context
    assert found.columns == ("price_a", "price_b") and found.labels == (("3",), ("4", "5"))


@pytest.mark.parametrize("rule", ["p_{arm}", False])
@pytest.mark.parametrize("read", [bf.read_history, bf.scan_history])
def test_a_context_of_every_arm_is_of_these_arms(tmp_path, rule, read):
    """Known beforehand by the probabilities, or only when all rows were read."""
    file = tmp_path / "log.csv"
    file.write_text("arm,reward,p_a,p_b,x_a,x_b,x_c,y_a\na,1,.5,.5,3,4,9,1\nb,0,.5,.5,3,5,8,2\n")
    log = read(file, context="x_{arm}", probabilities=rule)
    parts = list(log.chunks()) if read is bf.scan_history else [log]
    assert [part.context.columns for part in parts] == [("x_a", "x_b")] * len(parts)
    left = [note for note in log.notices if note.kind == "arms_left_out"]
    assert [(note.column, note.n) for note in left] == [("context", 1)]
    with pytest.raises(bf.DataError) as refused:
        read(file, context="y_{arm}", probabilities=rule)
    found = refused.value
    assert (found.kind, found.column, found.value) == ("missing_column", "y_b", "b")


def test_groups_with_arms_of_their_own_have_the_context_of_these(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(
        "arm,reward,g,x_a,x_b,x_c\na,1,1,3,4,5\nb,0,1,3,5,6\nc,1,2,3,5,7\na,1,2,3,5,7\n"
    )
    logs = bf.read_history(file, by="g", arms="by_group", context="x_{arm}")
    assert logs["1"].context.columns == ("x_a", "x_b")
    assert names(logs["2"]) == ["x_a=3, x_c=7"] * 2


@pytest.mark.parametrize("context", ["p_{arm}", ["p_a", "p_b"], "reward", "arm", "propensity"])
@pytest.mark.parametrize("read", [bf.read_history, bf.scan_history])
def test_what_the_choice_or_the_rule_tells_is_no_context(tmp_path, context, read):
    file = tmp_path / "log.csv"
    file.write_text("arm,reward,p_a,p_b,propensity\na,1,.5,.5,.5\nb,0,.5,.5,.5\n")
    with pytest.raises(bf.OptionError) as refused:
        read(file, context=context)
    assert (refused.value.kind, refused.value.column) == ("two_roles", "context")


def test_a_column_that_begins_as_probabilities_do_may_be_a_context(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("arm,reward,p_a,p_b,p_age\na,1,.5,.5,30\nb,0,.5,.5,40\n")
    assert names(bf.read_history(file, context="p_age")) == ["30", "40"]


@pytest.mark.parametrize(
    ("options", "column"),
    [({"by": "reward"}, "by"), ({"by": ["s", "arm"]}, "by"), ({"order": "reward"}, "order"),
     ({"user": "arm"}, "user"), ({"unique": "arm"}, "unique"), ({"known_at": "reward"}, "known_at"),
     ({"propensity": "reward"}, "propensity"), ({"constant_within": "arm"}, "constant_within"),
     ({"round": "s", "chosen": "reward"}, "chosen"), ({"offered": "arm"}, "offered"),
     ({"known_at": "s", "context": "s"}, "context"), ({"reward": "arm"}, "reward")],
)  # fmt: skip
def test_a_column_in_two_roles_that_exclude_each_other_is_refused(options, column):
    table = {"arm": ["a", "b"], "reward": [1, 0], "s": [1, 2]}
    with pytest.raises(bf.OptionError) as refused:
        bf.read_history(table, **options)
    assert (refused.value.kind, refused.value.column) == ("two_roles", column)


def test_a_column_may_play_two_parts_that_agree():
    table = {"arm": ["a", "b"], "reward": [1, 0], "s": [1, 2]}
    log = bf.read_history(table, order="s", context="s", user="s", unique="s")
    assert names(log) == ["1", "2"] and log.time is not None
    assert set(bf.read_history(table, by="s", context="s")) == {"1", "2"}


@pytest.mark.parametrize("read", [bf.read_history, bf.scan_history, bf.History])
def test_two_spellings_of_a_number_are_one_feature_and_no_two_labels(read):
    x = ["0.5", "0.50", "-0.0", "0", "1.25"]
    table = {"arm": list("abaab"), "reward": [1, 0, 1, 1, 0], "propensity": [0.5] * 5, "x": x}
    if read is bf.History:
        parts = [read(table["arm"], table["reward"], propensity=[0.5] * 5, context={"x": x})]
    else:
        log = read(table, context="x")
        parts = list(log.chunks()) if read is bf.scan_history else [log]
    names_of, rows = design_of(parts[0])
    z = (np.array(x, float) - np.mean(np.array(x, float))) / np.std(np.array(x, float))
    np.testing.assert_allclose(rows, np.column_stack([np.ones(5), z]))
    assert names_of == ("1", "x")
    assert not [n for n in parts[0].notices if n.kind == "labels_alike"]
    with pytest.raises(bf.ArmError) as refused:
        bf.audit(parts[0], context_model="cells", seed=1)
    assert (refused.value.kind, refused.value.value) == ("labels_alike", ["0.5", "0.50"])
    mixed = {**table, "x": ["1", "01", "y", "y", "y"]}
    with pytest.raises(bf.ArmError) as refused:  # no numbers: labels they are
        bf.read_history(mixed, context="x")
    assert refused.value.kind == "labels_alike"


@pytest.mark.parametrize("rows", [1, 10])
def test_a_level_of_missing_contexts_that_is_there_already_is_told_of(rows):
    table = {"arm": list("abab"), "reward": [1, 0, 1, 0], "x": ["web", None, "app", None]}
    for level, found in (("app", [("x", "app", 1)]), ("unknown", [])):
        *_, last = bf.scan_history(
            table, context="x", missing_context=level, chunk_rounds=rows
        ).chunks()
        for log in (last, bf.read_history(table, context="x", missing_context=level)):
            said = [n for n in log.notices if n.kind == "level_taken"]
            assert [(n.column, n.value, n.n) for n in said] == found
