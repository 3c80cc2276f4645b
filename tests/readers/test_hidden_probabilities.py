"""Probabilities under another name, or nested, are read as meant or refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run
from pyarrow import feather, orc

import bayesfair as bf
from bayesfair.errors import DataError, OptionError
from bayesfair.readers import read_history, scan_history

ARM, REWARD = ["a", "b", "a"], [1, 0, 1]
RULE = [{"a": 0.5, "b": 0.5}, {"a": 0.625, "b": 0.375}, {"a": 0.75, "b": 0.25}]
PI = [list(row.values()) for row in RULE]
CHOSEN = [0.5, 0.375, 0.75]
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def _scan(source, **options):
    return next(scan_history(source, **options).chunks())


READERS = pytest.mark.parametrize("read", [read_history, _scan], ids=["read", "scan"])


def _sources(folder, name, values):
    """The same column in Arrow, pandas, Parquet, and as text in CSV where it is text."""
    table = pa.table({"arm": ARM, "reward": REWARD, name: values})
    pq.write_table(table, folder / "log.parquet")
    found = [table, folder / "log.parquet", table.to_pandas()]
    if pa.types.is_string(table.column(name).type):
        table.to_pandas().to_csv(folder / "log.csv", index=False)
        found.append(folder / "log.csv")
    return found


RECORDS = {
    "struct": RULE,
    "map": pa.array([list(row.items()) for row in RULE], pa.map_(pa.string(), pa.float64())),
    "JSON": [json.dumps(row) for row in RULE],
    "Python": [str(row) for row in RULE],
    "NumPy in Python": [str({k: np.float64(v) for k, v in row.items()}) for row in RULE],
    "Trino": ["{" + ", ".join(f"{k}={v}" for k, v in row.items()) + "}" for row in RULE],
    "hstore": [", ".join(f'"{k}"=>"{v}"' for k, v in row.items()) for row in RULE],
    "rows": [[{"arm": k, "p": v} for k, v in row.items()] for row in RULE],
    "rows in JSON": [
        json.dumps([{"id": k, "prob": v, "score": 9} for k, v in row.items()]) for row in RULE
    ],
}
LISTS = {
    "list": PI,
    "JSON": [json.dumps(row) for row in PI],
    "NumPy": [str(np.array(row)) for row in PI],
    "Python": [str(tuple(row)) for row in PI],
    "Postgres": ["{" + ",".join(map(str, row)) + "}" for row in PI],
}


@READERS
@pytest.mark.parametrize("values", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize("name", ["p", "action_probs", "anything"])
def test_records_name_their_arms(tmp_path, read, values, name):
    for source in _sources(tmp_path, name, values):
        log = read(source)
        assert log.arms == ("a", "b") and log.selection_probability.tolist() == PI
        assert bf.audit(log, eps1=1, seed=0).regret.value == pytest.approx(0, abs=1e-15)
        assert [n.kind for n in log.notices] == ["probabilities_found"]
        for asked in (name, f"{name}.{{arm}}"):
            same = read(source, probabilities=asked)
            assert same.selection_probability.tolist() == PI and not same.notices
        turned = read(source, probabilities=name, arms=["b", "a"])
        assert turned.selection_probability.tolist() == [row[::-1] for row in PI]
        assert read(source, probabilities=False).selection == "none"


@READERS
@pytest.mark.parametrize("values", LISTS.values(), ids=LISTS)
def test_lists_need_the_order_of_the_arms(tmp_path, read, values):
    for source in _sources(tmp_path, "pi", values):
        with pytest.raises(DataError, match=r"'pi', lists of 2 .*probabilities='pi'.*arms="):
            read(source)
        with pytest.raises(DataError, match=r"'pi' .*do not say whose they are"):
            read(source, probabilities="pi")
        for options in ({}, {"probabilities": "pi"}):
            log = read(source, arms=["a", "b"], **options)
            assert log.selection_probability.tolist() == PI


@READERS
@pytest.mark.parametrize(
    "write", [list, json.dumps, "|".join, str], ids=["list", "JSON", "|", "py"]
)
@pytest.mark.parametrize("values", LISTS.values(), ids=LISTS)
def test_a_parallel_list_of_labels_says_whose_they_are(tmp_path, read, values, write):
    """The labels stand in another order in each row, and that order is what counts."""
    labels = [["a", "b"], ["b", "a"], ["b", "a"]]
    turned = [PI[0], PI[1][::-1], PI[2][::-1]]
    for source in _sources(tmp_path, "pi", values):
        table = pq.read_table(source) if isinstance(source, Path) and source.suffix != ".csv" else (
            pd.read_csv(source) if isinstance(source, Path) else source
        )  # fmt: skip
        frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
        table = pa.Table.from_pandas(frame.assign(shown=[write(x) for x in labels]))
        for options in ({}, {"probabilities": "pi"}, {"probabilities": "pi", "offered": "shown"}):
            log = read(table, **options)
            assert log.selection_probability.tolist() == turned, options
        assert read(table, arms=["b", "a"]).selection_probability.tolist() == [
            row[::-1] for row in turned
        ]


@READERS
@pytest.mark.parametrize(
    "names", ["w1 w2", "left right", "share_x share_y", "w1 n w2 m", "prob_x prob_y"]
)
@pytest.mark.parametrize("total", [1, 100])
def test_columns_that_sum_to_1_and_name_no_arm_are_asked_about(tmp_path, read, names, total):
    """Side by side, or with others between them; never read as a log without probabilities."""
    columns: dict[str, object] = {"arm": [*ARM, "b"], "reward": [*REWARD, 0]}
    parts = iter(np.array([*PI, [1.0, 0.0]]).T * total)
    for name in names.split():
        columns[name] = [12.5, 3.0, 7.0, 8.0] if name in "nm" else next(parts)
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "log.csv", index=False)
    for source in (frame, tmp_path / "log.csv"):
        with pytest.raises(DataError, match=rf"sum to {total} .*'p_a'.*context") as caught:
            read(source)
        assert caught.value.kind == "probabilities_unread"
        assert read(source, probabilities=False, propensity=False).selection == "none"
        used = [c for c in names.split() if c not in "nm"]
        assert read(source, context=used).selection == "none"


@READERS
def test_numbers_whose_inverses_average_the_arms_may_be_the_chosen_arms_chance(read):
    """The mean of 1 / p over draws from p is the number of arms; of other numbers it seldom is."""
    rng = np.random.default_rng(1)
    pi = rng.dirichlet([3, 3, 3], 600)
    arm = (rng.random((600, 1)) > pi.cumsum(axis=1)).sum(axis=1)
    log = pd.DataFrame({"arm": np.array(["a", "b", "c"])[arm], "reward": arm % 2})
    chance = pi[np.arange(600), arm]
    for column, told in ((chance, True), (np.full(600, 1 / 3), True), (pi[:, 0] + 1e-9, False),
                         (rng.random(600), False), (np.full(600, 0.5), False)):  # fmt: skip
        found = read(log.assign(score=column)).notices
        assert [n.column for n in found if n.kind == "may_be_propensity"] == ["score"] * told
    assert "may_be_propensity" not in [n.kind for n in read(log.assign(propensity=chance)).notices]


WHOLE = {
    "records": {"p": RULE},
    "a prefix": {"prob_a": [x[0] for x in PI], "prob_b": [x[1] for x in PI]},
    "a list and its labels": {"p": [x[::-1] for x in PI], "shown": [["b", "a"]] * 3},
}


@READERS
@pytest.mark.parametrize("columns", WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("name", ["propensity", "pscore"])
def test_the_whole_rule_counts_beside_the_chosen_arms_probability(read, columns, name):
    log = read(pa.table({"arm": ARM, "reward": REWARD, **columns, name: CHOSEN}))
    assert log.selection_probability.tolist() == PI
    assert log.notices[0].kind == "probabilities_found"
    if name == "propensity":
        assert log.notices[1].kind == "propensity_unused"
        other = {"arm": ARM, "reward": REWARD, **columns, name: [0.5, 0.25, 0.75]}
        apart = [n for n in read(pa.table(other)).notices if n.kind == "propensity_apart"]
        assert apart[0].n == 1 and apart[0].value == pytest.approx(0.125)
    asked = pa.table({"arm": ARM, "reward": REWARD, **columns, name: CHOSEN})
    assert read(asked, propensity=name, probabilities=False).propensity.tolist() == CHOSEN


@READERS
def test_lists_beside_the_chosen_arms_probability_are_asked_about(read):
    table = pa.table({"arm": ARM, "reward": REWARD, "p": PI, "propensity": CHOSEN})
    with pytest.raises(DataError, match=r"has no column 'p_{arm}', but .*arms=") as caught:
        read(table)
    assert caught.value.kind == "probabilities_unread"
    assert read(table, arms=["a", "b"]).selection_probability.tolist() == PI


@READERS
@pytest.mark.parametrize("at", [0, 2])
def test_a_list_among_records_is_in_no_order(read, at):
    """Read in the order of the labels, it would be somebody else's."""
    values = [json.dumps(row) for row in RULE]
    values[at] = json.dumps(PI[at][::-1])
    frame = pd.DataFrame({"arm": ARM, "reward": REWARD, "p": values})
    for options in ({}, {"probabilities": "p"}, {"probabilities": "p.{arm}"}):
        with pytest.raises(DataError, match=rf"row {at + 1} .*column 'p': a list") as caught:
            read(frame, **options)
        assert caught.value.kind == "bad_probabilities"
    log = read(frame, arms=["b", "a"])  # their order is said
    assert log.selection_probability.tolist() == [row[::-1] for row in PI]


@READERS
@pytest.mark.parametrize("depth", [1, 2])
def test_fields_of_records_that_look_like_probabilities_are_named(read, depth):
    def under(value):
        return {"of": {"rule": value}} if depth == 2 else {"rule": value}

    path = ".".join(["seen", *["of"] * (depth - 1), "rule"])
    rows = [{"arm": a, "reward": r, "seen": under({"probs": p})}
            for a, r, p in zip(ARM, REWARD, RULE, strict=True)]  # fmt: skip
    with pytest.raises(DataError, match=f"{path}.probs") as caught:
        read(rows)
    assert caught.value.kind == "probabilities_unread"
    assert read(rows, probabilities=f"{path}.probs").selection_probability.tolist() == PI
    rows = [{"arm": a, "reward": r, "seen": under({"propensity": p})}
            for a, r, p in zip(ARM, REWARD, CHOSEN, strict=True)]  # fmt: skip
    with pytest.raises(DataError, match=rf"propensity='{path}.propensity'"):
        read(rows)
    assert read(rows, propensity=f"{path}.propensity").propensity.tolist() == CHOSEN


@READERS
def test_what_sums_to_1_by_its_nature_is_not_taken_for_a_rule(read):
    """Marks of one kind, or parts where the chosen arm's probability has its column."""
    log = pd.DataFrame({"arm": [*ARM, "b"], "reward": [*REWARD, 0]})
    marks = log.assign(phone=[1, 0, 1, 0], desk=[0, 1, 0, 1], x=[0.25, 0.5, 0.5, 0.125])
    assert read(marks).selection == "none"
    known = log.assign(x1=[0.25] * 4, x2=[0.75] * 4, propensity=[0.5] * 4)
    assert read(known).selection == "chosen"


@READERS
@pytest.mark.parametrize(
    "text", ["{0.25, 0.75}", "a:0.25,b:0.75", "0.25|0.75",
             "array([0.25, 0.75])"],
)  # fmt: skip
def test_text_of_probabilities_that_nobody_reads_is_named_not_overlooked(read, text):
    frame = pd.DataFrame({"arm": ARM, "reward": REWARD, "probs": [text] * 3})
    for options in ({}, {"arms": ["a", "b"]}):
        with pytest.raises(DataError, match=r"'probs'.* JSON") as caught:
            read(frame, **options)
        assert caught.value.kind == "probabilities_unread"
        with pytest.raises((DataError, OptionError)):
            read(frame, probabilities="probs", **options)


@READERS
@pytest.mark.parametrize("form", ["frame", "parquet", "arrow", "orc", "pandas"])
def test_paths_reach_into_records(tmp_path, read, form):
    """By hand: the same values in columns of their own; a record that is missing has none."""
    rows = [{"id": a, "rule": {"probs": p, "n": 2}} for a, p in zip(ARM, RULE, strict=True)]
    table = pa.table({"action": rows, "outcome": [{"reward": 1}, None, {"reward": 1}]})
    path = tmp_path / f"log.{form}"
    if form in ("arrow", "orc"):
        {"arrow": feather.write_feather, "orc": orc.write_table}[form](table, str(path))
    pq.write_table(table, tmp_path / "log.parquet")
    sources = {"frame": table, "pandas": table.to_pandas()}
    options = {"arm": "action.id", "reward": "outcome.reward", "missing": "unobserved"}
    log = read(
        sources.get(form, path), probabilities="action.rule.probs.{arm}", **options
    )  # fmt: skip
    assert log.selection_probability.tolist() == PI
    np.testing.assert_array_equal(log.reward, [1, np.nan, 1])
    with pytest.raises(DataError, match=r"'action\.nothing'"):
        read(sources.get(form, path), **options | {"arm": "action.nothing"})


@READERS
@pytest.mark.parametrize(
    "pattern", ["P_{arm}", "pi_{arm}", "prob({arm})", "probability.{arm}", "{arm}_propensity"]
)
def test_patterns_of_columns(read, pattern):
    wide = pd.DataFrame(PI, columns=[pattern.replace("{arm}", arm) for arm in "ab"])
    log = read(pd.DataFrame({"arm": ARM, "reward": REWARD, "x": [0.1, 0.7, 0.3]}).join(wide))
    assert log.selection_probability.tolist() == PI and log.unused_columns == ("x",)
    (notice,) = log.notices
    assert notice.kind == "probabilities_found" and repr(pattern) in notice
    nameless = wide.set_axis(["share a", "share b"], axis=1)
    with pytest.raises(DataError, match=r"'share a', 'share b' \(probabilities='share \{arm\}'"):
        read(pd.DataFrame({"arm": ARM, "reward": REWARD}).join(nameless))


@READERS
@pytest.mark.parametrize("name", ["pscore", "propensity_score", "Propensity", "action_prob"])
def test_the_chosen_arms_probability(read, name):
    log = read(pd.DataFrame({"arm": ARM, "reward": REWARD, name: CHOSEN}))
    found = [n for n in log.notices if n.kind == "probabilities_found"]
    assert log.propensity.tolist() == CHOSEN and found[0].column == name
    assert (
        read(pd.DataFrame({"arm": ARM, "reward": REWARD, name: CHOSEN}), propensity=False).selection
        == "none"
    )


@READERS
@pytest.mark.parametrize("name", ["p", "prob", "probability", "pi"])
def test_what_may_be_something_else_is_asked_for(read, name):
    frame = pd.DataFrame({"arm": ARM, "reward": REWARD, name: CHOSEN})
    with pytest.raises(DataError, match=rf"'{name}' \(propensity='{name}'\)") as caught:
        read(frame)
    assert caught.value.kind == "probabilities_unread" and "propensity=False" in str(caught.value)
    assert read(frame, propensity=name).propensity.tolist() == CHOSEN
    assert read(frame, propensity=False).selection == "none"
    assert read(frame.assign(**{name: [3, 4, 5]})).selection == "none"  # no probabilities


@READERS
def test_percent_and_broken_candidates_are_named_not_overlooked(read):
    frame = pd.DataFrame({"arm": ARM, "reward": REWARD, "propensity_score": [50, 37.5, 75]})
    with pytest.raises(DataError, match=r"'propensity_score' \(propensity="):
        read(frame)
    wide = pd.DataFrame({"arm": ARM, "reward": REWARD, "P_a": [50, 60, 70], "P_b": [50, 40, 30]})
    with pytest.raises(DataError, match=r"'P_a', 'P_b' \(probabilities='P_\{arm\}'\)"):
        read(wide)


@READERS
def test_records_that_break_off_are_refused_by_row(read):
    rule = [json.dumps(row) for row in RULE]
    log = {"arm": ARM, "reward": REWARD}
    for odd, message in (
        ("oops", "row 3 .*'p'.*'oops' is no record"),
        ('{"a": 0.5, "c": 0.5}', "row 3 .*'p'.*'c' is not among the arms"),
        ('{"a": "x", "b": 0.5}', "row 3 .*'p'.*'x' of arm 'a' is no probability"),
        ('{"a": 1e-400, "b": 1}', "row 3 .*'p'.*is no record"),
        ("[0.5, 0.25, 0.25]", "row 3 .*'p'.*3 probabilities for 2 arms"),
        ('{"a": 0.5, "b": 0.2}', r"row 3 .*sum to 0\.7"),
    ):
        with pytest.raises(DataError, match=message):
            read(pa.table({**log, "p": [*rule[:2], odd]}), probabilities="p", arms=["a", "b"])
    with pytest.raises(OptionError, match=r"'note' .*holds no records"):
        read(pa.table({**log, "note": ["x", "y", "z"]}), probabilities="note")


@READERS
def test_an_arm_that_a_record_leaves_out_was_not_on_offer(read):
    rule = ['{"a": 0.5, "b": 0.5}', '{"b": 1.0}', '{"a": 0.25, "b": null, "c": 0.75}']
    log = read(pa.table({"arm": ARM, "reward": REWARD, "p": rule}))
    assert log.arms == ("a", "b", "c")
    assert log.offered.tolist() == [[True, True, False], [False, True, False], [True, False, True]]


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data are not here")
def test_a_real_log_of_a_recommender_is_not_said_to_be_without_probabilities(capsys):
    path = DATA / "obd_bts_men.csv"
    options = {"arm": "item_id", "reward": "click", "by": "position"}
    logs = read_history(path, **options)
    named = read_history(path, propensity="propensity_score", **options)
    for group, log in logs.items():
        assert (
            log.selection == "chosen"
            and log.propensity.tolist() == named[group].propensity.tolist()
        )
    flags = ["--arm", "item_id", "--reward", "click", "--by", "position", "--no-objective"]
    done = run(capsys, "audit", path, *flags)
    assert done.status == 0, done.err
    said = " ".join(done.out.split())
    assert "propensity_score" in said and "No selection probabilities were logged" not in said


@READERS
@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("log_prob", np.log(CHOSEN), "logarithms"),
        ("logp", np.log(CHOSEN), "logarithms"),
        ("propensity_pct", 100 * np.array(CHOSEN), "percent"),
        ("inverse_propensity", 1 / np.array(CHOSEN), "inverse"),
        ("ipw", 1 / np.array(CHOSEN), "inverse"),
        ("importance_weight", 1 / np.array(CHOSEN), "inverse"),
    ],
)
def test_probabilities_on_another_scale_are_named_with_what_makes_them_usable(
    read, name, values, said
):
    frame = pd.DataFrame({"arm": ARM, "reward": REWARD, name: values})
    with pytest.raises(DataError, match=rf"'{name}': {said}") as caught:
        read(frame)
    assert caught.value.kind == "probabilities_unread"
    assert read(frame, propensity=False).selection == "none"


def test_other_numbers_are_no_probabilities_on_another_scale():
    frame = pd.DataFrame({"arm": ARM, "reward": REWARD, "log_size": [-1.0, -2, -3],
                          "weight": [70.0, 81, 66], "share_pct": [10.0, 20, 30]})  # fmt: skip
    assert read_history(frame).selection == "none"
